package claude

import (
	"bytes"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

var provider = agents.Provider{API: "anthropic-messages", Name: "anthropic", Model: "unknown"}

const (
	// innerKey is the member with the content of a record.
	innerKey = "message"
	// usualMembers is how many members most blocks have at most.
	usualMembers = 16
)

// converter makes entries of the records of one file (docs/format-claude.md), in one reading of it. The entries
// have the tree of the records, without the empty ones.
type converter struct {
	*agents.Builder
	learned *learned
	titles  titles

	isBegun bool                    // a record of the conversation was read
	places  map[string]*branchPoint // of the children of a record, by its uuid
	passed  map[string]string       // for a removed record: the record above it that is not removed
	missed  map[string]bool         // missing records with children
	calls   map[string]answerCall   // by the id of a tool call
	side    chains                  // subagents in the session's file
	answer  answer                  // the open one
	cost    []byte                  // the session's cost recorded while no answer was open
	counted map[string]counted      // by the key of an answer: its part with the largest usage
	bound   *boundary               // the compaction that has no summary yet
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

// branchPoint is the parent of a record's children. The records of an answer and of its
// results share one, with the id of the last of them, as the results of parallel calls hang on the
// records of their calls.
type branchPoint struct {
	id    string // of an entry; "" before the first
	first string // the first entry of the record or answer
	// extended: an entry other than a result hangs on it.
	extended bool
	up       *branchPoint // of the parent of its first entry, or nil
}

// answerCall is a call of an answer, as its result finds it.
type answerCall struct {
	prompt  uint64 // a hash of a subagent's prompt
	place   *branchPoint
	removed bool // with its answer
}

// newConverter returns a converter for a file. path is the file's own if its entries are a part of
// another session, without their usage, else "". Each further reading of the file (Builder.Restart) empties the
// converter, but for the facts that the readings before learned, and gives it another Builder.
func newConverter(about agents.About, projects *Projects, path string) *converter {
	c := &converter{}
	known := newLearned()
	agents.NewBuilder(about, provider, func(b *agents.Builder) func(*agents.Record) {
		known.beginReading()
		*c = emptyConverter(b, known, projects)
		b.InnerKey = innerKey
		b.Path = path
		b.Pending = c.pending
		b.Unique = true
		hasOwnFile := about.Chain == "" // the lines of other conversations tell which records are a subagent's
		if hasOwnFile && !known.whole {
			b.Chargeless = chargeless(about.Side)
		}
		b.Move("") // the records tell the directory again
		return c.record
	})
	return c
}

// emptyConverter returns a converter for the first record of a file.
func emptyConverter(b *agents.Builder, known *learned, projects *Projects) converter {
	return converter{
		Builder:   b,
		learned:   known,
		projects:  projects,
		places:    map[string]*branchPoint{},
		passed:    map[string]string{},
		missed:    map[string]bool{},
		calls:     map[string]answerCall{},
		counted:   map[string]counted{},
		compacted: map[string]bool{},
		side:      newChains(),
		end:       &branchPoint{},
		ofBlock:   make(agents.Object, 0, usualMembers),
		queue: queue{
			guessed:  map[string]int64{},
			attached: map[string]int{},
		},
	}
}

// record makes the entries of a record. A record that is not the session's, or comes again later, makes none.
func (c *converter) record(of *agents.Record) {
	r := &record{}
	r.read(of)
	c.titles.read += len(of.Value) + 1
	if !c.Side && !c.Facts && !c.Listed { // a list has found the title before
		c.titles.add(r.Object)
		c.SetTitle(c.titles.title())
	}
	isUser := r.typ.Is("user")
	isTalk := isUser || r.typ.Is("assistant")
	if isOfOther(r.message.Member("parts"), r.Member("systemPayload")) || !c.isMine(r, isUser) || c.isOutdated(r) {
		return
	}
	c.retract(r, isTalk)
	if r.uuid == "" && !isTalk {
		c.control(r)
		if c.isBegun { // else the header would be made of it, and it names no directory
			c.aside(r)
		}
		return
	}
	c.begin(r)
	c.setParent(r)
	c.addRecord(r)
}

// addRecord makes the entries of a record of the conversation, by its kind.
func (c *converter) addRecord(r *record) {
	spoken, isVoice := voiceTalk(r.Object)
	switch {
	case isSummary(r): // before the other records in the person's name
		c.compaction(r)
	case r.typ.Is("user"):
		c.message(r)
	case isQueuedCommand(r):
		content, isMeta := queuedCommand(r)
		c.matchAttachment(content)
		c.addContent(r, content, sayerOf(content, isMeta))
	case isVoice:
		if spoken.isQueued {
			c.matchAttachment(spoken.content)
		} else {
			c.matchMessage(spoken.content)
		}
		c.addContent(r, spoken.content, sayerOf(spoken.content, spoken.isMeta))
	case r.typ.Is("assistant"):
		c.assistant(r)
	case isBoundary(r):
		c.beginCompaction(r)
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
		c.matchMessage(content)
	}
	speaker := sayerOf(content, isMeta)
	if speaker == person && c.isAnswering {
		text, _ := content.Text()
		if isUnknownCommand(text) {
			speaker = output
		}
	}
	c.isAnswering = speaker == meta && isCaveat(content)
	c.addContent(r, content, speaker)
}

// begin begins the session with facts of the first record of the conversation. It does nothing for later ones.
func (c *converter) begin(r *record) {
	if c.isBegun {
		return
	}
	cwd := r.Member("cwd")
	if c.Moved != "" {
		cwd = agents.Quoted(c.Moved)
	}
	c.Begin(agents.Header{
		Time:    r.time(),
		Cwd:     cwd,
		Version: r.Member("version"),
		Branch:  r.Member("gitBranch"),
	})
	c.beginFork()
	c.isBegun = true
}

// setParent sets r.parent and r.follows.
func (c *converter) setParent(r *record) {
	parent := r.Member("parentUuid")
	r.follows = len(parent) == 0
	r.parent, _ = parent.Text()
	last := c.fork.last
	isFork := last != "" && (r.parent == "" || r.parent == last)
	switch {
	case isFork && c.places[last] == nil:
		r.parent = "" // the parent's talk is missing
	case isFork:
		r.parent = last
	}
	r.parent = c.parentID(r)
}

// parentOf returns the place of a record's parent. setParent must come before.
func (c *converter) parentOf(r *record) *branchPoint {
	if r.follows {
		return c.end
	}
	return c.placeOf(r.parent)
}

// control handles a record that tells facts about others or about the session. Other records change nothing.
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

// pass lets the children of a record without an entry hang on its parent.
func (c *converter) pass(r *record) {
	c.setPlace(r, c.parentOf(r), r.parent)
}

// addContent makes entries of a record with content: messages of a speaker, and tool results.
func (c *converter) addContent(r *record, content rawjson.Value, speaker string) {
	parts := c.split(content)
	if len(parts) == 0 {
		c.pass(r)
		return
	}
	if countResults(parts) < len(parts) {
		c.send() // somebody speaks, behind the prompts that are sent with results
	}
	answer := c.Open()
	if answer != nil && c.Side && bytes.Contains(content, []byte(`"<fork-boilerplate>`)) {
		answer.Uncount() // the fork's copy of its caller's answer
	}
	c.addParts(r, parts, speaker, c.parentOf(r))
}

// addParts makes entries of the parts of a record's content. The first one hangs on a place, each other one on
// the entry before it or, as a result, on its call.
func (c *converter) addParts(r *record, parts []contentPart, speaker string, on *branchPoint) {
	isOnlyResult := countResults(parts) == 1
	c.From(r.id(), r.time(), r.lines...)
	for i := range parts {
		p := &parts[i]
		if p.isResult() {
			on = c.result(r, p.result, isOnlyResult, on)
			continue
		}
		c.hangOn(on)
		c.addText(p.content, speaker)
		on = c.newPlace(r, on)
	}
	c.setPlace(r, on, r.id())
}

// addText adds an entry of a speaker's words.
func (c *converter) addText(content agents.Blocks, speaker string) {
	switch speaker {
	case person:
		c.User(content)
	case program:
		c.Context(content)
	default:
		isShown := speaker != meta
		c.Custom(speaker, content, isShown)
	}
}

// addAside adds the entry that addEntry makes of a client's record. It hangs on the record's parent. If no record can
// hang on it, those that hang on the parent do.
func (c *converter) addAside(r *record, addEntry func()) {
	c.setParent(r)
	c.send()
	on := c.parentOf(r)
	c.From(r.id(), r.time())
	c.hangOn(on)
	addEntry()
	c.setPlace(r, c.newPlace(r, on), r.id())
	if r.uuid == "" {
		on.id = c.Last()
	}
}

// hangOn makes the next entry, which is no result, hang on a place.
func (c *converter) hangOn(on *branchPoint) {
	c.HangOn(on.id, 0)
	on.extended = true
}

// newPlace returns the place of the entry made last, of a record, which hangs on another place.
func (c *converter) newPlace(r *record, on *branchPoint) *branchPoint {
	made := &branchPoint{id: c.Last(), first: r.id(), up: on}
	c.noteLast(r.time(), on.id, made)
	return made
}

// noteLast notes the place of the entry made last, with its time and its parent. Any pin of the leaf ends. The
// entry is the newest by its time, or if it hangs on the newest.
func (c *converter) noteLast(time rawjson.Value, parent string, made *branchPoint) {
	c.end = made
	c.leaf.pinned = false
	c.leaf.cleared = false
	if c.Bills() {
		return // a bill has no leaf
	}
	ms, _, isTimed := rawjson.ReadTimestamp(time)
	isLater := isTimed && ms >= c.latest
	if isLater || parent == c.newest {
		c.newest = c.Last()
		c.latest = max(ms, c.latest)
	}
}

// pending implements Builder.Pending: it adds the prompts that send will make entries of, and moves the leaf if
// needed. It changes the Builder alone, which forgets that.
func (c *converter) pending() {
	leaf := c.currentEntry()
	isAtEnd := leaf == c.Last()
	c.HangOn(c.end.id, 0)
	if c.isBegun {
		c.addSent()
	}
	if isAtEnd {
		leaf = c.Last()
	}
	c.HangOn(leaf, c.leaf.line)
}

// addSent adds entries of the prompts sent with the last results.
func (c *converter) addSent() {
	for i := range c.queue.sent {
		p := &c.queue.sent[i]
		c.From("", p.time, p.lines...)
		parts := c.split(p.content)
		for n := range parts {
			c.addText(parts[n].content, p.by)
		}
	}
}
