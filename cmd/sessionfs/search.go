package main

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
)

// searchCommand is sessionfs search.
func searchCommand() *cobra.Command {
	f := &finding{}
	var pattern string
	cmd := onSource(words, &cobra.Command{
		Use:        "search [-s SOURCE] [-c | -l] [-m N] [-E REGEX] QUERY...",
		Short:      "Find what was said in any session",
		SuggestFor: []string{"find", "grep"},
		Long: "Find the entries of any session that have all words of QUERY, a word with a capital exactly. \"a phrase\", -word, " +
			"role:user (assistant, tool), tool:, model:, title:, cwd:, agent:, after:DATE, before:DATE, in:archive.\n\n" +
			"Off a terminal a line for each, the newest first: PATH, which sessionfs cat takes, time, what it is, text; with " +
			"tabs between them; behind that the first line of the prompt that it answers. Exit status: 0 something is found, 1 nothing is, 2 an error.",
		Example: "  sessionfs search '\"moon phase\" role:user after:2026-01-31 -low'",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("regexp") {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
	}, func(cmd *cobra.Command, src *source, args []string) (err error) {
		text := strings.Join(args, " ")
		query, err := search.ParseQuery(text)
		if cmd.Flags().Changed("regexp") {
			query, err = search.ParseRegexp(pattern, text)
		}
		if err != nil {
			return err
		}
		f.marks, f.advice = query.Marks(), "add words, after: or cwd:"
		return f.run(cmd, src, query, query)
	})
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return refuse(exitUsage, "search: %s (see 'sessionfs help search'; -- stands before words that begin with -)", err)
	})
	f.flags(cmd)
	cmd.Flags().StringVarP(&pattern, "regexp", "E", "", "entries that match `REGEX` too, in Go's syntax")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	endsWithTwo(cmd)
	return cmd
}

// touchedCommand is sessionfs touched.
func touchedCommand() *cobra.Command {
	f := &finding{}
	cmd := onSource(words, &cobra.Command{
		Use:   "touched [-s SOURCE] [-c | -l] [-m N] PATH",
		Short: "Find which sessions read or changed a file",
		Long: "Find the calls of tools, in any session, that name the file PATH or something below the directory PATH, which " +
			"need not exist any more.\n\n" +
			"Off a terminal a line for each, the newest first: PATH of the call, which sessionfs cat takes, time, what it is, " +
			"the tool and what it touched, the first line of the user's prompt before it; with tabs between them. " +
			"Exit status: 0 something is found, 1 nothing is, 2 an error.",
		Example: "  sessionfs touched main.go",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		name, windows, isAbs := names.AbsPath(args[0])
		if !isAbs {
			var err error
			if name, err = filepath.Abs(args[0]); err != nil {
				return err
			}
		}
		touched, err := search.NewTouched(filepath.ToSlash(name))
		if err != nil {
			return err
		}
		base := regexp.QuoteMeta(filepath.Base(name))
		if windows {
			base = "(?i)" + base
		}
		f.marks, f.advice = regexp.MustCompile(base), "look at a file or directory below"
		return f.run(cmd, src, nil, touched)
	})
	f.flags(cmd)
	cmd.ValidArgsFunction = nil // files of any kind
	endsWithTwo(cmd)
	return cmd
}

// finding is what a command finds, and how it prints that.
type finding struct {
	count, list, json bool
	max               int
	marks             *regexp.Regexp // what is highlighted in the line of a hit; nil for nothing
	advice            string         // how to find less
}

func (f *finding) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.count, "count", "c", false, "only PATHs of sessions, and how many hits each has")
	flags.BoolVarP(&f.list, "sessions", "l", false, "only PATHs of sessions")
	flags.IntVarP(&f.max, "max-count", "m", search.DefaultLimit, "at most `N` hits, or sessions; 0: all")
	flags.BoolVar(&f.json, "json", false, "a line of JSON for each")
}

// run prints what a Matcher finds among the sessions that a query is about, or among all if it is nil.
func (f *finding) run(cmd *cobra.Command, src *source, query *search.Query, m search.Matcher) error {
	if f.max < 0 {
		return fmt.Errorf("-m: needs a number, or 0 for all, not %d", f.max)
	}
	searcher, err := src.Searcher(query, f.max)
	if err != nil {
		return err
	}
	var unread []*search.Found
	found := 0
	err = paged(cmd, func(out *screen) error {
		p := &hitPrinter{finding: f, screen: out, out: bufio.NewWriter(out)}
		if f.count || f.list {
			var sessions []*search.Found
			if sessions, unread, err = searcher.Count(cmd.Context(), m); err != nil {
				return err
			}
			if found = len(sessions); cmd.Flags().Changed("max-count") && f.max > 0 {
				sessions = sessions[:min(found, f.max)]
			}
			p.sessions(sessions)
			return p.out.Flush()
		}
		result, err := searcher.Search(cmd.Context(), m)
		if err != nil {
			return err
		}
		unread, found = result.Unread, len(result.Hits)
		p.hits(result.Hits)
		if err := p.out.Flush(); err != nil {
			return err
		}
		if result.More {
			sayError(cmd, fmt.Errorf("there are more than these %d: %s, or -m 0 for all", found, f.advice))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, u := range unread {
		sayError(cmd, errors.New(visible(u.Path())+" could not be searched: "+visible(u.Err.Error())))
	}
	switch {
	case len(unread) > 0:
		return ended(exitNotDone)
	case found == 0:
		return ended(exitNothing)
	}
	return nil
}

// hitPrinter prints what was found.
type hitPrinter struct {
	*finding
	*screen
	out *bufio.Writer
}

// sessions prints the paths of sessions that have hits.
func (p *hitPrinter) sessions(all []*search.Found) {
	for _, s := range all {
		switch {
		case p.json:
			p.out.Write(s.AppendJSON(p.out.AvailableBuffer()))
		case p.count:
			fmt.Fprintf(p.out, "%s\t%d\n", visible(s.Directory()), s.Count)
		default:
			p.out.WriteString(visible(s.Directory()) + "\n")
		}
	}
}

// hits prints hits.
func (p *hitPrinter) hits(hits []search.Hit) {
	if p.people && !p.json {
		p.forPeople(hits)
		return
	}
	for i := range hits {
		if p.json {
			p.out.Write(hits[i].AppendJSON(p.out.AvailableBuffer()))
		} else {
			p.out.Write(hits[i].AppendLine(p.out.AvailableBuffer()))
		}
	}
}

// The colours are those of grep: what was found, and where.
const (
	colourMatch = "\x1b[1;31m"
	colourPath  = "\x1b[35m"
	colourTitle = "\x1b[1m"
	colourEnd   = "\x1b[0m"
)

// forPeople prints hits for reading, those of a session together below its name: for each its path, when and what, and the line.
func (p *hitPrinter) forPeople(hits []search.Hit) {
	of := map[string][]*search.Hit{}
	var sessions []string
	for i := range hits {
		dir := hits[i].Directory()
		if of[dir] == nil {
			sessions = append(sessions, dir)
		}
		of[dir] = append(of[dir], &hits[i])
	}
	for i, dir := range sessions {
		if i > 0 {
			p.out.WriteString("\n")
		}
		p.coloured(colourTitle, of[dir][0].Session)
		p.out.WriteString("\n")
		for _, h := range of[dir] {
			p.hit(h)
		}
	}
}

func (p *hitPrinter) hit(h *search.Hit) {
	p.coloured(colourPath, h.Path())
	p.out.WriteString("\n  " + h.Time.Local().Format("2006-01-02 15:04:05") + "  " + visible(h.What))
	if h.Copies > 0 {
		fmt.Fprintf(p.out, "  (copied by %d)", h.Copies)
	}
	p.out.WriteString("\n    ")
	line := visibleText(h.Line)
	if p.colours && p.marks != nil {
		line = p.marks.ReplaceAllString(line, colourMatch+"$0"+colourEnd)
	}
	p.out.WriteString(line + "\n")
	if h.Prompt != "" {
		p.out.WriteString("    asked: " + visibleText(h.Prompt) + "\n")
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

// wantsColours reports whether a terminal gets colours (no-color.org).
func wantsColours(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "" && getenv("TERM") != "dumb"
}

// visibleText is visible for text, in which tabs are common.
func visibleText(text string) string { return visible(strings.ReplaceAll(text, "\t", " ")) }
