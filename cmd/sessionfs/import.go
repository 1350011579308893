package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/writer"
)

// importCommand is sessionfs import.
func importCommand() *cobra.Command {
	var to string
	cmd := onSource(&cobra.Command{
		Use:   "import [-s SOURCE] [--to DIR] PATH...",
		Short: "Put sessions from elsewhere into SOURCE: files, archives, agent directories, bundles",
		Long: "Put sessions into SOURCE. PATH is a session file (.jsonl), an archive of one (.jsonl.gz), what sessionfs bundle\n" +
			"wrote (- for the standard input), or a directory that has such files at any depth, such as the agent directory\n" +
			"of another machine. Links are not followed.\n" +
			"A session goes where SOURCE has it already, else into the directory in sessions/ in which it lay. A file that\n" +
			"did not lie in one goes where a new session of the working directory in its header would. It appears whole or\n" +
			"not at all, and is never replaced: one that is there gets what the copy has more. The files beside it and the\n" +
			"images that it refers to come along. The same command once more changes nothing.\n" +
			"Exit status: 0, or 1 where something was refused.",
		Example: "  sessionfs import ~/old-laptop/.omp/agent\n  ssh laptop sessionfs bundle 019d3d9 | sessionfs import -",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		into, err := src.Importer(cmd.Context(), to)
		if err != nil {
			return refuse(exitUsage, "--to: %s", err)
		}
		from, err := fs.OpenSources()
		if err != nil {
			return err
		}
		defer from.Close()
		for _, path := range args {
			if err := from.Add(cmd.Context(), path, cmd.InOrStdin()); err != nil {
				return err
			}
		}
		counts, failed := map[writer.Outcome]int{}, false
		for i, f := range from.Found {
			showProgress(cmd.ErrOrStderr(), i, len(from.Found))
			r, err := into.Import(cmd.Context(), f)
			showProgress(cmd.ErrOrStderr(), 0, 0)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), visible(lineOf(f, r)))
			}
			if err != nil {
				return err
			}
			failed = failed || r.Err != nil || r.Partly
			counts[r.Outcome]++
		}
		others := ""
		if from.Others > 0 {
			others = fmt.Sprintf("; %d other files are left out", from.Others)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d new, %d longer, %d same, %d refused%s\n",
			counts[writer.Added], counts[writer.Grown], counts[writer.Unchanged], counts[transfer.Refused], others)
		if err == nil && failed {
			err = ended(exitFailure)
		}
		return err
	})
	cmd.Flags().StringVar(&to, "to", "", "the `DIR` in sessions/, or the working directory, to which all of them go")
	cmd.ValidArgsFunction = nil // PATH is a file of the machine
	return cmd
}

// barWidth is how many columns the bar of showProgress has.
const barWidth = 40

// showProgress shows on a terminal that done of so many sessions are done, and takes that away again if there are none.
func showProgress(out io.Writer, done, of int) {
	if !isTerminal(out) {
		return
	}
	fmt.Fprint(out, "\r\x1b[K")
	if of > 0 {
		bar := strings.Repeat("#", barWidth*done/of)
		fmt.Fprintf(out, "[%-*s] %d of %d", barWidth, bar, done, of)
	}
}

// lineOf tells what became of a session.
func lineOf(f transfer.Found, r transfer.Result) string {
	line := fmt.Sprintf("%-7s %s", r.Outcome, r.Path)
	if r.Err != nil {
		line = "refused: " + filepath.Clean(f.Path) + ": " + reasonOf(r.Err)
	}
	if len(r.Notes) > 0 {
		line += " (" + strings.Join(r.Notes, "; ") + ")"
	}
	return line
}
