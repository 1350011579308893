package codex

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the lines of a session from the lines of one rollout (docs/format.md, Codex). The
// conversation is linear, and returns to an earlier entry when turns are rolled back.
type converter struct {
	agents.About
	lineage

	hasHeader   bool // it is written
	old         oldRollout
	last        string              // the entry made last
	rolled      int64               // the line of the last rollback
	at          string              // the parent of the next entry
	turns       []string            // the parent of each message of the person
	isPrompted  bool                // the person's last message has no answer yet
	replay      bool                // the current items are repetitions after a compaction
	open        *answer             // the last answer, while its tokens may follow
	hidden      []hidden            // unreadable reasoning before a readable item
	tools       map[string]tool     // by call
	script      string              // the last call of a tool that may call others
	itemTexts   map[uint64]struct{} // hashes of the texts of items
	events      []eventText         // texts of events without an item yet
	waiting     []string            // calls with results in events alone so far
	waitingSize int                 // of these results
	model       setting
	effort      setting
	totals      tokens       // the last ones counted
	lateUsage   agents.Usage // for an answer that is written already
}

// hidden is unreadable reasoning.
type hidden struct {
	block []byte
	at    record
}

// setting is a value that becomes an entry before the next one when it changes.
type setting struct {
	value rawjson.Value
	at    record
	set   bool // the entry is to be made
}

func (s *setting) change(v rawjson.Value, r *record) {
	if v.IsString() && !bytes.Equal(v, s.value) {
		*s = setting{slices.Clone(v), r.snapshot(), true}
	}
}

// newConverter returns a converter for a file. before is the chain with which it is joined, or nil.
// parent has the lines of the rollout from which it may have copies, or is nil.
func newConverter(about agents.About, before *chain, parent *lines) *converter {
	if before == nil {
		before = &chain{}
	}
	return &converter{
		About: about, lineage: lineage{chain: before, parent: parent},
		tools: map[string]tool{}, itemTexts: map[uint64]struct{}{},
	}
}

// record is a line of the file.
type record struct {
	payload agents.Object
	time    rawjson.Value
	id      string // of its first entry
	part    int    // number of its entries
	line    int64
	path    string // the rollout of line, "" for the session's own
}

// snapshot returns the facts about a record for later use.
func (r *record) snapshot() record {
	return record{time: slices.Clone(r.time), id: r.id, part: r.part, line: r.line, path: r.path}
}

// nextID returns the id of a record's next entry.
func (r *record) nextID() string {
	if r.part++; r.part > 1 {
		return r.id + "." + strconv.Itoa(r.part)
	}
	return r.id
}

// Add implements agents.Converter.
func (c *converter) Add(out []byte, v rawjson.Value, line int64) []byte {
	o := agents.Read(v)
	r := &record{payload: agents.Read(o.Member("payload")), time: o.Member("timestamp")}
	if c.place(r, o, line) && c.open != nil {
		c.open.ended = true // the next lines are the session's own
	}
	if len(r.payload) == 0 {
		return c.addOld(out, r, o, v)
	}
	typ := o.Member("type")
	if out = c.beginOld(out); !c.hasHeader {
		meta := r.payload
		if !typ.Is("session_meta") { // it is damaged
			meta = nil
		}
		out = c.header(out, r.time, meta)
	}
	switch {
	case typ.Is("response_item"):
		return c.item(out, r, r.payload)
	case typ.Is("event_msg"):
		return c.event(out, r)
	case typ.Is("turn_context"):
		c.model.change(r.payload.Member("model"), r)
		c.effort.change(r.payload.Member("effort"), r)
	case typ.Is("compacted"):
		return c.compacted(out, r)
	}
	return out
}

// item makes entries of an item to or from the model.
func (c *converter) item(out []byte, r *record, item agents.Object) []byte {
	typ, _ := item.Member("type").Text()
	content := item.Member("content")
	isAnswer := typ == "message" && item.Member("role").Is("assistant")
	if isAnswer || (c.open == nil || c.open.ended) && (typ == "reasoning" || strings.HasSuffix(typ, "_call")) {
		out = c.finish(out)
	}
	switch {
	case isAnswer:
		return c.respond(c.addTexts(out, assistant, content), r, contentBlocks(content))
	case typ == "message", typ == "agent_message":
		if item.Member("role").Is("user") {
			out = c.addTexts(out, person, content)
		}
		return c.message(out, r, item)
	case typ == "reasoning":
		return c.reasoning(c.addTexts(out, assistant, item.Member("summary"), content), r, item)
	case strings.HasSuffix(typ, "_call"):
		return c.toolCall(out, r, item, strings.TrimSuffix(typ, "_call"))
	case strings.HasSuffix(typ, "_output"):
		return c.output(out, r, item)
	}
	return out
}

// message makes an entry of a message of the person, the program or another agent.
func (c *converter) message(out []byte, r *record, item agents.Object) []byte {
	blocks := contentBlocks(item.Member("content"))
	if len(blocks) == 0 {
		return out
	}
	if item.Member("role").Is("user") {
		context := c.replay || isContext(item.Member("content"))
		if !context {
			out = c.settle(out)
		}
		return c.prompt(out, r, blocks, context)
	}
	isAgent := item.Member("type").Is("agent_message")
	kind := "codex/message"
	if isAgent {
		kind = "codex/agent_message"
	}
	return c.custom(out, r, kind, item, blocks, isAgent)
}

// custom makes an entry of a text for the model that is not the person's.
func (c *converter) custom(
	out []byte, r *record, kind string, item agents.Object, blocks []byte, display bool,
) []byte {
	e := agents.Entry{Type: "custom_message", Time: r.time}
	e.Body = rawjson.AppendQuoted([]byte(`"customType":`), kind)
	e.Body = agents.AppendMember(e.Body, "role", item.Member("role"))
	e.Body = agents.AppendMember(e.Body, "author", item.Member("author"))
	e.Body = append(append(append(e.Body, `,"content":[`...), blocks...), `],"display":`...)
	e.Body = strconv.AppendBool(e.Body, display)
	return c.put(out, r, &e)
}

// prompt makes an entry of a message of the person. Context begins no turn.
func (c *converter) prompt(out []byte, r *record, blocks []byte, context bool) []byte {
	if !context {
		c.turns, c.isPrompted, c.hidden = append(c.turns, c.at), true, nil
	}
	e := agents.Entry{Type: "message", Time: r.time}
	e.Body = append(append([]byte(`"message":{"role":"user","content":[`), blocks...), ']')
	if context {
		e.Body = append(e.Body, `,"synthetic":true`...)
	}
	e.Body = append(agents.AppendMillis(e.Body, r.time), '}')
	return c.put(out, r, &e)
}

// contexts begin the program's messages in the person's name.
var contexts = [...]string{"# agents.md instructions", "<environment_context>", "<user_instructions>", "<skill>",
	"<turn_aborted>", "<user_shell_command>", "<subagents>", "<subagent_notification>"}

// isContext reports whether a message in the person's name is the program's.
func isContext(content rawjson.Value) (is bool) {
	content.EachElement(func(block rawjson.Value, _ int) bool {
		text, _ := block.Member("text").Bytes()
		text = bytes.TrimSpace(text)
		for _, begin := range contexts {
			is = is || len(text) >= len(begin) && strings.EqualFold(string(text[:len(begin)]), begin)
		}
		return !is
	})
	return is
}

// put appends an entry to out, or behind the open answer.
func (c *converter) put(out []byte, r *record, e *agents.Entry) []byte {
	out = c.settings(out)
	return c.add(out, r, e)
}

// add is put without the settings before it.
func (c *converter) add(out []byte, r *record, e *agents.Entry) []byte {
	e.ID, e.Parent, e.Lines, e.Path = r.nextID(), c.at, []int64{r.line}, r.path
	c.at, c.last = e.ID, e.ID
	if c.open == nil {
		return e.AppendTo(out)
	}
	c.open.ended = true
	c.open.after = e.AppendTo(c.open.after)
	if len(c.open.after) > maxWaiting {
		return c.flush(out)
	}
	return out
}

// settings adds an entry for each changed setting.
func (c *converter) settings(out []byte) []byte {
	if s := &c.model; s.set {
		name, _ := s.value.Text()
		body := rawjson.AppendQuoted([]byte(`"model":`), provider.Name+"/"+name)
		s.set, s.at.part = false, 0
		out = c.add(out, &s.at, &agents.Entry{Type: "model_change", Time: s.at.time, Body: body})
	}
	if s := &c.effort; s.set {
		s.set, s.at.part = false, 1
		body := append([]byte(`"thinkingLevel":`), s.value...)
		out = c.add(out, &s.at, &agents.Entry{Type: "thinking_level_change", Time: s.at.time, Body: body})
	}
	return out
}

// rollBack makes the next entry hang on the one before the last turns, which stay as a branch.
func (c *converter) rollBack(out []byte, turns int, line int64) []byte {
	out = c.flush(c.settle(out))
	n := max(0, len(c.turns)-turns)
	if turns == 0 || n == len(c.turns) {
		return out
	}
	c.at, c.turns, c.rolled, c.hidden = c.turns[n], c.turns[:n], line, nil
	return out
}

// compacted makes the entries of a compaction and of the items that replace the history.
func (c *converter) compacted(out []byte, r *record) []byte {
	out = c.settings(c.flush(c.settle(out)))
	e := agents.Entry{Type: "compaction", Time: r.time}
	summary := r.payload.Member("message")
	if !summary.IsString() {
		summary = rawjson.Value(`""`)
	}
	e.Body = append([]byte(`"summary":`), summary...)
	out = c.add(out, r, &e)
	c.replay = true
	r.payload.Member("replacement_history").EachElement(func(item rawjson.Value, _ int) bool {
		out = c.item(out, r, agents.Read(item))
		return true
	})
	c.replay, c.hidden = false, nil
	return out
}

// Tail implements agents.Converter. After a rollback without further items it moves the leaf.
func (c *converter) Tail(out []byte) []byte {
	if c.old.first != nil {
		c = c.copy()
		out = c.beginOld(out)
	}
	if len(c.events) > 0 || len(c.waiting) > 0 {
		c = c.copy()
		out = c.settle(out)
	}
	if c.open != nil {
		out = c.open.appendTo(out)
	}
	if c.at == c.last {
		return out
	}
	return agents.AppendLeaf(out, c.at, c.rolled)
}

// copy returns a converter that can continue without a change of c.
func (c *converter) copy() *converter {
	d := *c
	d.turns, d.tools, d.waiting = slices.Clip(c.turns), maps.Clone(c.tools), slices.Clone(c.waiting)
	if c.open != nil {
		open := *c.open
		open.blocks, open.Lines, open.after = slices.Clip(open.blocks), slices.Clip(open.Lines), slices.Clip(open.after)
		d.open = &open
	}
	return &d
}
