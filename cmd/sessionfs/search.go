package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/blame"
	"sessionfs/sessioncore/names"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/view"
	"sessionfs/source"
)

// hitOptions are the options of the commands that print hits.
type hitOptions struct {
	count  bool
	list   bool
	asJSON bool
	max    int
	hasMax bool // max is given
}

// add adds the options to a command.
func (o *hitOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&o.count, "count", "c", false, "only PATHs of sessions, and how many hits each has")
	flags.BoolVarP(&o.list, "sessions", "l", false, "only PATHs of sessions")
	flags.IntVarP(&o.max, "max-count", "m", search.DefaultLimit, "at most `N` hits, or sessions; 0: all")
	flags.BoolVar(&o.asJSON, "json", false, "a line of JSON for each")
}

// searchOptions are the options of search.
type searchOptions struct {
	hitOptions
	query      string
	pattern    string
	hasPattern bool // pattern is given
	around     uint // how many entries before and after each hit
}

// searchCommand is sessionfs search.
func searchCommand() *cobra.Command {
	var o searchOptions
	cmd := onSource(source.Words, &cobra.Command{
		Use:   "search [-s SOURCE] [-c | -l | -C N] [-m N] [-E REGEX] QUERY...",
		Short: "Find what was said in any session",
		Long: "Find the entries of any session that have all words of QUERY, a word with a capital exactly. \"a " +
			"phrase\", -word, role:user (assistant, tool), tool:, model:, title:, cwd:, agent:, after:DATE, " +
			"before:DATE, in:archive; cwd:. is here. DATE is local: 2026-01-31, 2026-01, today, monday, 7d, 2w.\n\n" +
			"Off a terminal a line for each, the newest first: PATH, which sessionfs cat takes, time, what it is, " +
			"the line of text that has the match; with tabs between them; behind that the first line of the prompt " +
			"that it answers. Both are whole. Exit status: 0 " +
			"something is found, 1 nothing is, 2 an error.",
		Example: "  sessionfs search '\"high waters\" role:user after:2026-01-31 -moon'",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("regexp") {
				return nil
			}
			return someArgs(cmd, args)
		},
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.query = strings.Join(args, " ")
		o.hasPattern = cmd.Flags().Changed("regexp")
		o.hasMax = cmd.Flags().Changed("max-count")
		return runSearch(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageErrorWith(cmd, err, "see 'sessionfs help search'; -- stands before words that begin with -")
	})
	o.add(cmd)
	cmd.Flags().UintVarP(&o.around, "context", "C", 0, "`N` entries before and after each hit too")
	for _, other := range []string{"count", "sessions", "json"} {
		exclusive(cmd, "context", other)
	}
	cmd.Flags().StringVarP(&o.pattern, "regexp", "E", "", "entries that match `REGEX` too, in Go's syntax")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	endsWithTwo(cmd)
	return cmd
}

// parse returns the query of the options, with their regular expression if they have one. An error is one of the
// query.
func (o *searchOptions) parse() (*search.Query, error) {
	parser := queryParser()
	if o.hasPattern {
		return parser.Regexp(o.pattern, o.query)
	}
	return parser.Query(o.query)
}

// runSearch prints the entries that a query finds.
func runSearch(ctx context.Context, o searchOptions, src *sourceTree, c *console) error {
	query, err := o.parse()
	if err != nil {
		return err
	}
	f := &finding{
		hitOptions: o.hitOptions,
		src:        src,
		console:    c,
		around:     o.around,
		marks:      query.Marks(),
	}
	return f.run(ctx, query, query)
}

// queryParser returns the parser of queries for this user in the working directory.
func queryParser() search.Parser {
	dir, _ := unix.Getwd() // "" where it is gone
	home, _ := os.UserHomeDir()
	return search.Parser{Dir: dir, Home: home}
}

// touchedOptions are the options of touched.
type touchedOptions struct {
	hitOptions
	path  string
	patch bool
	was   []string // earlier paths of the file
}

// touchedCommand is sessionfs touched.
func touchedCommand() *cobra.Command {
	var o touchedOptions
	cmd := onSource(source.Words, &cobra.Command{
		Use:   "touched [-s SOURCE] [-c | -l | -p [--was PATH]] [-m N] PATH",
		Short: "Find which sessions read or changed a file",
		Long: "Find the calls of tools, in any session, that name the file PATH or something below the directory " +
			"PATH, which need not exist any more.\n\n" +
			"Off a terminal a line for each, the newest first: PATH of the call, which sessionfs cat takes, time, " +
			"what it is, the tool and what it touched, the first line of the user's prompt before it; with tabs " +
			"between them. Exit status: 0 something is found, 1 nothing is, 2 an error.",
		Example: "  sessionfs touched main.go",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.path = args[0]
		o.hasMax = cmd.Flags().Changed("max-count")
		return runTouched(cmd.Context(), o, src, consoleOf(cmd))
	})
	o.add(cmd)
	cmd.Flags().BoolVarP(&o.patch, "patch", "p", false, "each edit of the file as a diff below its prompt")
	earlierPaths(cmd, &o.was)
	for _, other := range []string{"count", "sessions", "max-count", "json"} {
		exclusive(cmd, "patch", other)
	}
	cmd.ValidArgsFunction = nil // files of any kind
	endsWithTwo(cmd)
	return cmd
}

// runTouched prints the calls that name a file, or its edits.
func runTouched(ctx context.Context, o touchedOptions, src *sourceTree, c *console) error {
	if o.patch {
		return src.printEdits(ctx, c, o.path, o.was)
	}
	if len(o.was) > 0 {
		return refuse(exitUsage, "touched: --was needs -p; without -p, type: sessionfs touched %s", quoteWord(o.was[0]))
	}
	touched, err := touchedBy(o.path)
	if err != nil {
		return err
	}
	f := &finding{
		hitOptions: o.hitOptions,
		src:        src,
		console:    c,
		prompts:    true,
		marks:      touched.Marks(),
		widen: func(ctx context.Context, by *search.Searcher, hits []search.Hit) (search.Matcher, error) {
			return src.withEarlier(ctx, touched, by, hits, c.noteEarlier("the calls that name that count too"))
		},
	}
	err = f.run(ctx, nil, touched)
	code, ok := errors.AsType[status](err)
	if ok && code == exitNothing {
		c.sayError(src.unnamed(ctx, touched, ""))
	}
	return err
}

// withEarlier returns a matcher of the calls that name a file or a path where sessions say that it was
// before, and notes these paths; nil if there are none. searcher has found hits in a search for the file.
func (src *sourceTree) withEarlier(
	ctx context.Context, touched *search.Touched, searcher *search.Searcher, hits []search.Hit, note func(*blame.Earlier),
) (search.Matcher, error) {
	if searcher.Limit < search.DefaultLimit { // it may not find the oldest call
		searcher = nil
		hits = nil
	}
	all, err := src.earlier(ctx, touched, searcher, hits)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var earlier []*search.Touched
	for i := range all {
		earlier = append(earlier, all[i].Touched)
		note(&all[i])
	}
	return touched.With(earlier), nil
}

// unnamed returns an error that no session names a file. It has the most similar path that one names, with
// advice about that.
func (src *sourceTree) unnamed(ctx context.Context, touched *search.Touched, advice string) error {
	said := "no session names " + touched.Path()
	nearest := src.nearest(ctx, touched)
	if nearest != "" {
		said += "; the most similar path that one names is " + nearest + advice
	}
	return errors.New(said)
}

// nearest returns the most similar path to one that was searched for, "" for none or after an error. A name that no
// session has is not searched for again.
func (src *sourceTree) nearest(ctx context.Context, touched *search.Touched) string {
	if !touched.Occurs() {
		return ""
	}
	searcher, err := src.searcher(nil, 0)
	if err != nil {
		return "" // the message alone has less
	}
	elsewhere, others := touched.Elsewhere()
	_, _, err = searcher.Count(ctx, elsewhere) // which collects the paths in others
	if err != nil {
		return ""
	}
	return others.Nearest(touched.Path())
}

// touchedBy returns the matcher of the calls that name a file. A relative path is one of the working directory; an
// absolute one may be of Windows.
func touchedBy(file string) (*search.Touched, error) {
	_, _, isAbs := names.AbsPath(file)
	if !isAbs {
		dir, err := unix.Getwd() // without links, as agents do
		if err != nil {
			return nil, err
		}
		file = filepath.Join(dir, file)
	}
	return search.NewTouched(file)
}

// finding collects and prints the hits of a command.
type finding struct {
	hitOptions
	src     *sourceTree
	console *console
	prompts bool           // are printed on a terminal
	around  uint           // how many entries before and after each hit
	marks   *regexp.Regexp // parts of the line of a hit that are highlighted; nil for none
	widen   widening       // nil for none
}

// widening returns, after a search by a searcher, a matcher that finds more, nil for none. hits are the hits of
// the search, nil where they were only counted.
type widening func(ctx context.Context, by *search.Searcher, hits []search.Hit) (search.Matcher, error)

// run prints the hits of a Matcher among the sessions of a query, or among all sessions if it is
// nil, and ends the command with the status of a search.
func (f *finding) run(ctx context.Context, query *search.Query, m search.Matcher) error {
	if f.max < 0 {
		return fmt.Errorf("-m: needs a number, or 0 for all, not %d", f.max)
	}
	searcher, err := f.src.searcher(query, f.max)
	if err != nil {
		return err
	}
	var unread []*search.FileHits
	found := 0
	err = f.console.paged(func(out *view.Screen) (err error) {
		p := f.printer(ctx, out)
		if f.count || f.list {
			found, unread, err = f.printCounts(ctx, searcher, m, p)
			return err
		}
		found, unread, err = f.printHits(ctx, searcher, m, p)
		return err
	})
	return f.console.endSearch(err, unread, found > 0)
}

// printCounts prints the sessions with hits. It returns how many there are, and those that could not be searched.
func (f *finding) printCounts(
	ctx context.Context, by *search.Searcher, m search.Matcher, p *search.Printer,
) (found int, unread []*search.FileHits, err error) {
	var sessions []*search.FileHits
	err = f.console.withProgress(ctx, func(ctx context.Context) error {
		sessions, unread, err = f.counts(ctx, by, m)
		return err
	})
	if err != nil {
		return 0, unread, err
	}
	found = len(sessions)
	if f.hasMax && f.max > 0 {
		sessions = sessions[:min(found, f.max)]
	}
	p.Sessions(sessions)
	return found, unread, nil
}

// printHits prints the hits with a printer. It returns how many there are, and the sessions that could not be searched.
func (f *finding) printHits(
	ctx context.Context, by *search.Searcher, m search.Matcher, p *search.Printer,
) (found int, unread []*search.FileHits, err error) {
	var result *search.Result
	err = f.console.withProgress(ctx, func(ctx context.Context) error {
		result, m, err = f.hits(ctx, by, m)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	p.Whole = func(h *search.Hit) (search.Hit, error) { return by.Whole(ctx, m, h) }
	found = len(result.Hits)
	err = p.Hits(result.Hits)
	flushed := p.Out.Flush()
	if err == nil {
		err = flushed
	}
	if err == nil && result.More && !f.hasMax { // grep's -m is silent too
		f.console.sayError(fmt.Errorf("there are more than these %d: %s, or -m 0 for all", found, result.Advice()))
	}
	return found, result.Unread, err
}

// hits searches for a Matcher, and once more where there is one that finds more. It returns the hits, and the
// Matcher that has found them.
func (f *finding) hits(ctx context.Context, by *search.Searcher, m search.Matcher) (*search.Result, search.Matcher, error) {
	result, err := by.Search(ctx, m)
	if err != nil || f.widen == nil {
		return result, m, err
	}
	wider, err := f.widen(ctx, by, result.Hits)
	if err != nil || wider == nil {
		return result, m, err
	}
	result, err = by.Search(ctx, wider)
	return result, wider, err
}

// counts is hits for the numbers of hits alone: it returns the sessions that have any, and those that could not
// be searched.
func (f *finding) counts(ctx context.Context, by *search.Searcher, m search.Matcher) (sessions, unread []*search.FileHits, err error) {
	sessions, unread, err = by.Count(ctx, m)
	if err != nil || f.widen == nil {
		return sessions, unread, err
	}
	wider, err := f.widen(ctx, by, nil)
	if err != nil || wider == nil {
		return sessions, unread, err
	}
	return by.Count(ctx, wider)
}

// printer returns the printer of the hits.
func (f *finding) printer(ctx context.Context, out *view.Screen) *search.Printer {
	p := &search.Printer{
		Out:     out,
		Width:   max(0, terminalWidth(f.console.out)),
		JSON:    f.asJSON,
		Count:   f.count,
		Prompts: f.prompts,
		Marks:   f.marks,
		Agent:   func(found *search.FileHits) string { return f.src.agentOf(found.Directory()) },
	}
	if f.around > 0 {
		p.Around = func(h *search.Hit) (before, after []search.Hit, err error) {
			return f.src.around(ctx, h, int(min(f.around, maxAround)))
		}
	}
	return p
}

// maxAround bounds the entries around a hit.
const maxAround = 1000

// around returns entries before and after a hit on a branch through it, as hits in the order of the branch: the
// nearest ones that say something, at most count on each side. A hit in a title has none.
func (src *sourceTree) around(ctx context.Context, h *search.Hit, count int) (before, after []search.Hit, err error) {
	if h.Entry == "" { // a title
		return nil, nil, nil
	}
	snap, err := src.Snapshot(ctx, h.Directory())
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	entry, err := snap.FindName(h.Entry)
	if err != nil {
		return nil, nil, err
	}
	branch := snap.Path(view.BranchThrough(snap, entry))
	index := slices.Index(branch, entry)
	if index < 0 {
		return nil, nil, nil
	}
	n := &neighbours{
		snap:   snap,
		reader: sessioncore.NewEntryReader(snap),
		hit:    h,
	}
	backwards := slices.Clone(branch[:index])
	slices.Reverse(backwards)
	before, err = n.first(ctx, backwards, count)
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(before)
	after, err = n.first(ctx, branch[index+1:], count)
	return before, after, err
}

// neighbours reads the entries around a hit.
type neighbours struct {
	snap   *sessioncore.Snapshot
	reader sessioncore.EntryReader
	hit    *search.Hit
}

// first returns the first ones of entries that say something, at most count, as hits of the same session.
func (n *neighbours) first(ctx context.Context, entries []sessioncore.Entry, count int) (found []search.Hit, err error) {
	for _, e := range entries {
		if len(found) == count {
			break
		}
		said, _, err := reports.Said(ctx, n.snap, n.reader.Read, e)
		if err != nil {
			return nil, err
		}
		if said == "" {
			continue
		}
		found = append(found, search.Hit{
			FileHits: n.hit.FileHits,
			Entry:    n.snap.Name(e),
			What:     n.snap.PathLabel(e),
			Time:     n.snap.Time(e),
			Line:     said,
		})
	}
	return found, nil
}

// endSearch prints the sessions that could not be searched, and returns the error that ends the command: err if it
// is not nil, else exitNotDone where there are such sessions, exitNothing where nothing is found, or nil.
func (c *console) endSearch(err error, unread []*search.FileHits, found bool) error {
	for _, u := range unread {
		reason := names.Visible(u.Err.Error())
		c.sayError(errors.New(names.Visible(u.Path()) + " could not be searched: " + reason))
	}
	switch {
	case err != nil:
		return err
	case len(unread) > 0:
		return ended(exitNotDone)
	case !found:
		return ended(exitNothing)
	}
	return nil
}
