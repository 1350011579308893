package codex

import (
	"bytes"
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

	begun  bool                     // the header is written
	last   string                   // the entry made last
	rolled int64                    // the line that rolled turns back last
	at     string                   // the entry on which the next one hangs
	turns  []string                 // what each message of the person hangs on
	open   *answer                  // the last answer, while its tokens may still come
	hidden []byte                   // reasoning that cannot be read and to which nothing was added yet
	hides  int64                    // its line
	names  map[string]rawjson.Value // of tools, by call
	model  setting
	effort setting
	totals string // the token totals that were counted last
}

// setting is something that an entry records where it changes: before the next entry, since by itself it says nothing.
type setting struct {
	value rawjson.Value
	time  rawjson.Value
	line  int64 // 0 where it is recorded
}

// set notes a value.
func (s *setting) set(v, time rawjson.Value, line int64) {
	if v.IsString() && !bytes.Equal(v, s.value) {
		*s = setting{slices.Clone(v), slices.Clone(time), line}
	}
}

// newConverter returns a converter for a file.
func newConverter(about foreign.About) *converter {
	return &converter{About: about, names: map[string]rawjson.Value{}}
}

// record is a line of the file.
type record struct {
	payload foreign.Object
	time    rawjson.Value
	line    int64
	part    int // how many entries it became
}

// id returns the id of the next entry that a record becomes.
func (r *record) id() string {
	r.part++
	id := "l" + strconv.FormatInt(r.line, 10)
	if r.part > 1 {
		id += "." + strconv.Itoa(r.part)
	}
	return id
}

// Add implements foreign.Converter.
func (c *converter) Add(out []byte, v rawjson.Value, line int64) []byte {
	o := foreign.Read(v)
	r := &record{payload: foreign.Read(o.Member("payload")), time: o.Member("timestamp"), line: line}
	switch typ := o.Member("type"); {
	case typ.Is("session_meta"):
		if !c.begun {
			out, c.begun = c.header(out, r), true
		}
	case !c.begun:
	case typ.Is("response_item"):
		return c.item(out, r, r.payload)
	case typ.Is("event_msg"):
		return c.event(out, r)
	case typ.Is("turn_context"):
		c.model.set(r.payload.Member("model"), r.time, line)
		c.effort.set(r.payload.Member("effort"), r.time, line)
	case typ.Is("compacted"):
		return c.compacted(out, r)
	}
	return out
}

// header appends the session's header.
func (c *converter) header(out []byte, r *record) []byte {
	out = append(out, `{"type":"session","version":3,"id":`...)
	out = rawjson.AppendQuoted(out, c.ID)
	at := r.payload.Member("timestamp")
	if at.Missing() {
		at = r.time
	}
	out = foreign.AppendMember(out, "timestamp", at)
	out = foreign.AppendMember(out, "cwd", r.payload.Member("cwd"))
	out = c.AppendMembers(out)
	out = foreign.AppendMember(out, "originator", r.payload.Member("originator"))
	out = foreign.AppendMember(out, "cliVersion", r.payload.Member("cli_version"))
	out = foreign.AppendMember(out, "git", r.payload.Member("git"))
	return append(out, "}\n"...)
}

// item makes what it is of a thing that the model was sent or said.
func (c *converter) item(out []byte, r *record, item foreign.Object) []byte {
	typ, _ := item.Member("type").Text()
	switch {
	case typ == "message" && item.Member("role").Is("assistant"):
		return c.said(out, r, contentBlocks(item.Member("content")))
	case typ == "message":
		return c.message(out, r, item)
	case typ == "reasoning":
		return c.reasoning(out, r, item)
	case strings.HasSuffix(typ, "_call"):
		return c.call(out, r, item, strings.TrimSuffix(typ, "_call"))
	case strings.HasSuffix(typ, "_output"):
		return c.result(out, r, item)
	}
	return out
}

// message makes an entry of a message of the person, or of what the program tells the model.
func (c *converter) message(out []byte, r *record, item foreign.Object) []byte {
	blocks := contentBlocks(item.Member("content"))
	if len(blocks) == 0 {
		return out
	}
	e := foreign.Entry{Type: "message", Time: r.time}
	if !item.Member("role").Is("user") {
		e.Type = "custom_message"
		e.Body = foreign.AppendMember([]byte(`"customType":"codex/message"`), "role", item.Member("role"))
		e.Body = append(append(append(e.Body, `,"content":[`...), blocks...), `],"display":false`...)
		return c.put(out, r, &e)
	}
	if !isContext(item.Member("content")) {
		c.turns = append(c.turns, c.at)
	}
	e.Body = append(append([]byte(`"message":{"role":"user","content":[`), blocks...), ']')
	e.Body = append(foreign.AppendMillis(e.Body, r.time), '}')
	return c.put(out, r, &e)
}

// isContext reports whether a message in the person's name was put in by the program: it is no turn.
func isContext(content rawjson.Value) (is bool) {
	content.EachElement(func(block rawjson.Value, _ int) bool {
		text, _ := block.Member("text").Text()
		text = strings.TrimSpace(text)
		is = strings.HasPrefix(text, "<environment_context>") || strings.HasPrefix(text, "<user_instructions>") ||
			strings.HasPrefix(text, "<turn_aborted>") || strings.HasPrefix(text, "# AGENTS.md instructions")
		return false
	})
	return is
}

// result makes an entry of what a tool gave back.
func (c *converter) result(out []byte, r *record, item foreign.Object) []byte {
	id := item.Member("call_id")
	call, ok := id.Text()
	if !ok {
		return out
	}
	b := foreign.AppendMember([]byte(`"message":{"role":"toolResult"`), "toolCallId", id)
	if name := c.names[call]; len(name) > 0 {
		b = foreign.AppendMember(b, "toolName", name)
	} else {
		b = append(b, `,"toolName":"unknown"`...)
	}
	output := item.AnyOf("output", "tools")
	b = append(append(append(b, `,"content":[`...), outputBlocks(output)...), `],"isError":`...)
	failed := string(output.Member("success")) == "false" || item.Member("status").Is("failed")
	b = foreign.AppendMillis(strconv.AppendBool(b, failed), r.time)
	return c.put(out, r, &foreign.Entry{Type: "message", Time: r.time, Body: append(b, '}')})
}

// put appends an entry to out, or to what follows the answer that is still open.
func (c *converter) put(out []byte, r *record, e *foreign.Entry) []byte {
	out = c.settings(out)
	return c.add(out, r, e)
}

// add is put without the settings that come first.
func (c *converter) add(out []byte, r *record, e *foreign.Entry) []byte {
	e.ID, e.Parent, e.Lines = r.id(), c.at, []int64{r.line}
	c.at, c.last = e.ID, e.ID
	if c.open == nil {
		return e.AppendTo(out)
	}
	c.open.ended = true
	c.open.after = e.AppendTo(c.open.after)
	if len(c.open.after) > maxAfter {
		return c.flush(out)
	}
	return out
}

// settings records what changed.
func (c *converter) settings(out []byte) []byte {
	if s := &c.model; s.line != 0 {
		r := &record{line: s.line}
		name, _ := s.value.Text()
		body := rawjson.AppendQuoted([]byte(`"model":`), "openai-codex/"+name)
		out = c.add(out, r, &foreign.Entry{Type: "model_change", Time: s.time, Body: body})
		s.line = 0
	}
	if s := &c.effort; s.line != 0 {
		r := &record{line: s.line, part: 1}
		out = c.add(out, r, &foreign.Entry{Type: "thinking_level_change", Time: s.time, Body: append([]byte(`"thinkingLevel":`), s.value...)})
		s.line = 0
	}
	return out
}

// event takes what only events say.
func (c *converter) event(out []byte, r *record) []byte {
	typ := r.payload.Member("type")
	switch {
	case typ.Is("token_count"):
		c.tokens(r.payload.Member("info"))
	case typ.Is("turn_aborted"):
		if c.open != nil {
			c.open.stop = "aborted"
		}
	case typ.Is("error"):
		return c.failed(out, r)
	case typ.Is("thread_rolled_back"):
		return c.rollBack(out, int(foreign.Count(r.payload.Member("num_turns"))), r.line)
	}
	return out
}

// rollBack makes the next entry hang on what was there before the last turns. These stay, as a branch.
func (c *converter) rollBack(out []byte, turns int, line int64) []byte {
	n := max(0, len(c.turns)-turns)
	if turns == 0 || n == len(c.turns) {
		return out
	}
	out = c.flush(out)
	c.at, c.turns, c.rolled = c.turns[n], c.turns[:n], line
	return out
}

// compacted makes the entries of a compaction and of what the model is sent from then on besides the summary.
func (c *converter) compacted(out []byte, r *record) []byte {
	out = c.settings(c.flush(out))
	e := foreign.Entry{Type: "compaction", Time: r.time}
	summary := r.payload.Member("message")
	if !summary.IsString() {
		summary = rawjson.Value(`""`)
	}
	e.Body = append([]byte(`"summary":`), summary...)
	out = c.add(out, r, &e)
	r.payload.Member("replacement_history").EachElement(func(item rawjson.Value, _ int) bool {
		out = c.item(out, r, foreign.Read(item))
		return true
	})
	return out
}

// Tail implements foreign.Converter. Where turns were rolled back and nothing came after that, the conversation stands
// before them.
func (c *converter) Tail(out []byte) []byte {
	if c.open != nil {
		out = c.open.appendTo(out)
	}
	if c.at == c.last {
		return out
	}
	return foreign.AppendLeaf(out, c.at, c.rolled)
}
