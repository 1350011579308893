package main

import (
	"bufio"
	"bytes"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/view"
)

// sessionArgument says what SESSION can be.
const sessionArgument = "SESSION is an id or its beginning, a path in a mount, or a .jsonl file; " +
	"#ENTRY behind it is the branch to that entry.\n"

// showCommand is sessionfs show.
func showCommand() *cobra.Command {
	return onSource(anySession, &cobra.Command{
		Use:   "show [-s SOURCE] SESSION",
		Short: "Read a session",
		Long: "Read the current branch of a session, as transcript.md in a mount has it: on a terminal in a pager ($PAGER, else " +
			"less; PAGER=cat for none), elsewhere as Markdown. " + sessionArgument,
		Example: "  sessionfs show 019d3d9\n  sessionfs show 019d3d9#6ab2fbe0 > branch.md",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		at, err := src.session(args[0])
		if err != nil {
			return err
		}
		f, err := src.Open(path.Join(at.branch(), "transcript.md"))
		if err != nil {
			return err
		}
		defer f.Close()
		return paged(cmd, func(out *screen) error {
			if out.colours {
				return colourMarkdown(out, f)
			}
			_, err := io.CopyBuffer(struct{ io.Writer }{out}, f, make([]byte, copySize))
			return err
		})
	})
}

// colourMarkdown copies a transcript with colours. What others wrote in it has no effect on a terminal.
func colourMarkdown(out *screen, in io.Reader) error {
	r := bufio.NewReaderSize(in, copySize)
	var block fence
	for {
		line, err := r.ReadSlice('\n')
		text := bytes.TrimSuffix(line, []byte("\n"))
		if _, failed := out.WriteString(out.coloured(block.colourOf(text), string(text)) + string(line[len(text):])); failed != nil {
			return failed
		}
		if err == io.EOF {
			return nil
		} else if err != nil && err != bufio.ErrBufferFull { // the rest of a long line is coloured by itself
			return err
		}
	}
}

// fence is the code block in which a line is.
type fence struct {
	marks  []byte // its first line's, nil outside
	isDiff bool
}

// fenceLine matches the first line of a code block, and its last line if nothing follows the marks.
var fenceLine = regexp.MustCompile("^ *(`{3,}|~{3,})(.*)$")

// aside matches the lines of a transcript that nobody said aloud: results, notes, thoughts.
var aside = regexp.MustCompile(`^(?:\*\*Result\*\*|\*[^* ]|> )`)

// diffColours are those of the lines of a diff by their first characters.
var diffColours = map[byte]string{'+': colourGreen, '-': colourRed, '@': colourPath}

// colourOf returns the colour of the next line.
func (f *fence) colourOf(line []byte) string {
	m := fenceLine.FindSubmatch(line)
	switch {
	case m != nil && f.marks == nil:
		f.marks, f.isDiff = bytes.Clone(m[1]), string(m[2]) == "diff"
		return colourDim
	case m != nil && bytes.HasPrefix(m[1], f.marks) && len(bytes.TrimSpace(m[2])) == 0:
		f.marks = nil
		return colourDim
	case f.isDiff && f.marks != nil && len(line) > 0:
		return diffColours[line[0]]
	case f.marks != nil:
		return ""
	case bytes.HasPrefix(line, []byte("#")):
		return colourTitle
	case aside.Match(line):
		return colourDim
	}
	return ""
}

// logCommand is sessionfs log.
func logCommand() *cobra.Command {
	var all bool
	cmd := onSource(anySession, &cobra.Command{
		Use:   "log [-a] [-s SOURCE] SESSION",
		Short: "Show the tree of a session, as git log --graph does",
		Long: "Show the branches of a session, the newest first: of each message of the user and the model, each summary and label " +
			"the beginning of its entry's id, its time (UTC), what it is and how it begins. leaf is where the session stands; what a client that " +
			"resumes it does not show is lost. SESSION is an id or its beginning, a path in a mount, or a .jsonl file.",
		Example: "  sessionfs log 019d3d9 | grep lost",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		snap, _, err := src.branch(args[0])
		if err != nil {
			return err
		}
		defer snap.Release()
		return paged(cmd, func(out *screen) error {
			return reports.Log(cmd.Context(), snap, all, func(line *reports.LogLine) error {
				return printLog(out, snap, line)
			})
		})
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "every entry, also results of tools and changes of settings")
	return cmd
}

// printLog prints a line of a log.
func printLog(out *screen, snap *sessioncore.Snapshot, line *reports.LogLine) error {
	text := line.Graph
	if line.Entry != sessioncore.NoEntry {
		text += " " + out.coloured(colourName, visible(line.ID))
		if len(line.Marks) > 0 {
			text += " " + out.coloured(colourMatch, visible("("+strings.Join(line.Marks, ", ")+")"))
		}
		text += " " + snap.Time(line.Entry).UTC().Format("2006-01-02 15:04:05") + " " + visible(line.What+": "+line.Said)
	}
	_, err := out.WriteString(strings.TrimRight(text, " ") + "\n")
	return err
}

// diffCommand is sessionfs diff.
func diffCommand() *cobra.Command {
	cmd := onSource(anySession, &cobra.Command{
		Use:   "diff [-s SOURCE] SESSION SESSION",
		Short: "Compare two branches of a session, or two sessions, turn by turn",
		Long: "Compare two branches of a session, or two sessions such as a fork and its parent, as diff -u does. Turns are " +
			"compared by what was said and done in them, not by times and ids; of those that differ the lines of the same " +
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
			header := "--- " + visible(args[0]) + "\n+++ " + visible(args[1]) + "\n"
			differ, err = view.Diff(cmd.Context(), branches[0], branches[1], func(text []byte) error {
				if header != "" {
					out.WriteString(header)
					header = ""
				}
				line := string(text[:len(text)-1])
				_, err := out.WriteString(out.coloured(diffColours[text[0]], line) + "\n")
				return err
			})
			return err
		})
		if err == nil && differ {
			err = ended(exitNothing)
		}
		return err
	})
	endsWithTwo(cmd)
	return cmd
}
