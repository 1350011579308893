package main

import (
	"context"
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
		Long: "Find the entries of any session that have all words of QUERY, a word with a capital exactly. \"a " +
			"phrase\", -word, role:user (assistant, tool), tool:, model:, title:, cwd:, agent:, after:DATE, " +
			"before:DATE, in:archive. DATE is local: 2026-01-31, 2026-01, today, monday, 7d, 2w.\n\n" +
			"Off a terminal a line for each, the newest first: PATH, which sessionfs cat takes, time, what it is, " +
			"text; with tabs between them; behind that the first line of the prompt that it answers. Exit status: 0 " +
			"something is found, 1 nothing is, 2 an error.",
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
		return refuse(exitUsage, "search: %s (see 'sessionfs help search'; -- stands before words that begin with -)",
			err)
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
	patch := false
	cmd := onSource(words, &cobra.Command{
		Use:   "touched [-s SOURCE] [-c | -l | -p] [-m N] PATH",
		Short: "Find which sessions read or changed a file",
		Long: "Find the calls of tools, in any session, that name the file PATH or something below the directory " +
			"PATH, which need not exist any more.\n\n" +
			"Off a terminal a line for each, the newest first: PATH of the call, which sessionfs cat takes, time, " +
			"what it is, the tool and what it touched, the first line of the user's prompt before it; with tabs " +
			"between them. Exit status: 0 something is found, 1 nothing is, 2 an error.",
		Example: "  sessionfs touched main.go",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		if patch {
			return src.printEdits(cmd, args[0])
		}
		name, touched, err := touchedBy(args[0])
		if err != nil {
			return err
		}
		base := regexp.QuoteMeta(filepath.Base(name))
		if _, windows, _ := names.AbsPath(args[0]); windows {
			base = "(?i)" + base
		}
		f.marks, f.advice = regexp.MustCompile(base), "look at a file or directory below"
		return f.run(cmd, src, nil, touched)
	})
	f.flags(cmd)
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "each edit of the file as a diff below its prompt")
	cmd.ValidArgsFunction = nil // files of any kind
	endsWithTwo(cmd)
	return cmd
}

// touchedBy returns the absolute path of a file, here or on Windows, and the matcher of its calls.
func touchedBy(file string) (name string, touched *search.Touched, err error) {
	name, _, isAbs := names.AbsPath(file)
	if !isAbs {
		if name, err = filepath.Abs(file); err != nil {
			return "", nil, err
		}
	}
	touched, err = search.NewTouched(filepath.ToSlash(name))
	return name, touched, err
}

// finding collects and prints the hits of a command.
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

// run prints the hits of a Matcher among the sessions of a query, or among all sessions if it is
// nil.
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
		if f.count || f.list {
			var sessions []*search.Found
			err = withProgress(cmd, func(ctx context.Context) (err error) {
				sessions, unread, err = searcher.Count(ctx, m)
				return err
			})
			if err != nil {
				return err
			}
			if found = len(sessions); cmd.Flags().Changed("max-count") && f.max > 0 {
				sessions = sessions[:min(found, f.max)]
			}
			f.printSessions(out, sessions)
			return nil
		}
		var result *search.Result
		err = withProgress(cmd, func(ctx context.Context) (err error) {
			result, err = searcher.Search(ctx, m)
			return err
		})
		if err != nil {
			return err
		}
		unread, found = result.Unread, len(result.Hits)
		f.printHits(out, result.Hits)
		if err := out.Flush(); err != nil {
			return err
		}
		if result.More && !cmd.Flags().Changed("max-count") { // grep's -m is silent too
			sayError(cmd, fmt.Errorf("there are more than these %d: %s, or -m 0 for all", found, f.advice))
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch err := sayUnread(cmd, unread); {
	case err != nil:
		return err
	case found == 0:
		return ended(exitNothing)
	}
	return nil
}

// sayUnread prints the sessions that could not be searched. Where there are any, it ends the
// command with exitNotDone.
func sayUnread(cmd *cobra.Command, unread []*search.Found) error {
	for _, u := range unread {
		sayError(cmd, errors.New(names.Visible(u.Path())+" could not be searched: "+names.Visible(u.Err.Error())))
	}
	if len(unread) > 0 {
		return ended(exitNotDone)
	}
	return nil
}

// printSessions prints the paths of sessions that have hits.
func (f *finding) printSessions(out *screen, all []*search.Found) {
	for _, s := range all {
		switch {
		case f.json:
			out.Write(s.AppendJSON(out.AvailableBuffer()))
		case f.count:
			fmt.Fprintf(out, "%s\t%d\n", names.Visible(s.Directory()), s.Count)
		default:
			out.WriteString(names.Visible(s.Directory()) + "\n")
		}
	}
}

// printHits prints hits: on a terminal those of a session together below its name.
func (f *finding) printHits(out *screen, hits []search.Hit) {
	of := map[string][]*search.Hit{}
	var sessions []string
	for i := range hits {
		switch dir := hits[i].Directory(); {
		case f.json:
			out.Write(hits[i].AppendJSON(out.AvailableBuffer()))
		case !out.people:
			out.Write(hits[i].AppendLine(out.AvailableBuffer()))
		default:
			if of[dir] == nil {
				sessions = append(sessions, dir)
			}
			of[dir] = append(of[dir], &hits[i])
		}
	}
	for i, dir := range sessions {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(out.coloured(colourTitle, names.VisibleLine(of[dir][0].Session)) + "\n")
		for _, h := range of[dir] {
			f.printHit(out, h)
		}
	}
}

// printHit prints a hit for reading: its path, time, kind and line.
func (f *finding) printHit(out *screen, h *search.Hit) {
	out.WriteString(out.coloured(colourPath, names.VisibleLine(h.Path())) + "\n")
	out.WriteString("  " + h.Time.Local().Format("2006-01-02 15:04:05") + "  " + names.Visible(h.What))
	if h.Copies > 0 {
		fmt.Fprintf(out, "  (copied by %d)", h.Copies)
	}
	line := names.VisibleLine(h.Line)
	if out.colours && f.marks != nil {
		line = f.marks.ReplaceAllString(line, colourMatch+"$0"+colourEnd)
	}
	out.WriteString("\n    " + line + "\n")
	if h.Prompt != "" {
		out.WriteString("    asked: " + names.VisibleLine(h.Prompt) + "\n")
	}
}
