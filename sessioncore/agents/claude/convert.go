package claude

import (
	"bytes"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

var provider = agents.Provider{API: "anthropic-messages", Name: "anthropic", Model: "unknown"}

// innerKey is the member with the content of a record.
const innerKey = "message"

// converter makes entries of the records of one file (docs/format-claude.md). The tree is that
// of the records, without the empty ones.
type converter struct {
	*agents.Builder
	learned *learned
	titles  titles

	isBegun bool // a record of the conversation was read
	places  map[string]*branchPoint
	passed  map[string]string     // the parents of removed records
	missed  map[string]bool       // missing records on which others hang
	calls   map[string]answerCall // by the id of a tool call
	side    chains
	answer  answer             // the open one
	cost    []byte             // the session's cost recorded while no answer was open
	counted map[string]counted // by the key of an answer: its part with the largest usage
	bound   *boundary          // the compaction whose summary follows
	// compacted has the records of compactions.
	compacted map[string]bool
	queue     queue
	moves     whereabouts

	isAnswering bool // the next message may be the client's answer to a slash command

	projects *Projects   // has the files of parents; may be nil
	fork     forkContext // of a subagent

	leaf   leaf
	behind map[string]bool // the records behind the last boundary, and those that it keeps; nil without one
	end    *branchPoint    // of the entry made last
	newest string          // the end of the branch with the latest time
	latest int64           // that time, in milliseconds since the epoch

	ofBlock agents.Object // memory for the members of a block
	blocks  agents.Blocks // memory for a result's content
}

// branchPoint is a point on which the children of a record hang. The records of an answer and of its
// results share one, with the id of the last of them, as the results of parallel calls hang on the
// records of their calls.
type branchPoint struct {
	id    string // of an entry; "" before the first
	first string // the first entry of the record or answer
	// extended: an entry other than a result hangs on it.
	extended bool
	up       *branchPoint // the parent of its first entry, or nil
}

// answerCall is a call of an answer, as its result finds it.
type answerCall struct {
	prompt  uint64 // a hash of a subagent's prompt
	place   *branchPoint
	removed bool // with its answer
}

// newConverter returns a converter for a file. path is that of the file if its entries are a part of
// another session, without their usage, else "".
func newConverter(about agents.About, projects *Projects, path string) *converter {
	c := &converter{}
	known := &learned{
		counts: map[string]int64{}, late: map[string]string{}, removed: map[string]int64{},
		replaced: map[string]string{}, queued: map[int64]bool{}, last: map[string]int64{},
	}
	agents.NewBuilder(about, provider, func(b *agents.Builder) func(*agents.Record) {
		if known.moved {
			clear(known.late)
			clear(known.last)
			known.moved = false
		}
		*c = converter{
			Builder: b, learned: known, projects: projects, places: map[string]*branchPoint{},
			passed: map[string]string{}, missed: map[string]bool{}, calls: map[string]answerCall{}, counted: map[string]counted{},
			compacted: map[string]bool{},
			ofBlock:   make(agents.Object, 0, 16), side: newChains(), end: &branchPoint{},
			queue: queue{guessed: map[string]int64{}, attached: map[string]int{}},
		}
		b.InnerKey = innerKey
		b.Path = path
		b.Pending = c.pending
		b.Unique = true
		if !known.whole && about.Chain == "" {
			b.Chargeless = chargeless(about.Side)
		}
		b.Move("")
		return c.record
	})
	return c
}

// record makes the entries of a record.
func (c *converter) record(of *agents.Record) {
	r := &record{Object: of.Object, message: of.Inner, line: of.Line}
	r.typ = r.Member("type")
	r.uuid, _ = r.Member("uuid").Text()
	r.copyOf, r.copyTime = agents.EntryIn(r.Object)
	if r.copyOf == "" {
		r.copyOf, _ = r.Member("forkedFrom").Member("messageUuid").Text()
	}
	c.titles.read += len(of.Value) + 1
	if !c.Side && !c.Facts && !c.Listed { // a list has found the title before
		c.titles.add(r.Object)
		c.SetTitle(c.titles.title())
	}
	isUser := r.typ.Is("user")
	isAnswer := r.typ.Is("assistant")
	if isOfOther(r.message.Member("parts"), r.Member("systemPayload")) || !c.isMine(r, isUser) || c.isOutdated(r) {
		return
	}
	c.retract(r, isUser || isAnswer)
	if r.uuid == "" && !isUser && !isAnswer {
		c.control(r)
		if c.isBegun { // it names no directory
			c.aside(r)
		}
		return
	}
	c.begin(r)
	c.setParent(r)
	said, isVoice := voiceTalk(r.Object)
	switch {
	case isSummary(r):
		c.compaction(r)
	case isUser:
		c.message(r)
	case isQueuedCommand(r):
		content, isMeta := queuedCommand(r)
		c.dequeue(content, false)
		c.user(r, content, sayerOf(content, isMeta))
	case isVoice:
		c.dequeue(said.content, !said.isQueued)
		c.user(r, said.content, sayerOf(said.content, said.isMeta))
	case isAnswer:
		c.assistant(r)
	case isBoundary(r):
		c.send()
		c.leaf = leaf{}
		c.answer.id = "" // copies of the answer's records may follow
		c.behind = map[string]bool{}
		c.bound = newBoundary(c, r)
	default:
		c.control(r)
		if !c.aside(r) {
			c.pass(r)
		}
	}
}

// message makes the entries of a record in the person's name.
func (c *converter) message(r *record) {
	content := r.message.Member("content")
	isMeta := r.Member("isMeta").IsTrue()
	if !isMeta {
		c.dequeue(content, true)
	}
	by := sayerOf(content, isMeta)
	if text, _ := content.Text(); by == person && c.isAnswering && isUnknownCommand(text) {
		by = output
	}
	c.isAnswering = by == meta && isCaveat(content)
	c.user(r, content, by)
}

// begin begins the session with facts of the first record of the conversation.
func (c *converter) begin(r *record) {
	if c.isBegun {
		return
	}
	h := agents.Header{
		Time: r.time(), Cwd: agents.Quoted(c.Moved), Version: r.Member("version"), Branch: r.Member("gitBranch"),
	}
	if c.Moved == "" {
		h.Cwd = r.Member("cwd")
	}
	c.Begin(h)
	c.beginFork()
	c.isBegun = true
}

// setParent sets the record on which one hangs.
func (c *converter) setParent(r *record) {
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
}

// parentOf returns the place on which a record hangs.
func (c *converter) parentOf(r *record) *branchPoint {
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
		c.Move(c.moves.cwd())
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
	copyOf       string        // the id of the entry that it is a copy of: the uuid of a record, or that of a handover
	copyTime     rawjson.Value // the time of that entry, nil if it is the record's
	lines        []int64       // those of all records of a prompt; the last is its own
	follows      bool          // it names no parent, as in files of other programs: it hangs on the record before it
}

// id returns the id of a record's first entry. A copy in a fork has the original's id.
func (r *record) id() string {
	if r.uuid != "" {
		if r.copyOf != "" {
			return r.copyOf
		}
		return r.uuid
	}
	return "l" + strconv.FormatInt(r.line, 10)
}

// time returns the time of a record's entries.
func (r *record) time() rawjson.Value {
	if r.copyTime.IsString() {
		return r.copyTime
	}
	return r.Member("timestamp")
}

// pass lets the children of a record without an entry hang on its parent.
func (c *converter) pass(r *record) {
	c.at(r, c.parentOf(r), r.parent)
}

// user makes entries of a record with content: messages, the client's texts and tool results.
func (c *converter) user(r *record, content rawjson.Value, by string) {
	parts, results := c.split(content)
	if len(parts) == 0 {
		c.pass(r)
		return
	}
	if results < len(parts) {
		c.send()
	}
	if a := c.Open(); a != nil && c.Side && bytes.Contains(content, []byte(`"<fork-boilerplate>`)) {
		a.Uncount() // the fork's copy of its caller's answer
	}
	c.say(r, parts, results, by, c.parentOf(r))
}

// say makes entries of the parts of a record's content.
func (c *converter) say(r *record, parts []contentPart, results int, by string, at *branchPoint) {
	c.From(r.id(), r.time(), r.lines...)
	for i := range parts {
		if p := &parts[i]; p.isResult() {
			at = c.result(r, p.result, results == 1, at)
		} else {
			c.hangOn(at)
			c.text(p.content, by)
			at = c.made(r, at)
		}
	}
	c.at(r, at, r.id())
}

// text adds an entry of a speaker's words.
func (c *converter) text(content agents.Blocks, by string) {
	switch by {
	case person:
		c.User(content)
	case program:
		c.Context(content)
	default:
		c.Custom(by, content, by != meta)
	}
}

// add adds an entry that hangs on a record's parent. If no record can hang on it, the parent's do.
func (c *converter) add(r *record, add func()) {
	c.setParent(r)
	c.send()
	on := c.parentOf(r)
	c.From(r.id(), r.time())
	c.hangOn(on)
	add()
	c.at(r, c.made(r, on), r.id())
	if r.uuid == "" {
		on.id = c.Last()
	}
}

// hangOn makes the next entry hang on a place.
func (c *converter) hangOn(on *branchPoint) {
	c.HangOn(on.id, 0)
	on.extended = true
}

// made returns the place of the entry made last, which hangs on another one.
func (c *converter) made(r *record, on *branchPoint) *branchPoint {
	at := &branchPoint{id: c.Last(), first: r.id(), up: on}
	c.note(r.time(), on.id, at)
	return at
}

// note notes the place of the entry made last. Any pin of the leaf ends. The entry is the newest by
// its time, or if it hangs on the newest.
func (c *converter) note(time rawjson.Value, parent string, at *branchPoint) {
	c.end = at
	c.leaf.pinned = false
	c.leaf.cleared = false
	if c.Bills() {
		return // a bill has no leaf
	}
	ms, _, ok := rawjson.ReadTimestamp(time)
	if ok && ms >= c.latest || parent == c.newest {
		c.newest = c.Last()
		c.latest = max(ms, c.latest)
	}
}

// result makes the entry of a result, and returns its place. The record's details belong to its only
// result. A text that the client sends instead is the result; the content of its own follows it.
func (c *converter) result(r *record, result agents.Object, only bool, at *branchPoint) *branchPoint {
	at = c.resultPlace(r, result, only, at)
	content := result.Member("content")
	replacement := c.replacement(result)
	e := agents.ToolResult{Call: result.Member("tool_use_id"), IsError: result.Member("is_error").IsTrue()}
	e.Session = c.subagent(r, result)
	if only {
		e.Details = r.Member("toolUseResult")
	}
	sent := content
	if replacement != nil {
		sent = replacement
	}
	e.Content = c.blocksOf(sent)
	c.HangOn(at.id, 0)
	c.Result(e)
	c.note(r.time(), at.id, at)
	at.id = c.Last()
	if replacement != nil && (content.IsString() || content.IsArray()) {
		c.Full(output, c.blocksOf(content))
		c.note(r.time(), at.id, at)
		at.id = c.Last()
	}
	return at
}

// resultPlace returns the place of a result: after the answer with its call and the results so far.
// If the conversation has continued, it is the end of that. A record with only the result of a
// removed call is removed, too.
func (c *converter) resultPlace(r *record, result agents.Object, only bool, at *branchPoint) *branchPoint {
	id, _ := result.Member("tool_use_id").Text()
	known, ok := c.calls[id]
	if known.removed && only {
		c.remove(r.uuid, r.line)
	}
	switch {
	case !ok:
		at.extended = true
		return &branchPoint{id: at.id, first: at.first, up: at}
	case known.place.extended:
		return c.end
	}
	if c.Open() != nil && c.answer.place == known.place {
		c.answer.answered = true
	}
	return known.place
}

// pending adds the prompts that send will make entries of, and moves the leaf if needed.
func (c *converter) pending() {
	leaf := c.current()
	last := c.Last()
	c.HangOn(c.end.id, 0)
	for i := range c.queue.sent {
		if p := &c.queue.sent[i]; c.isBegun {
			c.From("", p.time, p.lines...)
			parts, _ := c.split(p.content)
			for n := range parts {
				c.text(parts[n].content, p.by)
			}
		}
	}
	if leaf == last {
		leaf = c.Last()
	}
	c.HangOn(leaf, c.leaf.line)
}
