package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sessionfs/fs"
	"sessionfs/mcp"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/blame"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/view"
	"sessionfs/source"
)

// agentCall is a call of a tool.
type agentCall struct {
	mcp.CallArguments
	ctx    context.Context // of the call
	answer *mcp.AnswerText
	door   *agentDoor
	src    *sourceTree
	out    *bufio.Writer // to the answer
}

const (
	// usualHits is how many hits an agent gets where it does not say.
	usualHits = 50
	// agentColumns is the width of a line of a log for an agent, in columns.
	agentColumns = 200
	// maxArgument bounds a query and a path, in bytes: the longest that a search takes, and a system.
	maxArgument = 4096
	// maxAgentID bounds the ids of a session and an entry together, and maxWords a date or the names of keys, in
	// bytes.
	maxAgentID, maxWords = 512, 64
	// maxLine is the greatest number of a line.
	maxLine = maxBlamed
)

// The parameters that several tools have.
var (
	mostParameter = mcp.Parameter{
		Name: "most", IsNumber: true, Most: search.DefaultLimit,
		Description: fmt.Sprintf("How many hits, the newest first; %d where it is missing.", usualHits),
	}
	idParameter = mcp.Parameter{
		Name: "id", IsRequired: true, Most: maxAgentID,
		Description: "The id of a session or its beginning, as another tool has it, such as 019d3d96.",
	}
	pathParameter = mcp.Parameter{
		Name: "path", IsRequired: true, Most: maxArgument,
		Description: "A path below the working directory.",
	}
	wasParameter = mcp.Parameter{
		Name: "was", Most: maxArgument,
		Description: "A path below the working directory where the file was before; its edits count too.",
	}
)

// tools returns the tools.
func (d *agentDoor) tools() []mcp.Tool {
	shown := idParameter
	shown.Description = "SESSION#ENTRY as another tool has it, such as 019d3d96#6ab2fbe0; or the id of a session alone, for all of it."
	return []mcp.Tool{
		{
			Name: "search", Run: d.run((*agentCall).search), Parameters: []mcp.Parameter{
				{
					Name: "query", IsRequired: true, Most: maxArgument,
					Description: "Words that one entry has, all of them, in any case unless they have a capital. Also \"a phrase\", " +
						"-word, role:user (assistant, tool), tool:, model:, title:, cwd:, agent:, after:DATE, before:DATE. " +
						"DATE is 2026-01-31, 2026-01, today, monday, 7d or 2w.",
				}, mostParameter,
			},
			Description: "Find what was said in past conversations. A line for each hit, the newest first: " +
				"SESSION#ENTRY, which show takes, agent, time, text around the match, first line of the prompt before it.",
		}, {
			Name: "show", Run: d.run((*agentCall).show), Parameters: []mcp.Parameter{shown, {
				Name: "around", IsNumber: true, Most: 100,
				Description: fmt.Sprintf("How many entries on each side of ENTRY; %d where it is missing.", shownAround),
			}},
			Description: "Read an entry of a past conversation with those around it, as Markdown.",
		}, {
			Name: "touched", Run: d.run((*agentCall).touched), Parameters: []mcp.Parameter{
				pathParameter, mostParameter,
				{Name: "patch", IsChoice: true, Description: "Show each edit of the file as a diff below its prompt instead, the newest first; not with most."},
				wasParameter,
			},
			Description: "Find the calls of tools in past conversations that named a file, or something below a directory. " +
				"Lines as those of search. The file need not exist any more.",
		}, {
			Name: "blame", Run: d.run((*agentCall).blame), Parameters: []mcp.Parameter{
				pathParameter,
				{Name: "from", IsNumber: true, Most: maxLine, Description: "The first line; 1 where it is missing."},
				{Name: "to", IsNumber: true, Most: maxLine, Description: "The last line; that of the file where it is missing."},
				wasParameter,
			},
			Description: "Tell which past prompt put the lines of a file there. A row for each range of lines: numbers, time, agent, " +
				"SESSION#ENTRY, title and prompt; - where no agent did; ~ where the text alone tells. It has no text of the file.",
		}, {
			Name: "log", Run: d.run((*agentCall).log), Parameters: []mcp.Parameter{idParameter},
			Description: "List the prompts and answers of a past conversation as a tree, the newest branch first. leaf is where it " +
				"stands; lost is what no resume shows.",
		}, {
			Name: "stats", Run: d.run((*agentCall).stats), Parameters: []mcp.Parameter{
				{
					Name: "by", Most: maxWords,
					Description: "One of " + strings.Join(reports.Keys, ", ") + ", or two with a comma between them; day where it is missing.",
				},
				{Name: "since", Most: maxWords, Description: "Count from this day on: 2026-01-31, 2026-01, today, monday, 30d, 4w."},
				{Name: "until", Most: maxWords, Description: "Count until this day, week or month, with all of it."},
			},
			Description: "Add up sessions, answers, tokens and dollars of past conversations.",
		},
	}
}

// screen returns the output as one of a printer: as on a terminal, without colours.
func (c *agentCall) screen() *view.Screen { return &view.Screen{Writer: c.out, People: true} }

// search answers with the entries that a query finds.
func (c *agentCall) search() error {
	query, err := queryParser().Query(c.Text("query"))
	if err != nil {
		return err
	}
	result, err := c.hits(query, query, nil)
	if err == nil && len(result.Hits) == 0 {
		c.answer.Note("Nothing is found. Take fewer or other words.")
	}
	return err
}

// touched answers with the calls that name a path, or with the edits of a file as diffs.
func (c *agentCall) touched() error {
	name, _, err := c.door.pathBelow(c.Text("path"))
	if err != nil {
		return err
	}
	if c.Choice("patch") {
		return c.diffs(name)
	}
	if c.Text("was") != "" {
		return errors.New("was needs patch; without it, ask for the calls that name that path by path")
	}
	touched, err := touchedBy(name)
	if err != nil {
		return err
	}
	result, err := c.hits(nil, touched, func(ctx context.Context, by *search.Searcher, hits []search.Hit) (search.Matcher, error) {
		return c.src.withEarlier(ctx, touched, by, hits, c.noteEarlier("the calls that name that count too"))
	})
	if err == nil && len(result.Hits) == 0 {
		c.answer.Note("Nothing is found: %s.", names.Visible(c.src.unnamed(c.ctx, touched, "").Error()))
	}
	return err
}

// diffs answers with the edits of a file as diffs, the newest first.
func (c *agentCall) diffs(name string) error {
	if c.Number("most", 0) > 0 {
		return errors.New("most or patch, not both: the answer goes on by its cursor")
	}
	found, err := c.edits(name)
	if err != nil {
		return err
	}
	if len(found.list) == 0 {
		c.answer.Note("Nothing is found: %s.", names.Visible(c.src.unedited(c.ctx, found, "").Error()))
	}
	c.src.blamePrinter(c.screen(), found.list).Diffs(name)
	return nil
}

// edits returns the edits of a file, and of the path where it was before: the argument was, or the one that sessions
// tell. It notes sessions that could not be read.
func (c *agentCall) edits(name string) (found fileEdits, err error) {
	was := ""
	text := c.Text("was")
	if text != "" {
		was, _, err = c.door.pathBelow(text)
		if err != nil {
			return found, err
		}
	}
	found, err = c.src.findEdits(c.ctx, name)
	if err == nil {
		err = c.addBefore(&found, name, was)
	}
	c.noteUnread(found.unread)
	return found, err
}

// addBefore adds the edits of the path where a file was before, "" for the path that sessions tell.
func (c *agentCall) addBefore(found *fileEdits, name, was string) error {
	if was == "" {
		return c.src.addEarlier(c.ctx, found, c.noteEarlier("the edits there count too"))
	}
	if was == name {
		return nil
	}
	before, err := c.src.findEdits(c.ctx, was)
	if err == nil && before.named == 0 {
		reason := c.src.unnamed(c.ctx, before.touched, "")
		c.answer.Note("No edit is of %s: %s.", names.Visible(was), names.Visible(reason.Error()))
	}
	found.add(before)
	return err
}

// noteEarlier returns a function that notes where a file was before, with a remark.
func (c *agentCall) noteEarlier(remark string) func(*blame.Earlier) {
	return func(e *blame.Earlier) {
		by := names.ShortID(e.By.ID) + "#" + names.ShortID(e.By.Entry)
		c.answer.Note("%s.", earlierNote(e, by, remark))
	}
}

// hits prints the hits of a Matcher among the sessions of a query, nil for all sessions, and notes missing hits
// and sessions. widen is the one of a finding, or nil.
func (c *agentCall) hits(query *search.Query, m search.Matcher, widen widening) (*search.Result, error) {
	searcher, err := c.src.searcher(query, c.Number("most", usualHits))
	if err != nil {
		return nil, err
	}
	f := finding{widen: widen}
	result, _, err := f.hits(c.ctx, searcher, m)
	if err != nil {
		return nil, err
	}
	if result.More {
		c.answer.Note("There are more hits than these %d: %s, or ask for more by most.", len(result.Hits), result.Advice())
	}
	c.noteUnread(result.Unread)
	p := &search.Printer{
		Out:     c.screen(),
		Prompts: true,
		Agent:   func(found *search.FileHits) string { return c.src.agentOf(found.Directory()) },
	}
	return result, p.Hits(result.Hits)
}

// noteUnread says how many sessions could not be searched. Their names may be of other directories.
func (c *agentCall) noteUnread(unread []*search.FileHits) {
	if len(unread) > 0 {
		c.answer.Note("%d session files of this user could not be read.", len(unread))
	}
}

// blame answers with the edit behind each line of a file.
func (c *agentCall) blame() error {
	name, resolved, err := c.door.pathBelow(c.Text("path"))
	if err != nil {
		return err
	}
	text, err := readBlamed(resolved)
	if err != nil {
		return err
	}
	count := strings.Count(text, "\n")
	hasOpenEnd := text != "" && !strings.HasSuffix(text, "\n")
	if hasOpenEnd {
		count++
	}
	from := c.Number("from", 1)
	to := min(c.Number("to", count), count)
	if to < from {
		return fmt.Errorf("there are no lines from %d to %d: the file has %d", from, c.Number("to", count), count)
	}
	found, err := c.edits(name)
	if err != nil {
		return err
	}
	if len(found.list) == 0 {
		c.answer.Note("No line is an agent's: %s.", names.Visible(c.src.unedited(c.ctx, found, "").Error()))
		return nil
	}
	lines := blame.Lines(text, found.changes())
	c.src.blamePrinter(c.screen(), found.list).Ranges(from, lines[from-1:to])
	return nil
}

// show answers with a branch of a session, or with an entry and the ones around it.
func (c *agentCall) show() error {
	snap, at, err := c.named()
	if err != nil {
		return err
	}
	defer snap.Release()
	if at.Entry == "" {
		transcript, err := c.src.Open(path.Join(at.Dir, "transcript.md"))
		if err != nil {
			return err
		}
		defer transcript.Close()
		return c.screen().WriteTranscript(transcript)
	}
	passage, err := passageOf(c.ctx, snap, at, c.Number("around", shownAround))
	if err != nil {
		return err
	}
	defer passage.Document.Close()
	return c.screen().WriteTranscript(passage.Text())
}

// log answers with the tree of a session's entries.
func (c *agentCall) log() error {
	snap, _, err := c.named()
	if err != nil {
		return err
	}
	defer snap.Release()
	log := view.Log{Session: snap}
	return log.WriteText(c.ctx, c.screen(), agentColumns)
}

// named returns the session of the argument id with its directory, and the entry that it names, "" for none. Callers
// must release the session.
func (c *agentCall) named() (*sessioncore.Snapshot, source.NamedSession, error) {
	text := c.Text("id")
	if strings.Contains(text, "/") {
		return nil, source.NamedSession{}, fmt.Errorf("%s is no id: an id has no /", names.Visible(text))
	}
	key, entry, _ := strings.Cut(strings.TrimSpace(text), "#")
	found, err := c.session(key)
	if err != nil {
		return nil, source.NamedSession{}, err
	}
	at := source.NamedSession{Dir: found.dir}
	if entry != "" {
		at.Entry, err = c.src.Entry(at.Dir, entry)
		if err != nil {
			return nil, at, err
		}
	}
	snap, err := c.src.Snapshot(c.ctx, at.Dir)
	return snap, at, err
}

// namedSession is a session that an id may name.
type namedSession struct {
	id, dir string // dir is its directory in the tree
}

// session returns the session of the door with an id that begins with key, or is key. The quickest search comes
// first, and the next one only if that finds none. More than one session is an error.
func (c *agentCall) session(key string) (found namedSession, err error) {
	if key == "" {
		return found, errors.New("id needs the id of a session before #")
	}
	for _, find := range []func(key string) ([]namedSession, error){c.listed, c.unlisted, c.archived} {
		all, err := find(key)
		if err != nil {
			return found, err
		}
		all = preferWhole(all, key)
		ids := idsOf(all)
		if len(ids) > 1 {
			why := names.Visible(key) + " begins the id of more than one session; give more of it"
			return found, source.Ambiguous(why, ids)
		}
		if len(all) > 0 {
			return all[0], nil
		}
	}
	return found, fmt.Errorf("no session here has the id %s; search finds ids by words that were said", names.Visible(key))
}

// preferWhole returns the sessions that have key as their whole id, or all if none has.
func preferWhole(all []namedSession, key string) []namedSession {
	var whole []namedSession
	for _, s := range all {
		if strings.EqualFold(s.id, key) {
			whole = append(whole, s)
		}
	}
	if len(whole) == 0 {
		return all
	}
	return whole
}

// idsOf returns the ids of sessions as lines of an error, each once.
func idsOf(all []namedSession) []string {
	var lines []string
	for _, s := range all {
		lines = append(lines, "  "+names.Visible(s.id))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// listed returns the sessions in lists with an id that begins with key. It opens no file with an id in its name.
func (c *agentCall) listed(key string) (found []namedSession, err error) {
	all, err := c.src.Resuming(c.ctx, key)
	if errors.Is(err, sessioncore.ErrNotFound) { // another search may find some
		return nil, nil
	}
	for _, info := range all {
		isShown := len(c.door.within) == 0 || search.IsWithin(info.CWD, c.door.within)
		if isShown {
			found = append(found, namedSession{id: info.ID, dir: info.Path()})
		}
	}
	return found, err
}

// unlisted returns any sessions, also those of subagents, by their headers.
func (c *agentCall) unlisted(key string) ([]namedSession, error) { return c.withID(nil, key) }

// archived returns archived sessions. A masked tree has none.
func (c *agentCall) archived(key string) ([]namedSession, error) {
	query, err := search.ParseQuery("in:archive")
	if err != nil {
		return nil, err
	}
	found, err := c.withID(query, key)
	if errors.Is(err, search.ErrQuery) { // there is no archive
		return nil, nil
	}
	return found, err
}

// withID returns the sessions of a query with ids that begin with key.
func (c *agentCall) withID(query *search.Query, key string) (found []namedSession, err error) {
	searcher, err := c.src.searcher(query, 0)
	if err != nil {
		return nil, err
	}
	all, err := searcher.WithID(c.ctx, key)
	for _, f := range all {
		found = append(found, namedSession{id: f.ID, dir: f.Directory()})
	}
	return found, err
}

// stats answers with sums of costs.
func (c *agentCall) stats() error {
	by := c.Text("by")
	if by == "" {
		by = reports.ByDay
	}
	s, err := reports.NewStats(by)
	if err != nil { // which names the option of the command
		return errors.New(strings.TrimPrefix(err.Error(), "--"))
	}
	since, err := c.span("since")
	if err != nil {
		return err
	}
	until, err := c.span("until")
	if err != nil {
		return err
	}
	s.Prices = c.src.Prices()
	count := fs.Count{
		Tools:  s.OfTools(),
		Hours:  s.ByHours(),
		Titles: s.OfSessions(),
		From:   since.Begin,
		Until:  until.End,
	}
	if len(c.door.within) > 0 {
		count.Only = func(i *listing.Info) bool {
			return search.IsWithin(i.CWD, c.door.within)
		}
	}
	err = c.src.Costs(c.ctx, count, func(r reports.Row, agent string) {
		s.Add(&r, agent)
	})
	if err != nil {
		return err
	}
	bars := []string{"#"}
	const recent = false // an answer has all rows
	table := s.Table(reports.NoWidth, bars, recent)
	_, err = c.out.Write(table)
	return err
}

// span returns the span of time that a parameter names, the zero Span where there is none.
func (c *agentCall) span(parameter string) (search.Span, error) {
	text := c.Text(parameter)
	if text == "" {
		return search.Span{}, nil
	}
	s, err := search.ParseSpan(text, time.Now())
	if err != nil {
		err = fmt.Errorf("%s needs %w", parameter, err)
	}
	return s, err
}
