package claude

import (
	"cmp"
	"strconv"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// converter makes the lines of a session of the records of one file (docs/format.md, Claude Code). The tree is that of
// the records, without those that say nothing.
type converter struct {
	foreign.About
	learned *learned
	titles  titles

	begun  bool // the header is written
	places map[string]*place
	passed map[string]string // what records hang on that were removed
	missed map[string]bool   // records that others hang on and that were not there
	calls  map[string]call   // by the id of a tool call
	side   chains
	open   *answer         // the last answer, while it can still get more
	cost   []byte          // the session's cost that the client recorded when no answer was open
	closed map[string]bool // the ids of earlier answers
	bound  *boundary       // the compaction whose summary is to come
	queue  queue
	moves  whereabouts

	projects *Projects   // has the files of parents, nil for none
	fork     forkContext // of a subagent
	path     string      // of the file, if its entries are a part of another session, which then has no usage of them

	leaf   leaf
	last   string // the entry made last
	end    *place // of that
	newest string // the end of the branch with the latest time
	latest int64  // that time, in milliseconds since the epoch

	// Memory that is used again: for a block, the body of an entry, and answers.
	ofBlock foreign.Object
	body    []byte
	spare   *answer
}

// place is what the children of a record hang on. The records of an answer and those of its results share one: its id is
// that of the last of them, since the results of parallel calls hang on the records of their own calls.
type place struct {
	id    string // of an entry; "" before the first
	first string // the first entry of the record, or of the answer
	taken bool   // an entry hangs on it that is no result
	up    *place // on which its first entry hangs, nil if that is not known
}

// call is what is known of a tool call.
type call struct {
	name   rawjson.Value
	prompt uint64 // a hash of what a subagent was asked
	place  *place
}

// newConverter returns a converter for a file.
func newConverter(about foreign.About, known *learned) *converter {
	return &converter{
		About: about, learned: known, places: map[string]*place{}, passed: map[string]string{}, missed: map[string]bool{},
		calls: map[string]call{}, ofBlock: make(foreign.Object, 0, 16), side: newChains(), closed: map[string]bool{}, end: &place{},
		queue: queue{guessed: map[string]int64{}, told: map[string]int{}},
	}
}

// Inner implements foreign.RecordConverter.
func (*converter) Inner() string { return "message" }

// Add implements foreign.Converter.
func (c *converter) Add(out []byte, v rawjson.Value, line int64) []byte {
	members := foreign.Read(v)
	return c.AddRecord(out, v, members, foreign.Read(members.Member("message")), line)
}

// AddRecord implements foreign.RecordConverter.
func (c *converter) AddRecord(out []byte, v rawjson.Value, members, message foreign.Object, line int64) []byte {
	r := &record{Object: members, message: message, line: line}
	r.typ = r.Member("type")
	r.uuid, _ = r.Member("uuid").Text()
	r.copyOf, _ = r.Member("forkedFrom").Member("messageUuid").Text()
	if c.titles.read += len(v) + 1; !c.Side && !c.Facts {
		c.titles.note(r.Object)
	}
	isUser, isAnswer := r.typ.Is("user"), r.typ.Is("assistant")
	if !c.isMine(r, isUser) || c.isOutdated(r) {
		return out
	}
	c.takesBack(r, isUser || isAnswer)
	if r.uuid == "" && !isUser && !isAnswer {
		c.tells(r)
		return out
	}
	if !c.begun {
		out, c.begun = c.beginFork(c.header(out, r)), true
	}
	parent := r.Member("parentUuid")
	r.follows = len(parent) == 0
	r.parent, _ = parent.Text()
	if last := c.fork.last; last != "" && (r.parent == "" || r.parent == last) {
		r.parent = last
		if c.places[last] == nil {
			r.parent = "" // the parent is gone
		}
	}
	r.parent = c.above(r)
	switch {
	case isUser && isTrue(r.Member("isCompactSummary")):
		out = c.compaction(c.flush(c.send(out)), r)
	case isUser:
		content, isMeta := r.message.Member("content"), isTrue(r.Member("isMeta"))
		if !isMeta {
			c.tell(content, true)
		}
		out = c.user(out, r, content, sayerOf(content, isMeta))
	case isQueuedCommand(r):
		content, isMeta := queuedCommand(r)
		c.tell(content, false)
		out = c.user(out, r, content, sayerOf(content, isMeta))
	case isAnswer:
		out = c.assistant(out, r)
	case r.typ.Is("system") && r.Member("subtype").Is("compact_boundary"):
		out = c.flush(c.send(out))
		c.leaf = leaf{}
		c.bound = newBoundary(c, r)
	default:
		c.tells(r)
		e, ok := c.aside(r)
		if !ok {
			c.pass(r)
			break
		}
		out = c.hang(c.send(out), r, e, c.parentOf(r))
	}
	return out
}

// parentOf returns what a record hangs on.
func (c *converter) parentOf(r *record) *place {
	if r.follows {
		return c.end
	}
	return c.placeOf(r.parent)
}

// tells takes what a record says that becomes no entry.
func (c *converter) tells(r *record) {
	switch {
	case r.typ.Is("last-prompt"):
		c.leaf.set(r)
	case r.typ.Is("fork-context-ref"):
		c.setFork(r)
	case r.typ.Is("content-replacement"):
		c.replaces(r)
	case r.typ.Is("relocated"), r.typ.Is("worktree-state"):
		c.moves.note(r.Object)
	case r.typ.Is("queue-operation"):
		c.queueOperation(r)
	case r.typ.Is("cost-state"):
		c.costs(r)
	case isQueuedCommand(r):
		c.attached(r)
	}
}

// record is a value of the file.
type record struct {
	foreign.Object
	message      foreign.Object
	line         int64
	typ          rawjson.Value
	uuid, parent string
	copyOf       string  // the uuid of the record that it was copied from
	more         []int64 // lines of other records that say the same
	follows      bool    // it names no parent at all, as in files of other programs: it follows the record before it
}

// id returns the id of the first entry that a record becomes. A copy in a fork has that of the original, as in all forks.
func (r *record) id() string {
	if r.uuid != "" {
		return cmp.Or(r.copyOf, r.uuid)
	}
	return "l" + strconv.FormatInt(r.line, 10)
}

func (r *record) time() rawjson.Value { return r.Member("timestamp") }

func isTrue(v rawjson.Value) bool { return string(v) == "true" }

// header appends the session's header, which takes after the first record of the conversation.
func (c *converter) header(out []byte, r *record) []byte {
	out = append(out, `{"type":"session","version":3,"id":`...)
	out = rawjson.AppendQuoted(out, c.ID)
	out = foreign.AppendMember(out, "timestamp", r.time())
	if c.Moved != "" {
		out = rawjson.AppendQuoted(append(out, `,"cwd":`...), c.Moved)
	} else {
		out = foreign.AppendText(out, "cwd", r.Member("cwd"))
	}
	out = c.AppendMembers(out)
	out = foreign.AppendText(out, "cliVersion", r.Member("version"))
	out = foreign.AppendText(out, "gitBranch", r.Member("gitBranch"))
	return append(out, "}\n"...)
}

// pass makes the children of a record that becomes no entry hang on its parent.
func (c *converter) pass(r *record) {
	c.at(r, c.parentOf(r), r.parent)
}

// put appends an entry to out, or to what follows the answer that is still open.
func (c *converter) put(out []byte, e *foreign.Entry, at *place) []byte {
	c.made(e, at)
	if c.open == nil {
		return e.AppendTo(out)
	}
	c.open.after = e.AppendTo(c.open.after)
	if len(c.open.after) > maxAfter {
		return c.flush(out)
	}
	return out
}

// made notes that an entry is the last, and what its children hang on. Who went elsewhere goes on. The newest one is the end of a
// branch: what hangs on it takes its place, whatever its time.
func (c *converter) made(e *foreign.Entry, at *place) {
	e.Path = c.path
	c.last, c.end = e.ID, at
	c.leaf.pinned, c.leaf.cleared = false, false
	ms, _, ok := rawjson.ReadTimestamp(e.Time)
	if ok && ms >= c.latest || e.Parent == c.newest {
		c.newest, c.latest = e.ID, max(ms, c.latest)
	}
}

// user makes entries of a record with content: messages of the person, texts of the client and results of tools.
func (c *converter) user(out []byte, r *record, content rawjson.Value, by sayer) []byte {
	parts, results := c.split(content)
	if len(parts) == 0 {
		c.pass(r)
		return out
	}
	if results < len(parts) {
		out = c.send(out)
	}
	return c.say(out, r, parts, results, by, c.parentOf(r))
}

// say makes entries of the parts of a record's content.
func (c *converter) say(out []byte, r *record, parts []part, results int, by sayer, at *place) []byte {
	for i, p := range parts {
		if !p.isResult() {
			out = c.hang(out, r, c.saying(r, i, p.content, by), at)
			at = c.end
			continue
		}
		at = c.resultPlace(p.result, at)
		content, whole := c.sentResult(p.result)
		e := entryOf(r, i, c.result(r, p.result, content, results == 1))
		e.Parent, e.Session = at.id, c.subagent(r, p.result)
		at.id = e.ID
		out = c.put(out, &e, at)
		c.body = reuse(e.Body)
		if whole != nil {
			full := c.notSent(r, i, whole, output)
			full.ID, full.Parent = e.ID+".full", at.id
			at.id = full.ID
			out = c.put(out, &full, at)
			c.body = reuse(full.Body)
		}
	}
	c.at(r, at, r.id())
	return out
}

// hang makes an entry that hangs on a place, and on which the children of its record hang.
func (c *converter) hang(out []byte, r *record, e foreign.Entry, on *place) []byte {
	e.Parent, on.taken = on.id, true
	at := &place{id: e.ID, first: r.id(), up: on}
	out = c.put(out, &e, at)
	c.body = reuse(e.Body)
	c.at(r, at, r.id())
	return out
}

// entryOf returns the entry of a part of a record, a message without a parent.
func entryOf(r *record, part int, body []byte) foreign.Entry {
	lines := append(r.more[:len(r.more):len(r.more)], r.line)
	e := foreign.Entry{ID: r.id(), Type: "message", Time: r.time(), Lines: lines, Body: body}
	if part > 0 {
		e.ID += "." + strconv.Itoa(part+1)
	}
	return e
}

// reuse returns memory for another use, unless that is too much to keep.
func reuse(b []byte) []byte {
	if cap(b) > jsonl.KeepBuffer {
		return nil
	}
	return b[:0]
}

// resultPlace returns where a result belongs: behind the answer with its call and the results that came before. One that
// comes when the conversation has gone on belongs to the end of that.
func (c *converter) resultPlace(result foreign.Object, at *place) *place {
	id, _ := result.Member("tool_use_id").Text()
	called, ok := c.calls[id]
	switch {
	case !ok:
		at.taken = true
		return &place{id: at.id, first: at.first, up: at}
	case called.place.taken:
		return c.end
	}
	if c.open != nil && c.open.place == called.place {
		c.open.answered = true
	}
	return called.place
}

// billedTool names the tool whose results may have a usage in their details.
const billedTool = "task"

// result returns the body of a tool result's entry. What the client keeps of the result besides is that of the record's
// only result.
func (c *converter) result(r *record, result foreign.Object, content rawjson.Value, only bool) []byte {
	id := result.Member("tool_use_id")
	text, _ := id.Text()
	name := c.calls[text].name
	b := appendContent(foreign.AppendResult(c.body, id, name), c.sent(content))
	if only && (!c.Facts || name.Is(billedTool)) {
		b = foreign.AppendMember(b, "details", r.Member("toolUseResult"))
	}
	b = append(b, `,"isError":`...)
	b = strconv.AppendBool(b, isTrue(result.Member("is_error")))
	return append(foreign.AppendMillis(b, r.time()), '}')
}

// Tail implements foreign.Converter: the answer that may get more, and where the conversation stands if that is not its
// last entry.
func (c *converter) Tail(out []byte) []byte {
	if c.open != nil {
		out = c.open.appendTo(out, &c.body)
	}
	if c.begun {
		out = c.unsent(out)
	}
	if at := c.stands(); at != c.last {
		return foreign.AppendLeaf(out, at, c.leaf.line)
	}
	return out
}
