package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/search"
)

// searchCommand is sessionfs search.
func searchCommand() *cobra.Command {
	cmd := onSource(noPaths, &cobra.Command{
		Use:        "search [-s SOURCE] QUERY...",
		Short:      "Find what was said in any session",
		SuggestFor: []string{"find", "grep"},
		Long: "Find what was said in any session: messages, tool calls and their results, titles, labels. The session that was\n" +
			"modified last comes first. Off a terminal the output is that of search/QUERY/results.tsv in a mount.\n\n" +
			"All words of QUERY must be in one entry; a word with a capital is exact. \"a phrase\", -word, role:user (assistant,\n" +
			"tool), tool:NAME, cwd:PATH, after:DATE, before:DATE, in:archive. Several arguments are one query. Quote for the\n" +
			"shell what has quotes or begins with a dash.\n\n" +
			"Exit status: 0 something is found, 1 nothing is, 2 the query is wrong, or something could not be searched.",
		Example: "  sessionfs search tides\n  sessionfs search '\"moon phase\" role:user after:2026-01-31 -low'",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		query, err := search.ParseQuery(strings.Join(args, " "))
		if err != nil {
			return err
		}
		p := newHitPrinter(cmd, query.Marks())
		return p.end(src.Search(cmd.Context(), query, p.session))
	})
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	endsWithTwo(cmd)
	return cmd
}

// hitPrinter prints what was found, a session as soon as it is searched.
type hitPrinter struct {
	cmd        *cobra.Command
	out        *bufio.Writer
	marks      *regexp.Regexp // what is highlighted in the line of a hit; nil for nothing
	prompts    bool           // a table has a column for them
	isTerminal bool
	colours    bool
	found      bool
	unread     bool // something could not be searched
}

func newHitPrinter(cmd *cobra.Command, marks *regexp.Regexp) *hitPrinter {
	p := &hitPrinter{cmd: cmd, out: bufio.NewWriter(cmd.OutOrStdout()), marks: marks}
	p.isTerminal = isTerminal(cmd.OutOrStdout())
	p.colours = p.isTerminal && wantsColours(os.Getenv)
	return p
}

// wantsColours reports whether a terminal gets colours (no-color.org).
func wantsColours(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// session prints what was found in a session.
func (p *hitPrinter) session(found *search.Found) error {
	if found.Err != nil {
		p.unread = true
		sayError(p.cmd, errors.New(visible(found.Path())+" could not be searched: "+visible(found.Err.Error())))
		return nil
	}
	if len(found.Hits) == 0 {
		return nil
	}
	if p.isTerminal {
		p.people(found.Hits)
	} else {
		p.table(found.Hits)
	}
	p.found = true
	return p.out.Flush()
}

// end returns the error with which the command ends.
func (p *hitPrinter) end(err error) error {
	switch {
	case err != nil && p.cmd.Context().Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		return err
	case p.unread:
		return ended(exitNotDone)
	case !p.found:
		return ended(exitNothing)
	}
	return nil
}

// table prints hits as results.tsv has them.
func (p *hitPrinter) table(hits []search.Hit) {
	if !p.found {
		p.out.WriteString(search.Columns(p.prompts))
	}
	for i := range hits {
		p.out.Write(hits[i].AppendLine(p.out.AvailableBuffer(), p.prompts))
	}
}

// The colours are those of grep: what was found, and where.
const (
	colourMatch = "\x1b[1;31m"
	colourPath  = "\x1b[35m"
	colourTitle = "\x1b[1m"
	colourEnd   = "\x1b[0m"
)

// people prints the hits of a session for reading: its name and path, and for each hit when, what and where, and the line.
func (p *hitPrinter) people(hits []search.Hit) {
	if p.found {
		p.out.WriteString("\n")
	}
	p.coloured(colourTitle, hits[0].Session)
	p.out.WriteString("\n")
	p.coloured(colourPath, hits[0].Directory())
	p.out.WriteString("\n")
	for i := range hits {
		h := &hits[i]
		p.out.WriteString("  " + h.Time.Local().Format("2006-01-02 15:04:05") + "  " + visible(h.What) + "  ")
		p.coloured(colourPath, h.Below())
		if h.Prompt != "" {
			p.out.WriteString("  after ")
			p.coloured(colourPath, h.BelowPrompt())
		}
		p.out.WriteString("\n    ")
		line := visibleText(h.Line)
		if p.colours && p.marks != nil {
			line = p.marks.ReplaceAllString(line, colourMatch+"$0"+colourEnd)
		}
		p.out.WriteString(line + "\n")
	}
}

func (p *hitPrinter) coloured(colour, text string) {
	if p.colours {
		p.out.WriteString(colour)
	}
	p.out.WriteString(visibleText(text))
	if p.colours {
		p.out.WriteString(colourEnd)
	}
}

// visibleText is visible for text, in which tabs are common.
func visibleText(text string) string { return visible(strings.ReplaceAll(text, "\t", " ")) }

// touchedCommand is sessionfs touched.
func touchedCommand() *cobra.Command {
	cmd := onSource(noPaths, &cobra.Command{
		Use:   "touched [-s SOURCE] PATH",
		Short: "Find which sessions read or changed a file",
		Long: "Find the calls of tools, in any session, that name the file PATH or something below the directory PATH, and the\n" +
			"user's prompt before each. The session that was modified last comes first. PATH need not exist any more. Off a\n" +
			"terminal the output is that of by-file/PATH/results.tsv in a mount.\n\n" +
			"Exit status: 0 something is found, 1 nothing is, 2 something could not be searched.",
		Example: "  sessionfs touched main.go",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		name, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		touched, err := search.NewTouched(filepath.ToSlash(name))
		if err != nil {
			return err
		}
		p := newHitPrinter(cmd, regexp.MustCompile(regexp.QuoteMeta(filepath.Base(name))))
		p.prompts = true
		return p.end(src.Touched(cmd.Context(), touched, p.session))
	})
	cmd.ValidArgsFunction = nil // files of any kind
	endsWithTwo(cmd)
	return cmd
}
