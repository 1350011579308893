package codex

import (
	"bytes"
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// maxAfter is how many bytes of entries wait behind an answer for its tokens.
const maxAfter = 8 << 20

// answer is what the model said at once: the items from a message or a result to the next.
type answer struct {
	foreign.Entry
	blocks []byte
	model  rawjson.Value
	used   usage
	stop   string
	failed rawjson.Value
	ended  bool   // what comes next is another answer
	after  []byte // entries that follow it
}

// usage are the tokens of an answer. The program records no costs.
type usage struct{ input, output, cached, total int64 }

// said adds blocks to the answer that the model is giving, or begins one.
func (c *converter) said(out []byte, r *record, blocks []byte) []byte {
	if len(blocks) == 0 {
		return out
	}
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
	}
	a := c.open
	if len(c.hidden) > 0 {
		a.add(c.hidden, c.hides)
		c.hidden = nil
	}
	a.add(blocks, r.line)
	return out
}

// begin begins an answer.
func (c *converter) begin(out []byte, r *record) []byte {
	out = c.settings(c.flush(out))
	first := r
	if len(c.hidden) > 0 {
		first = &record{line: c.hides}
	}
	a := &answer{Entry: foreign.Entry{Type: "message", Parent: c.at, Time: slices.Clone(r.time)}, model: c.model.value}
	a.ID = first.id()
	c.at, c.last, c.open = a.ID, a.ID, a
	return out
}

// add adds blocks of a line.
func (a *answer) add(blocks []byte, line int64) {
	if len(a.blocks) > 0 {
		a.blocks = append(a.blocks, ',')
	}
	a.blocks = append(a.blocks, blocks...)
	if n := len(a.Lines); n == 0 || a.Lines[n-1] != line {
		a.Lines = append(a.Lines, line)
	}
}

// call adds a call of a tool to the answer. kind is the type of the item without its ending.
func (c *converter) call(out []byte, r *record, item foreign.Object, kind string) []byte {
	name, args := item.Member("name"), item.AnyOf("arguments", "input", "action")
	switch {
	case name.IsString():
	case kind == "local_shell", kind == "web_search", kind == "tool_search":
		name = rawjson.AppendQuoted(nil, kind)
	default:
		return out
	}
	id := item.AnyOf("call_id", "id")
	if !id.IsString() {
		id = rawjson.AppendQuoted(nil, (&record{line: r.line}).id())
	}
	text, _ := id.Text()
	c.names[text] = slices.Clone(name)
	b := foreign.AppendMember([]byte(`{"type":"toolCall"`), "id", id)
	b = foreign.AppendMember(b, "name", name)
	b = append(append(b, `,"arguments":`...), arguments(args)...)
	out = c.said(out, r, append(b, '}'))
	if c.open.stop == "" {
		c.open.stop = "toolUse"
	}
	return out
}

// arguments returns the arguments of a call as an object: what is in a string where that is one, else the text as the member
// input.
func arguments(v rawjson.Value) rawjson.Value {
	if v.IsObject() {
		return v
	}
	text, ok := v.Text()
	if !ok {
		return rawjson.Value("{}")
	}
	if object := rawjson.Value(bytes.TrimSpace([]byte(text))); len(object) > 0 && object[0] == '{' && rawjson.IsValidObject(object) {
		return object
	}
	return append(append([]byte(`{"input":`), v...), '}')
}

// reasoning adds what the model thought to its answer. What cannot be read waits for something that can.
func (c *converter) reasoning(out []byte, r *record, item foreign.Object) []byte {
	var blocks []byte
	for _, key := range [...]string{"summary", "content"} {
		item.Member(key).EachElement(func(part rawjson.Value, _ int) bool {
			if text := part.Member("text"); text.IsString() {
				if len(blocks) > 0 {
					blocks = append(blocks, ',')
				}
				blocks = append(foreign.AppendMember(append(blocks, `{"type":"thinking"`...), "thinking", text), '}')
			}
			return true
		})
	}
	sealed := item.Member("encrypted_content")
	switch {
	case sealed.IsString() && len(blocks) > 0:
		blocks = append(foreign.AppendMember(blocks[:len(blocks)-1], "thinkingSignature", sealed), '}')
	case sealed.IsString():
		blocks = append(foreign.AppendMember([]byte(`{"type":"thinking","thinking":""`), "thinkingSignature", sealed), '}')
		if c.open == nil || c.open.ended {
			c.hidden, c.hides = blocks, r.line
			return out
		}
	}
	return c.said(out, r, blocks)
}

// tokens counts the tokens of the answer before them. The program writes them again where nothing was added.
func (c *converter) tokens(info rawjson.Value) {
	total := info.Member("total_token_usage")
	last := info.Member("last_token_usage")
	if !last.IsObject() || string(total) == c.totals && c.totals != "" || c.open == nil {
		return
	}
	c.totals = string(total)
	cached := foreign.Count(last.Member("cached_input_tokens"))
	u := &c.open.used
	u.input += max(0, foreign.Count(last.Member("input_tokens"))-cached)
	u.cached += cached
	u.output += foreign.Count(last.Member("output_tokens"))
	u.total += foreign.Count(last.Member("total_tokens"))
}

// failed makes an error the end of the answer, or an answer of its own.
func (c *converter) failed(out []byte, r *record) []byte {
	text := r.payload.Member("message")
	if !text.IsString() {
		return out
	}
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
		c.open.Lines = []int64{r.line}
	}
	c.open.stop, c.open.failed = "error", slices.Clone(text)
	return out
}

// flush appends the answer that is open, and what follows it.
func (c *converter) flush(out []byte) []byte {
	if c.open != nil {
		out = c.open.appendTo(out)
		c.open = nil
	}
	return out
}

// appendTo appends an answer and what follows it.
func (a *answer) appendTo(out []byte) []byte {
	b := append(append([]byte(`"message":{"role":"assistant","content":[`), a.blocks...), `],"api":"openai-codex-responses","provider":"openai-codex"`...)
	if len(a.model) > 0 {
		b = foreign.AppendMember(b, "model", a.model)
	} else {
		b = append(b, `,"model":"codex"`...)
	}
	if u := a.used; u != (usage{}) {
		b = strconv.AppendInt(append(b, `,"usage":{"input":`...), u.input, 10)
		b = strconv.AppendInt(append(b, `,"output":`...), u.output, 10)
		b = strconv.AppendInt(append(b, `,"cacheRead":`...), u.cached, 10)
		b = strconv.AppendInt(append(b, `,"cacheWrite":0,"totalTokens":`...), u.total, 10)
		b = append(b, '}')
	}
	stop := a.stop
	if stop == "" {
		stop = "stop"
	}
	b = append(append(append(b, `,"stopReason":"`...), stop...), '"')
	b = foreign.AppendMember(b, "errorMessage", a.failed)
	a.Body = append(foreign.AppendMillis(b, a.Time), '}')
	return append(a.AppendTo(out), a.after...)
}
