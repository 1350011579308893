package codex

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// maxWaiting is how many bytes an answer and what follows it may have and still wait for the answer's tokens.
const maxWaiting = 8 << 20

// answer is what the model said at once: the items from a message or a result to the next.
type answer struct {
	foreign.Entry
	blocks []byte
	model  rawjson.Value
	used   foreign.Usage
	stop   string
	failed rawjson.Value
	ended  bool   // what comes next is another answer
	after  []byte // entries that follow it
}

// tokens are the totals of a session.
type tokens struct{ input, cached, output, total int64 }

// said adds blocks to the answer that the model is giving, or begins one.
func (c *converter) said(out []byte, r *record, blocks []byte) []byte {
	if len(blocks) == 0 {
		return out
	}
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
	}
	c.open.add(blocks, r.line)
	if len(c.open.blocks) > maxWaiting {
		return c.flush(out)
	}
	return out
}

// begin begins an answer.
func (c *converter) begin(out []byte, r *record) []byte {
	out = c.settings(c.flush(out))
	if len(c.hidden) > 0 {
		r = &c.hidden[0].at
	}
	a := &answer{Entry: foreign.Entry{Type: "message", Parent: c.at, Time: slices.Clone(r.time), Path: r.path}, model: c.model.value, used: c.due}
	a.ID = r.nextID()
	for _, h := range c.hidden {
		a.add(h.block, h.at.line)
	}
	c.at, c.last, c.open, c.asked, c.hidden, c.due = a.ID, a.ID, a, false, nil, foreign.Usage{}
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

// called adds a call of a tool to the answer. kind is the type of the item without its ending.
func (c *converter) called(out []byte, r *record, item foreign.Object, kind string) []byte {
	name, id := item.Member("name"), item.AnyOf("call_id", "id")
	if kind == "web_search" {
		return c.searched(out, r, item, id)
	}
	if !name.IsString() {
		name = rawjson.AppendQuoted(nil, kind)
	}
	return c.call(c.speakAll(out), r, id, name, item.AnyOf("arguments", "input", "action", "revised_prompt"))
}

// call adds a call to the answer.
func (c *converter) call(out []byte, r *record, id, name, args rawjson.Value) []byte {
	if !id.IsString() {
		id = rawjson.AppendQuoted(nil, r.id)
	}
	text, _ := id.Text()
	c.names[text] = slices.Clone(name)
	b := foreign.AppendMember([]byte(`{"type":"toolCall"`), "id", id)
	b = foreign.AppendMember(b, "name", name)
	b = append(append(b, `,"arguments":`...), arguments(args)...)
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
	}
	if c.open.stop == "" {
		c.open.stop = "toolUse"
	}
	return c.said(out, r, append(b, '}'))
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
			if text := part.Member("text"); len(text) > len(`""`) && text.IsString() {
				blocks = thinkingBlock(blocks, text)
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
			c.hidden = append(c.hidden, hidden{blocks, r.kept()})
			return out
		}
	}
	return c.said(out, r, blocks)
}

// thinkingBlock appends what was thought.
func thinkingBlock(dst []byte, text rawjson.Value) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(foreign.AppendMember(append(dst, `{"type":"thinking"`...), "thinking", text), '}')
}

// count counts the tokens of the answer before them. The program writes them again where nothing was added.
func (c *converter) count(info rawjson.Value) {
	read := func(v rawjson.Value) tokens {
		o := foreign.Read(v)
		return tokens{foreign.Count(o.Member("input_tokens")), foreign.Count(o.Member("cached_input_tokens")),
			foreign.Count(o.Member("output_tokens")), foreign.Count(o.Member("total_tokens"))}
	}
	totals, last := info.Member("total_token_usage"), info.Member("last_token_usage")
	all, used := read(totals), read(last)
	if totals.IsObject() {
		if all == c.totals {
			return
		}
		if !last.IsObject() {
			t := c.totals
			used = tokens{max(0, all.input-t.input), max(0, all.cached-t.cached), max(0, all.output-t.output), max(0, all.total-t.total)}
		}
		c.totals = all
	}
	if c.alreadyCounted() {
		return
	}
	u := &c.due
	if c.open != nil {
		u = &c.open.used
	}
	u.Input += max(0, used.input-used.cached)
	u.CacheRead += used.cached
	u.Output += used.output
	u.Total += used.total
}

// failed makes an error the end of the answer, or an answer of its own.
func (c *converter) failed(out []byte, r *record) []byte {
	text := r.payload.Member("message")
	if !text.IsString() {
		return out
	}
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
		c.open.Lines = append(c.open.Lines, r.line)
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
	if a.used != (foreign.Usage{}) {
		b = a.used.AppendTo(b)
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
