package codex

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// converter makes the lines of a session of the lines of one rollout (docs/format.md, Codex). The conversation is a line,
// which goes back where the person rolled turns back.
type converter struct {
	foreign.About
	lineage

	begun  bool // the header is written
	bare   bare
	last   string              // the entry made last
	rolled int64               // the line that rolled turns back last
	at     string              // the entry on which the next one hangs
	turns  []string            // the parent of each message of the person
	asked  bool                // nothing was answered since the person's last message
	replay bool                // the items being converted are repetitions after a compaction
	open   *answer             // the last answer, while its tokens may still come
	hidden []hidden            // reasoning that cannot be read and to which nothing was added yet
	tools  map[string]tool     // by call
	script string              // the last call of a tool that may call others
	heard  map[uint64]struct{} // hashes of the texts of items
	early  []early             // texts in events that no item has yet
	// waiting are the calls whose results only events said until now, and kept how many bytes these have.
	waiting []string
	kept    int
	model   setting
	effort  setting
	totals  tokens        // that were counted last
	due     foreign.Usage // tokens of an answer that is written already
}

// hidden is reasoning that cannot be read.
type hidden struct {
	block []byte
	at    record
}

// setting is something that an entry records where it changes: before the next entry, since by itself it says nothing.
type setting struct {
	value rawjson.Value
	at    record
	set   bool // and not recorded yet
}

// note notes a value.
func (s *setting) note(v rawjson.Value, r *record) {
	if v.IsString() && !bytes.Equal(v, s.value) {
		*s = setting{slices.Clone(v), r.kept(), true}
	}
}

// newConverter returns a converter for a file. before is the chain that it is joined with, nil for none. parent has the lines
// of the rollout that its own may begin with, nil if it is not there.
func newConverter(about foreign.About, before *chain, parent *lines) *converter {
	if before == nil {
		before = &chain{}
	}
	return &converter{
		About: about, lineage: lineage{chain: before, parent: parent},
		tools: map[string]tool{}, heard: map[uint64]struct{}{},
	}
}

// record is a line of the file.
type record struct {
	payload foreign.Object
	time    rawjson.Value
	id      string // of the first entry that it becomes
	part    int    // how many entries it became
	line    int64  // where it is from
	path    string // the rollout in which that is, "" for the session's own
}

// kept returns what stays of a record when the next one is read.
func (r *record) kept() record {
	return record{time: slices.Clone(r.time), id: r.id, part: r.part, line: r.line, path: r.path}
}

// nextID returns the id of the next entry that a record becomes.
func (r *record) nextID() string {
	if r.part++; r.part > 1 {
		return r.id + "." + strconv.Itoa(r.part)
	}
	return r.id
}

// Add implements foreign.Converter.
func (c *converter) Add(out []byte, v rawjson.Value, line int64) []byte {
	o := foreign.Read(v)
	r := &record{payload: foreign.Read(o.Member("payload")), time: o.Member("timestamp")}
	if c.place(r, o, line) && c.open != nil {
		c.open.ended = true // what follows is the session's own
	}
	if len(r.payload) == 0 {
		return c.addBare(out, r, o, v)
	}
	typ := o.Member("type")
	if out = c.beginBare(out); !c.begun {
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
		c.model.note(r.payload.Member("model"), r)
		c.effort.note(r.payload.Member("effort"), r)
	case typ.Is("compacted"):
		return c.compacted(out, r)
	}
	return out
}

// item makes what it is of a thing that the model was sent or said.
func (c *converter) item(out []byte, r *record, item foreign.Object) []byte {
	typ, _ := item.Member("type").Text()
	content := item.Member("content")
	isAnswer := typ == "message" && item.Member("role").Is("assistant")
	if isAnswer || (c.open == nil || c.open.ended) && (typ == "reasoning" || strings.HasSuffix(typ, "_call")) {
		out = c.finish(out)
	}
	switch {
	case isAnswer:
		return c.said(c.hear(out, assistant, content), r, contentBlocks(content))
	case typ == "message", typ == "agent_message":
		if item.Member("role").Is("user") {
			out = c.hear(out, person, content)
		}
		return c.message(out, r, item)
	case typ == "reasoning":
		return c.reasoning(c.hear(out, assistant, item.Member("summary"), content), r, item)
	case strings.HasSuffix(typ, "_call"):
		return c.called(out, r, item, strings.TrimSuffix(typ, "_call"))
	case strings.HasSuffix(typ, "_output"):
		return c.output(out, r, item)
	}
	return out
}

// message makes an entry of a message of the person, or of what the program or another agent tells the model.
func (c *converter) message(out []byte, r *record, item foreign.Object) []byte {
	blocks := contentBlocks(item.Member("content"))
	if len(blocks) == 0 {
		return out
	}
	if item.Member("role").Is("user") {
		context := c.replay || isContext(item.Member("content"))
		if !context {
			out = c.settle(out)
		}
		return c.asks(out, r, blocks, context)
	}
	isAgent := item.Member("type").Is("agent_message")
	kind := "codex/message"
	if isAgent {
		kind = "codex/agent_message"
	}
	return c.toldModel(out, r, kind, item, blocks, isAgent)
}

// toldModel makes an entry of a text for the model that is not the person's.
func (c *converter) toldModel(out []byte, r *record, kind string, item foreign.Object, blocks []byte, display bool) []byte {
	e := foreign.Entry{Type: "custom_message", Time: r.time}
	e.Body = rawjson.AppendQuoted([]byte(`"customType":`), kind)
	e.Body = foreign.AppendMember(e.Body, "role", item.Member("role"))
	e.Body = foreign.AppendMember(e.Body, "author", item.Member("author"))
	e.Body = append(append(append(e.Body, `,"content":[`...), blocks...), `],"display":`...)
	e.Body = strconv.AppendBool(e.Body, display)
	return c.put(out, r, &e)
}

// asks makes an entry of a message of the person. One that the program put in is no turn.
func (c *converter) asks(out []byte, r *record, blocks []byte, context bool) []byte {
	if !context {
		c.turns, c.asked, c.hidden = append(c.turns, c.at), true, nil
	}
	e := foreign.Entry{Type: "message", Time: r.time}
	e.Body = append(append([]byte(`"message":{"role":"user","content":[`), blocks...), ']')
	if context {
		e.Body = append(e.Body, `,"synthetic":true`...)
	}
	e.Body = append(foreign.AppendMillis(e.Body, r.time), '}')
	return c.put(out, r, &e)
}

// contexts begin what the program puts in in the person's name.
var contexts = [...]string{"# agents.md instructions", "<environment_context>", "<user_instructions>", "<skill>", "<turn_aborted>",
	"<user_shell_command>", "<subagents>", "<subagent_notification>"}

// isContext reports whether a message in the person's name was put in by the program.
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

// put appends an entry to out, or to what follows the answer that is still open.
func (c *converter) put(out []byte, r *record, e *foreign.Entry) []byte {
	out = c.settings(out)
	return c.add(out, r, e)
}

// add is put without the settings that come first.
func (c *converter) add(out []byte, r *record, e *foreign.Entry) []byte {
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

// settings records what changed.
func (c *converter) settings(out []byte) []byte {
	if s := &c.model; s.set {
		name, _ := s.value.Text()
		body := rawjson.AppendQuoted([]byte(`"model":`), "openai-codex/"+name)
		s.set, s.at.part = false, 0
		out = c.add(out, &s.at, &foreign.Entry{Type: "model_change", Time: s.at.time, Body: body})
	}
	if s := &c.effort; s.set {
		s.set, s.at.part = false, 1
		out = c.add(out, &s.at, &foreign.Entry{Type: "thinking_level_change", Time: s.at.time, Body: append([]byte(`"thinkingLevel":`), s.value...)})
	}
	return out
}

// rollBack makes the next entry hang on what was there before the last turns. These stay, as a branch.
func (c *converter) rollBack(out []byte, turns int, line int64) []byte {
	out = c.flush(c.settle(out))
	n := max(0, len(c.turns)-turns)
	if turns == 0 || n == len(c.turns) {
		return out
	}
	c.at, c.turns, c.rolled, c.hidden = c.turns[n], c.turns[:n], line, nil
	return out
}

// compacted makes the entries of a compaction and of what the model is sent from then on besides the summary.
func (c *converter) compacted(out []byte, r *record) []byte {
	out = c.settings(c.flush(c.settle(out)))
	e := foreign.Entry{Type: "compaction", Time: r.time}
	summary := r.payload.Member("message")
	if !summary.IsString() {
		summary = rawjson.Value(`""`)
	}
	e.Body = append([]byte(`"summary":`), summary...)
	out = c.add(out, r, &e)
	c.replay = true
	r.payload.Member("replacement_history").EachElement(func(item rawjson.Value, _ int) bool {
		out = c.item(out, r, foreign.Read(item))
		return true
	})
	c.replay, c.hidden = false, nil
	return out
}

// Tail implements foreign.Converter. Where turns were rolled back and nothing came after that, the conversation stands
// before them.
func (c *converter) Tail(out []byte) []byte {
	if c.bare.first != nil {
		c = c.copy()
		out = c.beginBare(out)
	}
	if len(c.early) > 0 || len(c.waiting) > 0 {
		c = c.copy()
		out = c.settle(out)
	}
	if c.open != nil {
		out = c.open.appendTo(out)
	}
	if c.at == c.last {
		return out
	}
	return foreign.AppendLeaf(out, c.at, c.rolled)
}

// copy returns a converter that can go on without a change of c.
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
