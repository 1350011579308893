package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore"
	reports "sessionfs/sessioncore/report"
)

// This file has the commands with which a person reads a session: show and log. diff has its own.

// sessionArgument says what SESSION can be.
const sessionArgument = "SESSION is an id or its beginning, a path in a mount, or a .jsonl file; #ENTRY behind it is the\n" +
	"branch to that entry.\n"

// showCommand is sessionfs show.
func showCommand() *cobra.Command {
	return onSource(anySession, &cobra.Command{
		Use:   "show [-s SOURCE] SESSION",
		Short: "Read a session",
		Long: "Read the current branch of a session, as transcript.md in a mount has it: on a terminal in a pager ($PAGER, else\n" +
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

// The colours of what is read, beside those of search.go.
const (
	colourDim   = "\x1b[2m"
	colourGreen = "\x1b[32m"
	colourRed   = "\x1b[31m"
	colourName  = "\x1b[33m"
)

// colourMarkdown copies a transcript with colours. What others wrote in it has no effect on a terminal.
func colourMarkdown(out io.Writer, in io.Reader) error {
	w, r := bufio.NewWriter(out), bufio.NewReaderSize(in, copySize)
	var block fence
	for {
		line, err := r.ReadSlice('\n')
		text := bytes.TrimSuffix(line, []byte("\n"))
		before, after := block.colourOf(text), ""
		if before != "" {
			after = colourEnd
		}
		if _, failed := fmt.Fprintf(w, "%s%s%s%s", before, text, after, line[len(text):]); failed != nil {
			return failed
		}
		if err == io.EOF {
			return w.Flush()
		} else if err != nil && err != bufio.ErrBufferFull { // the rest of a long line is coloured by itself
			return err
		}
	}
}

// fence is the code block in which a line is.
type fence struct {
	marks  []byte // that it begins with, nil outside
	isDiff bool
}

// colourOf returns the colour of the next line.
func (f *fence) colourOf(line []byte) string {
	text := bytes.TrimLeft(line, " ")
	rest := bytes.TrimLeft(text, "`")
	if len(text)-len(rest) < 3 {
		rest = bytes.TrimLeft(text, "~")
	}
	marks := text[:len(text)-len(rest)]
	switch {
	case len(marks) >= 3 && f.marks == nil:
		f.marks, f.isDiff = bytes.Clone(marks), string(rest) == "diff"
		return colourDim
	case len(marks) >= len(f.marks) && f.marks != nil && marks[0] == f.marks[0] && len(bytes.TrimSpace(rest)) == 0:
		f.marks = nil
		return colourDim
	case f.marks != nil:
		return f.colourIn(line)
	case bytes.HasPrefix(line, []byte("#")):
		return colourTitle
	case aside.Match(line):
		return colourDim
	}
	return ""
}

// aside matches the lines of a transcript that are not what somebody said aloud: results, notes, thoughts.
var aside = regexp.MustCompile(`^(?:\*\*Result\*\*|\*[^* ]|> )`)

// colourIn returns the colour of a line in the block.
func (f *fence) colourIn(line []byte) string {
	if !f.isDiff || len(line) == 0 {
		return ""
	}
	return diffColours[line[0]]
}

// diffColours are those of the lines of a diff by their first characters.
var diffColours = map[byte]string{'+': colourGreen, '-': colourRed, '@': colourPath}

// logCommand is sessionfs log.
func logCommand() *cobra.Command {
	var all bool
	cmd := onSource(anySession, &cobra.Command{
		Use:   "log [-a] [-s SOURCE] SESSION",
		Short: "Show the tree of a session, as git log --graph does",
		Long: "Show the branches of a session, the newest first: of each message of the user and the model, each summary and label\n" +
			"the beginning of its entry's id, its time (UTC), what it is and how it begins. leaf is where the session stands; what a client that\n" +
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
			w := bufio.NewWriter(out)
			err := reports.Log(cmd.Context(), snap, all, func(line *reports.LogLine) error {
				return printLog(w, out.colours, snap, line)
			})
			if err != nil {
				return err
			}
			return w.Flush()
		})
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "every entry, also results of tools and changes of settings")
	return cmd
}

// printLog prints a line of a log.
func printLog(w *bufio.Writer, colours bool, snap *sessioncore.Snapshot, line *reports.LogLine) error {
	coloured := func(colour, text string) string {
		if !colours || text == "" {
			return text
		}
		return colour + text + colourEnd
	}
	text := line.Graph
	if line.Entry != sessioncore.NoEntry {
		text += " " + coloured(colourName, visible(line.ID))
		if len(line.Marks) > 0 {
			text += " " + coloured(colourMatch, visible("("+strings.Join(line.Marks, ", ")+")"))
		}
		text += " " + snap.Time(line.Entry).UTC().Format("2006-01-02 15:04:05") + " " + visible(line.What+": "+line.Said)
	}
	_, err := w.WriteString(strings.TrimRight(text, " ") + "\n")
	return err
}
