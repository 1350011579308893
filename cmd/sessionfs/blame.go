package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/blame"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/view"
	"sessionfs/source"
)

// maxBlamed is the largest file that lines are told of, in bytes.
const maxBlamed = 64 << 20

// blameOptions are the options of blame.
type blameOptions struct {
	file   string
	lines  string   // the range of -L, "" for all lines
	was    []string // earlier paths of the file
	asJSON bool
}

// blameCommand is sessionfs blame.
func blameCommand() *cobra.Command {
	var o blameOptions
	cmd := onSource(source.Words, &cobra.Command{
		Use:   "blame [-s SOURCE] [-L FROM,TO] [--was PATH] [--json] FILE",
		Short: "Tell which edit of which agent put each line of a file there",
		Long: "Show for each line of FILE, as it is now, the newest edit of an agent that put it there: its date, " +
			"the agent, the entry, the title of the session and how the prompt begins; - where no agent did. ~ " +
			"marks a line of which the text alone tells that.\n\n" +
			"Off a terminal the columns are the number of the line, ~ or nothing, time, agent, session, entry, " +
			"prompt and text, with tabs between them.",
		Example: "  sessionfs blame -L 10,20 main.go",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.file = args[0]
		return runBlame(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.Flags().StringVarP(&o.lines, "lines", "L", "", "only the lines `FROM,TO`, or the line FROM")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "a line of JSON for each")
	earlierPaths(cmd, &o.was)
	cmd.ValidArgsFunction = nil // files of any kind
	return cmd
}

// runBlame prints the lines of a file, each with the edit that put it there.
func runBlame(ctx context.Context, o blameOptions, src *sourceTree, c *console) error {
	text, err := readBlamed(o.file)
	if err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(text))
	from, to, err := lineRange(o.lines, len(lines))
	if err != nil {
		return err
	}
	found, err := src.edits(ctx, c, o.file, o.was)
	if err != nil {
		return err
	}
	edits := found.list
	origins := blame.Lines(text, found.changes())
	err = c.paged(func(out *view.Screen) error {
		p := src.blamePrinter(out, edits)
		p.JSON = o.asJSON
		p.Width = max(0, terminalWidth(c.out))
		p.Last = to
		for i := from - 1; i < to; i++ {
			line := strings.TrimSuffix(lines[i], "\n")
			p.Line(i+1, line, origins[i])
		}
		return nil
	})
	if err == nil && len(edits) == 0 {
		src.sayUnedited(ctx, c, found)
	}
	const isFound = true // a file has lines, also without an edit
	return c.endSearch(err, found.unread, isFound)
}

// earlierPaths adds the option for the paths that a file had before.
func earlierPaths(cmd *cobra.Command, was *[]string) {
	cmd.Flags().StringArrayVar(was, "was", nil, "the edits of `PATH` too, where the file was before")
}

// readBlamed returns the text of a regular file, with \n at the end of each line that ends with \r\n. It refuses
// other files, and ones above maxBlamed.
func readBlamed(name string) (string, error) {
	text, err := storage.ReadNamed(name, maxBlamed)
	if errors.Is(err, storage.ErrNotRegular) {
		err = refuse(exitUsage, "blame: %s is no file of at most %d MiB", name, maxBlamed>>20)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}

// lineRange returns the first and the last line that -L asks for, counted from 1; without a value these are all
// lines of the file, which has as many as count says. A range that ends behind the file ends with it.
func lineRange(text string, count int) (from, to int, err error) {
	if text == "" {
		return 1, count, nil
	}
	first, last, both := strings.Cut(text, ",")
	from, err = strconv.Atoi(first)
	to = from
	if err == nil && both {
		to, err = strconv.Atoi(last)
	}
	isRange := err == nil && from >= 1 && from <= to
	hasPlus := strings.Contains(text, "+") // +N is a number of lines in git
	switch {
	case !isRange, hasPlus:
		return 0, 0, refuse(exitUsage, "blame: -L %s: it needs FROM,TO, such as 10,20", text)
	case from > count:
		return 0, 0, refuse(exitUsage, "blame: -L %s: the file has only %d lines", text, count)
	}
	return from, min(to, count), nil
}

// fileEdits are the edits of a file in all sessions.
type fileEdits struct {
	touched *search.Touched
	list    []blame.FileEdit   // the oldest first
	unread  []*search.FileHits // sessions that could not be searched
	by      *search.Searcher   // has searched for the file
	hits    []search.Hit       // the calls that name the file, the newest first
	named   int                // how many calls name it, or an earlier path
}

// unedited returns an error that says why a file has no edits. If no session names the file, it has the most
// similar path that one names, with advice behind it.
func (src *sourceTree) unedited(ctx context.Context, found fileEdits, advice string) error {
	if found.named == 0 {
		return src.unnamed(ctx, found.touched, advice)
	}
	return fmt.Errorf("sessions name %s, but none has an edit of it; 'sessionfs touched' lists them", found.touched.Path())
}

// sayUnedited says on stderr why a file has no edits.
func (src *sourceTree) sayUnedited(ctx context.Context, c *console, found fileEdits) {
	c.sayError(src.unedited(ctx, found, "; --was and that path add its edits"))
}

// changes returns the changes of each edit.
func (found fileEdits) changes() [][]blame.Change {
	changes := make([][]blame.Change, len(found.list))
	for i := range found.list {
		changes[i] = found.list[i].Changes
	}
	return changes
}

// edits returns the edits of a file, and of the paths where it was before: those in was, or the ones that
// sessions tell if it is empty. It shows the progress, and says on stderr which paths sessions tell, and which
// ones of was no session names.
func (src *sourceTree) edits(ctx context.Context, c *console, file string, was []string) (found fileEdits, err error) {
	found, err = src.editsAt(ctx, c, file)
	if err != nil {
		return found, err
	}
	if len(was) == 0 {
		err = c.withProgress(ctx, func(ctx context.Context) error {
			return src.addEarlier(ctx, &found, c.noteEarlier("the edits there count too"))
		})
		return found, err
	}
	seen := map[string]bool{found.touched.Path(): true}
	for _, earlier := range was {
		before, err := src.editsAt(ctx, c, earlier)
		if err != nil {
			return found, err
		}
		if seen[before.touched.Path()] {
			continue
		}
		seen[before.touched.Path()] = true
		if before.named == 0 {
			c.sayError(src.unnamed(ctx, before.touched, ""))
		}
		found.add(before)
	}
	return found, nil
}

// addEarlier adds the edits of the paths where sessions say that the file was before, and notes these.
func (src *sourceTree) addEarlier(ctx context.Context, found *fileEdits, note func(*blame.Earlier)) error {
	all, err := src.earlier(ctx, found.touched, found.by, found.hits)
	if err != nil {
		return err
	}
	for i := range all {
		e := &all[i]
		before := fileEdits{named: len(e.Hits)}
		before.list, err = blame.Edits(ctx, e.Hits, e.Touched, src.snapshotOf(ctx))
		if err != nil {
			return err
		}
		found.add(before)
		note(e)
	}
	return nil
}

// noteEarlier returns a function that says where a file was before, with a remark.
func (c *console) noteEarlier(remark string) func(*blame.Earlier) {
	return func(e *blame.Earlier) { c.sayError(earlierNote(e, e.By.Path(), remark)) }
}

// earlierNote returns a note that a file was elsewhere before the entry by, with a remark.
func earlierNote(e *blame.Earlier, by, remark string) error {
	how := "moved in"
	if e.IsWritten {
		how = "whose text was written anew in"
	}
	return fmt.Errorf("its earlier path is %s, %s %s; %s", names.Visible(e.Touched.Path()), how, names.Visible(by), remark)
}

// earlier returns the paths where sessions say that a file was before, after a search for it. A file has
// none if no session has its name. Where only the sessions of some directories count, so do paths below these.
// searcher has searched for the file; nil for another one. known are the calls that name the file, nil where
// they are to be searched for.
func (src *sourceTree) earlier(
	ctx context.Context, touched *search.Touched, searcher *search.Searcher, known []search.Hit,
) (_ []blame.Earlier, err error) {
	if !touched.Occurs() {
		return nil, nil
	}
	if searcher == nil {
		searcher, err = src.searcher(nil, 0)
		if err != nil {
			return nil, err
		}
	}
	st, err := os.Stat(touched.Path())
	tracer := blame.Tracer{
		Search:      searcher.Search,
		SearchIn:    searcher.SearchIn,
		Acquire:     src.snapshotOf(ctx),
		Known:       known,
		IsDirectory: err == nil && st.IsDir(),
		Exists: func(path string) bool {
			_, err := os.Lstat(path)
			return err == nil
		},
	}
	all, err := tracer.Earlier(ctx, touched)
	isOutside := func(e blame.Earlier) bool {
		return len(src.within) > 0 && !search.IsWithin(e.Touched.Path(), src.within)
	}
	return slices.DeleteFunc(all, isOutside), err
}

// snapshotOf returns a function that returns the session of a hit, which its caller releases.
func (src *sourceTree) snapshotOf(ctx context.Context) func(h *search.Hit) (*sessioncore.Snapshot, error) {
	return func(h *search.Hit) (*sessioncore.Snapshot, error) { return src.Snapshot(ctx, h.Directory()) }
}

// add adds the edits of an earlier path of the file, in the order of time.
func (found *fileEdits) add(before fileEdits) {
	found.named += before.named
	found.list = append(found.list, before.list...)
	found.unread = append(found.unread, before.unread...)
	blame.Sort(found.list)
}

// editsAt returns the edits of the file at a path, and shows the progress.
func (src *sourceTree) editsAt(ctx context.Context, c *console, file string) (found fileEdits, err error) {
	err = c.withProgress(ctx, func(ctx context.Context) (err error) {
		found, err = src.findEdits(ctx, file)
		return err
	})
	return found, err
}

// findEdits returns the edits of the file at a path.
func (src *sourceTree) findEdits(ctx context.Context, file string) (found fileEdits, err error) {
	found.touched, err = touchedBy(file)
	if err != nil {
		return found, err
	}
	searcher, err := src.searcher(nil, 0)
	if err != nil {
		return found, err
	}
	result, err := searcher.Search(ctx, found.touched)
	if err != nil {
		return found, err
	}
	found.by = searcher
	found.unread = result.Unread
	found.hits = result.Hits
	found.named = len(result.Hits)
	found.list, err = blame.Edits(ctx, result.Hits, found.touched, src.snapshotOf(ctx))
	return found, err
}

// blamePrinter returns a printer of a file's edits.
func (src *sourceTree) blamePrinter(out *view.Screen, edits []blame.FileEdit) *blame.EditPrinter {
	return &blame.EditPrinter{
		Out:   out,
		Edits: edits,
		Agent: func(e *blame.FileEdit) string { return src.agentOf(e.Directory()) },
	}
}

// agentOf returns the name of the agent of the session in a directory of the tree. Of several agents the
// first one has archive/.
func (src *sourceTree) agentOf(dir string) string {
	if len(src.Agents) == 0 {
		return source.AgentOf(src.Source).Name
	}
	for _, agent := range src.Agents {
		if strings.HasPrefix(dir, layout.Sessions+"/"+agent.Name+"/") {
			return agent.Name
		}
	}
	first := src.Agents[0]
	return first.Name
}

// printEdits prints the edits of a file as diffs below their prompts, the newest first, and ends the command as
// a search. was are earlier paths of the file.
func (src *sourceTree) printEdits(ctx context.Context, c *console, name string, was []string) error {
	found, err := src.edits(ctx, c, name, was)
	if err != nil {
		return err
	}
	err = c.paged(func(out *view.Screen) error {
		src.blamePrinter(out, found.list).Diffs(name)
		return nil
	})
	if err == nil && len(found.list) == 0 {
		src.sayUnedited(ctx, c, found)
	}
	return c.endSearch(err, found.unread, len(found.list) > 0)
}
