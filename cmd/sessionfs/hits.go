package main

import (
	"bufio"
	"errors"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/search"
)

// hitPrinter prints what was found, a session as soon as it is searched.
type hitPrinter struct {
	cmd   *cobra.Command
	out   *bufio.Writer
	marks *regexp.Regexp // what is highlighted in the line of a hit; nil for nothing
	// columns is the first line of a table, and row appends that of a hit.
	columns    string
	row        func(h *search.Hit, dst []byte) []byte
	isTerminal bool
	colours    bool
	found      bool
	unread     bool // something could not be searched
}

func newHitPrinter(cmd *cobra.Command, marks *regexp.Regexp) *hitPrinter {
	p := &hitPrinter{cmd: cmd, out: bufio.NewWriter(cmd.OutOrStdout()), marks: marks, columns: search.Columns, row: (*search.Hit).AppendLine}
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
		p.out.WriteString(p.columns)
	}
	for i := range hits {
		p.out.Write(p.row(&hits[i], p.out.AvailableBuffer()))
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
