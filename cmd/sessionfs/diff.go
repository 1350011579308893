package main

import (
	"bufio"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/view"
)

// diffCommand is sessionfs diff.
func diffCommand() *cobra.Command {
	cmd := onSource(anySession, &cobra.Command{
		Use:   "diff [-s SOURCE] SESSION SESSION",
		Short: "Compare two branches of a session, or two sessions, turn by turn",
		Long: "Compare two branches of a session, or two sessions such as a fork and its parent, as diff -u does. Turns are\n" +
			"compared by what was said and done in them, not by times and ids; of those that differ the lines of the same\n" +
			"speaker's turn are compared. " + sessionArgument + "\n" +
			"Exit status: 0 they say the same, 1 they differ, 2 trouble.",
		Example: "  sessionfs diff 019d3d9 019d3d9#6ab2fbe0",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		var branches [2]view.Branch
		for i, arg := range args {
			snap, end, err := src.branch(arg)
			if err != nil {
				return err
			}
			defer snap.Release()
			branches[i] = view.Branch{Session: snap, End: end}
		}
		differ := false
		err := paged(cmd, func(out *screen) (err error) {
			w := bufio.NewWriter(out)
			header := "--- " + visible(args[0]) + "\n+++ " + visible(args[1]) + "\n"
			differ, err = view.Diff(cmd.Context(), branches[0], branches[1], func(text []byte) error {
				if header != "" {
					w.WriteString(header)
					header = ""
				}
				return printDiff(w, out.colours, text)
			})
			if err != nil {
				return err
			}
			return w.Flush()
		})
		if err == nil && differ {
			err = ended(exitNothing)
		}
		return err
	})
	endsWithTwo(cmd)
	return cmd
}

// printDiff prints a line of a difference.
func printDiff(w *bufio.Writer, colours bool, line []byte) error {
	colour := diffColours[line[0]]
	if !colours || colour == "" {
		_, err := w.Write(line)
		return err
	}
	_, err := w.WriteString(colour + string(line[:len(line)-1]) + colourEnd + "\n")
	return err
}
