package claude

import (
	"cmp"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the lines of a session from the records of one file (docs/format.md, Claude
// Code). The tree is that of the records, without the empty ones.
type converter struct {
	agents.About
	learned *learned
	titles  titles

	hasHeader bool // it is written
	places    map[string]*place
	passed    map[string]string // the parents of removed records
	missed    map[string]bool   // missing records on which others hang
	calls     map[string]call   // by the id of a tool call
	side      chains
	open      *answer         // the last answer, while it may grow
	cost      []byte          // the session's cost recorded while no answer was open
	closed    map[string]bool // the ids of earlier answers
	bound     *boundary       // the compaction whose summary follows
	queue     queue
	moves     whereabouts

	projects *Projects   // has the files of parents; may be nil
	fork     forkContext // of a subagent
	path     string      // of the file, if its entries are a part of another session, without their usage

	leaf   leaf
	last   string // the entry made last
	end    *place // of last
	newest string // the end of the branch with the latest time
	latest int64  // that time, in milliseconds since the epoch

	// Recycled memory: of a block, of an entry's body, and of answers.
	ofBlock  agents.Object
	body     []byte
	recycled *answer
}

// place is a point on which the children of a record hang. The records of an answer and of its
// results share one, with the id of the last of them, as the results of parallel calls hang on the
// records of their calls.
type place struct {
	id    string // of an entry; "" before the first
	first string // the first entry of the record or answer
	// extended: an entry other than a result hangs on it.
	extended bool
	up       *place // the parent of its first entry, or nil
}

type call struct {
	name   rawjson.Value
	prompt uint64 // a hash of a subagent's prompt
	place  *place
}

// newConverter returns a converter for a file.
func newConverter(about agents.About, known *learned) *converter {
	return &converter{
		About: about, learned: known, places: map[string]*place{},
		passed: map[string]string{}, missed: map[string]bool{}, calls: map[string]call{},
		ofBlock: make(agents.Object, 0, 16), side: newChains(), closed: map[string]bool{}, end: &place{},
		queue: queue{guessed: map[string]int64{}, attached: map[string]int{}},
	}
}

// Inner implements agents.RecordConverter.
func (*converter) Inner() string { return "message" }

// Add implements agents.Converter.
func (c *converter) Add(out []byte, v rawjson.Value, line int64) []byte {
	members := agents.Read(v)
	return c.AddRecord(out, v, members, agents.Read(members.Member("message")), line)
}

// AddRecord implements agents.RecordConverter.
func (c *converter) AddRecord(out []byte, v rawjson.Value, members, message agents.Object, line int64) []byte {
	r := &record{Object: members, message: message, line: line}
	r.typ = r.Member("type")
	r.uuid, _ = r.Member("uuid").Text()
	r.copyOf, _ = r.Member("forkedFrom").Member("messageUuid").Text()
	if c.titles.read += len(v) + 1; !c.Side && !c.Facts {
		c.titles.add(r.Object)
	}
	isUser, isAnswer := r.typ.Is("user"), r.typ.Is("assistant")
	if !c.isMine(r, isUser) || c.isOutdated(r) {
		return out
	}
	c.retract(r, isUser || isAnswer)
	if r.uuid == "" && !isUser && !isAnswer {
		c.control(r)
		return out
	}
	if !c.hasHeader {
		out, c.hasHeader = c.beginFork(c.header(out, r)), true
	}
	parent := r.Member("parentUuid")
	r.follows = len(parent) == 0
	r.parent, _ = parent.Text()
	if last := c.fork.last; last != "" && (r.parent == "" || r.parent == last) {
		r.parent = last
		if c.places[last] == nil {
			r.parent = "" // the parent is missing
		}
	}
	r.parent = c.parentID(r)
	switch {
	case isUser && isTrue(r.Member("isCompactSummary")):
		out = c.compaction(c.flush(c.send(out)), r)
	case isUser:
		content, isMeta := r.message.Member("content"), isTrue(r.Member("isMeta"))
		if !isMeta {
			c.dequeue(content, true)
		}
		out = c.user(out, r, content, sayerOf(content, isMeta))
	case isQueuedCommand(r):
		content, isMeta := queuedCommand(r)
		c.dequeue(content, false)
		out = c.user(out, r, content, sayerOf(content, isMeta))
	case isAnswer:
		out = c.assistant(out, r)
	case r.typ.Is("system") && r.Member("subtype").Is("compact_boundary"):
		out = c.flush(c.send(out))
		c.leaf = leaf{}
		c.bound = newBoundary(c, r)
	default:
		c.control(r)
		e, ok := c.aside(r)
		if !ok {
			c.pass(r)
			break
		}
		out = c.hang(c.send(out), r, e, c.parentOf(r))
	}
	return out
}

// parentOf returns the place on which a record hangs.
func (c *converter) parentOf(r *record) *place {
	if r.follows {
		return c.end
	}
	return c.placeOf(r.parent)
}

// control handles a record that becomes no entry.
func (c *converter) control(r *record) {
	switch {
	case r.typ.Is("last-prompt"):
		c.leaf.set(r)
	case r.typ.Is("fork-context-ref"):
		c.setFork(r)
	case r.typ.Is("content-replacement"):
		c.replace(r)
	case r.typ.Is("relocated"), r.typ.Is("worktree-state"):
		c.moves.add(r.Object)
	case r.typ.Is("queue-operation"):
		c.queueOperation(r)
	case r.typ.Is("cost-state"):
		c.setCost(r)
	case isQueuedCommand(r):
		c.attach(r)
	}
}

// record is a value of the file.
type record struct {
	agents.Object
	message      agents.Object
	line         int64
	typ          rawjson.Value
	uuid, parent string
	copyOf       string  // the uuid of the record that it was copied from
	more         []int64 // lines of other records of the same prompt
	follows      bool    // it names no parent, as in files of other programs: it hangs on the record before it
}

// id returns the id of a record's first entry. A copy in a fork has the original's id.
func (r *record) id() string {
	if r.uuid != "" {
		return cmp.Or(r.copyOf, r.uuid)
	}
	return "l" + strconv.FormatInt(r.line, 10)
}

func (r *record) time() rawjson.Value { return r.Member("timestamp") }

func isTrue(v rawjson.Value) bool { return string(v) == "true" }

// header appends the session's header, with facts of the first record of the conversation.
func (c *converter) header(out []byte, r *record) []byte {
	h := agents.Header{
		Time: r.time(), Cwd: agents.Quoted(c.Moved), Version: r.Member("version"), Branch: r.Member("gitBranch"),
	}
	if c.Moved == "" {
		h.Cwd = r.Member("cwd")
	}
	return h.AppendTo(out, &c.About)
}

// pass lets the children of a record without an entry hang on its parent.
func (c *converter) pass(r *record) {
	c.at(r, c.parentOf(r), r.parent)
}

// put appends an entry to out, or behind the open answer.
func (c *converter) put(out []byte, e *agents.Entry, at *place) []byte {
	c.noteLast(e, at)
	if c.open == nil {
		return e.AppendTo(out)
	}
	c.open.after = e.AppendTo(c.open.after)
	if len(c.open.after) > maxAfter {
		return c.flush(out)
	}
	return out
}

// noteLast makes an entry the last one, whose children hang on at. Any pin of the leaf ends. The
// entry is the newest by its time, or if it hangs on the newest.
func (c *converter) noteLast(e *agents.Entry, at *place) {
	e.Path = c.path
	c.last, c.end = e.ID, at
	c.leaf.pinned, c.leaf.cleared = false, false
	ms, _, ok := rawjson.ReadTimestamp(e.Time)
	if ok && ms >= c.latest || e.Parent == c.newest {
		c.newest, c.latest = e.ID, max(ms, c.latest)
	}
}

// user makes entries of a record with content: messages, the client's texts and tool results.
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
		content, original := c.sentResult(p.result)
		e := entryOf(r, i, c.result(r, p.result, content, results == 1))
		e.Parent, e.Session = at.id, c.subagent(r, p.result)
		at.id = e.ID
		out = c.put(out, &e, at)
		c.body = reuse(e.Body)
		if original != nil {
			full := c.notSent(r, i, original, output)
			full.ID, full.Parent = e.ID+".full", at.id
			at.id = full.ID
			out = c.put(out, &full, at)
			c.body = reuse(full.Body)
		}
	}
	c.at(r, at, r.id())
	return out
}

// hang makes an entry that hangs on a place and becomes the place of its record.
func (c *converter) hang(out []byte, r *record, e agents.Entry, on *place) []byte {
	e.Parent, on.extended = on.id, true
	at := &place{id: e.ID, first: r.id(), up: on}
	out = c.put(out, &e, at)
	c.body = reuse(e.Body)
	c.at(r, at, r.id())
	return out
}

// entryOf returns the entry of a part of a record, a message without a parent.
func entryOf(r *record, part int, body []byte) agents.Entry {
	lines := append(r.more[:len(r.more):len(r.more)], r.line)
	e := agents.Entry{ID: r.id(), Type: "message", Time: r.time(), Lines: lines, Body: body}
	if part > 0 {
		e.ID += "." + strconv.Itoa(part+1)
	}
	return e
}

// reuse returns memory for another use, unless it is too large to keep.
func reuse(b []byte) []byte {
	if cap(b) > jsonl.KeepBuffer {
		return nil
	}
	return b[:0]
}

// resultPlace returns the place of a result: after the answer with its call and the results so far.
// If the conversation has continued, it is the end of that.
func (c *converter) resultPlace(result agents.Object, at *place) *place {
	id, _ := result.Member("tool_use_id").Text()
	known, ok := c.calls[id]
	switch {
	case !ok:
		at.extended = true
		return &place{id: at.id, first: at.first, up: at}
	case known.place.extended:
		return c.end
	}
	if c.open != nil && c.open.place == known.place {
		c.open.answered = true
	}
	return known.place
}

// billedTool is the tool whose results may have a usage in their details.
const billedTool = "task"

// result returns the body of a tool result's entry. The record's details belong to its only result.
func (c *converter) result(r *record, result agents.Object, content rawjson.Value, only bool) []byte {
	id := result.Member("tool_use_id")
	text, _ := id.Text()
	name := c.calls[text].name
	b := appendContent(agents.AppendResult(c.body, id, name), c.sent(content))
	if only && (!c.Facts || name.Is(billedTool)) {
		b = agents.AppendMember(b, "details", r.Member("toolUseResult"))
	}
	b = append(b, `,"isError":`...)
	b = strconv.AppendBool(b, isTrue(result.Member("is_error")))
	return append(agents.AppendMillis(b, r.time()), '}')
}

// Tail implements agents.Converter: the open answer, and a move of the leaf if needed.
func (c *converter) Tail(out []byte) []byte {
	if c.open != nil {
		out = c.open.appendTo(out, &c.body)
	}
	if c.hasHeader {
		out = c.unsent(out)
	}
	if at := c.current(); at != c.last {
		return agents.AppendLeaf(out, at, c.leaf.line)
	}
	return out
}
