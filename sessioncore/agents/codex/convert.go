package codex

import (
	"maps"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

var provider = agents.Provider{API: "openai-codex-responses", Name: "openai-codex", Model: "codex", Numbered: true}

// converter makes the entries of the records of one rollout (docs/format-codex.md). The conversation
// is linear, and returns to an earlier entry when turns are rolled back.
type converter struct {
	*agents.Builder
	lineage
	titleFacts
	begun      bool                 // the session has a header
	began      rawjson.Value        // the time of records that have none
	turns      []string             // the parent of each message that began a turn
	isPrompted bool                 // the person's last message has no answer yet
	replay     bool                 // the current items are repetitions after a compaction
	ended      bool                 // the next item begins another answer
	hidden     []sealedReasoning    // before a readable item
	calls      map[string]callState // by id
	script     string               // the last call of a tool that may call others
	itemTexts  map[uint64]int       // numbers of a turn's texts of items without an event, by hash
	itemsAhead map[uint64]int       // how much more often items of the program have a turn's text than events, by hash
	events     []event              // events without an item yet
	waiting    []string             // calls with results in events alone so far
	held       int                  // bytes of records with such results
	totals     tokens               // the last ones counted
	undecided  undecided            // messages with an author that later records tell
	goal       goal                 // of the thread
	prompted   uint64               // a hash of the person's last words
	numbers    numbering            // of the records
	early      agents.Usage         // tokens before their answer
	earlyAt    agents.Origin        // their last record
}

// newConverter returns the Builder and the converter for a file of home. obj is the file, which may be joined with a
// chain. parent opens the rollout that it may have copies of, or is nil. Each further reading of the file
// (Builder.Restart) empties the converter and gives it another Builder.
func newConverter(home *Home, about agents.About, obj storage.Object, parent func() *lineReader) (*agents.Builder, *converter) {
	c := &converter{}
	before := &chain{}
	j, isJoined := obj.(*joined)
	if isJoined {
		before = j.chain
	}
	b := agents.NewBuilder(about, provider, func(b *agents.Builder) func(*agents.Record) {
		*c = converter{
			Builder:    b,
			lineage:    lineage{chain: before, copies: copies{open: parent}},
			titleFacts: titleFacts{home: home},
			calls:      map[string]callState{},
			itemTexts:  map[uint64]int{},
			itemsAhead: map[uint64]int{},
		}
		c.titled(about.ID)
		b.InnerKey = "payload"
		b.Pending = c.pending
		b.Unresumed = func() *jsonl.LineProblem { return c.numbers.unresumed() }
		b.Unique = true
		return c.record
	})
	return b, c
}

// record makes the entries of a record.
func (c *converter) record(r *agents.Record) {
	typ := r.Member("type")
	payload := r.Inner
	if c.isMark(r) {
		return
	}
	if typ.Is("session_meta") {
		c.meta(payload)
	}
	c.place(r)
	if c.Path == "" { // it is in the session's own file
		c.numbers.add(r.Object, payload, c.line, int64(len(r.Value)))
	}
	if len(payload) == 0 {
		c.bare(r.Object)
		return
	}
	if !c.begun {
		meta := payload
		if !typ.Is("session_meta") { // it is damaged
			meta = nil
		}
		c.begin(nil, meta)
	}
	switch {
	case typ.Is("response_item"):
		c.item(payload)
	case typ.Is("event_msg"):
		c.event(payload, len(r.Value))
	case typ.Is("turn_context"):
		c.Model(payload.Member("model"))
		c.Level(payload.Member("effort"))
	case typ.Is("compacted"):
		c.compacted(payload)
	case typ.Is("inter_agent_communication"):
		c.release(byPerson)
		c.message(payload, messageFacts{isAgents: true})
	case typ.Is("realtime_item"):
		c.speech(payload)
	}
}

// item makes entries of an item to or from the model.
func (c *converter) item(item agents.Object) {
	typ, _ := item.Member("type").Text()
	role := item.Member("role")
	content := item.Member("content")
	kind, isCall := strings.CutSuffix(typ, "_call")
	isAnswer := typ == "message" && role.Is("assistant")
	if typ != "message" || isAnswer {
		c.release(byPerson)
	}
	isPart := typ == "reasoning" || isCall // of an answer
	beginsAnswer := isPart && !c.isOpen()
	if isAnswer || beginsAnswer { // no items with results of earlier calls follow
		c.finish()
	}
	switch {
	case isAnswer:
		c.addTexts(assistant, content)
		blocks := contentBlocks(content)
		if len(blocks) > 0 {
			c.answer().Add(blocks)
		}
	case typ == "message", typ == "agent_message":
		c.message(item, messageFacts{
			isAgents: typ == "agent_message",
			hasEvent: role.Is("user") && c.addTexts(person, content),
		})
	case typ == "reasoning":
		c.addTexts(thought, item.Member("summary"), content)
		c.reasoning(item)
	case isCall:
		c.toolCall(item, kind)
	case strings.HasSuffix(typ, "_output"):
		c.output(item)
	}
}

// messageFacts are facts about a message beside its item.
type messageFacts struct {
	isAgents bool // it is another agent's
	hasEvent bool // an event has its words
}

// message makes an entry of a message of the person, the program or another agent. An empty one makes none.
func (c *converter) message(item agents.Object, facts messageFacts) {
	role := item.Member("role")
	content := item.Member("content")
	blocks := contentBlocks(content)
	switch {
	case len(blocks) == 0:
	case role.Is("user") && c.replay:
		c.ended = true
		c.Context(blocks)
	case role.Is("user"):
		c.userMessage(item, facts.hasEvent)
	case facts.isAgents:
		c.settle()
		c.beginTurn()
		c.custom("agent_message", item, blocks, isShown)
	case len(c.undecided.messages) > 0: // it must not come before these
		c.hold(item, byProgram)
	default:
		c.custom("message", item, blocks, isForModel)
	}
}

// userMessage makes an entry of a message in the person's name, unless later records tell its author.
// hasEvent says that an event has its words.
func (c *converter) userMessage(item agents.Object, hasEvent bool) {
	by := c.authorIn(item, hasEvent)
	isBehindUndecided := len(c.undecided.messages) > 0
	switch {
	case by == byEither, by == byProgram && isBehindUndecided:
		c.hold(item, by)
	case by == byProgram:
		c.say(item, by)
	default: // the person speaks, so nobody spoke in the messages before
		c.release(byProgram)
		c.say(item, by)
	}
}

// Whether a text for the model is shown to people, too.
const (
	isShown    = true
	isForModel = false
)

// custom makes an entry of a text for the model that is not the person's. item names its author.
func (c *converter) custom(kind string, item agents.Object, blocks agents.Blocks, display bool) {
	c.ended = true
	role := rawjson.Member{Key: rawjson.Value(`"role"`), Value: item.Member("role")}
	author := rawjson.Member{Key: rawjson.Value(`"author"`), Value: item.Member("author")}
	c.Custom("codex/"+kind, blocks, display, role, author)
}

// beginTurn begins a turn with the next entry. A rollback may take it back.
func (c *converter) beginTurn() {
	c.turns = append(c.turns, c.At())
	c.isPrompted = true
	c.hidden = nil
	c.ended = true
}

// compacted makes the entries of a compaction and of the items that replace the history.
func (c *converter) compacted(payload agents.Object) {
	c.settle()
	c.Close()
	c.Compaction(payload.Member("message"), "", 0)
	c.replay = true
	for v := range payload.Member("replacement_history").EachElement {
		item := agents.Read(v)
		c.item(item)
	}
	c.replay = false
	c.hidden = nil
}

// settle makes entries of everything that only events have, as no item follows any more. Messages with an undecided
// author are the person's then.
func (c *converter) settle() {
	c.release(byPerson)
	c.finish()
	c.flushEvents(len(c.events))
}

// pending implements Builder.Pending: it is settle for the end of the file. More records may follow, so that a copy of
// the converter is settled, while the Builder forgets the entries by itself. The copy shares no memory that settle
// changes: lists are cut at their beginning or appended to behind the converter's own end, and of the maps only calls
// changes.
func (c *converter) pending() {
	hasEarly := c.early != agents.Usage{}
	isUnsettled := len(c.events) > 0 || len(c.undecided.messages) > 0 || len(c.waiting) > 0
	if !isUnsettled && !hasEarly {
		return
	}
	last := *c
	last.calls = maps.Clone(c.calls)
	last.settle()
	isStillEarly := last.early != agents.Usage{}
	if isStillEarly { // no answer follows that has these tokens
		last.Of(&last.earlyAt, func() { last.answer() })
	}
}
