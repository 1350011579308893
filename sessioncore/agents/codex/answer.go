package codex

import (
	"cmp"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// maxWaiting bounds an answer with its followers that waits for its tokens, in bytes.
const maxWaiting = 8 << 20

var provider = agents.Provider{API: "openai-codex-responses", Name: "openai-codex", Model: "codex"}

// answer is one answer of the model: the items between two messages or results.
type answer struct {
	agents.Entry
	blocks  []byte
	model   rawjson.Value
	usage   agents.Usage
	stop    string
	failure rawjson.Value
	ended   bool   // the next item begins another answer
	after   []byte // entries behind it
}

// tokens are a session's totals.
type tokens struct{ input, cached, written, output, total int64 }

// respond adds blocks to the open answer, or begins one.
func (c *converter) respond(out []byte, r *record, blocks []byte) []byte {
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

func (c *converter) begin(out []byte, r *record) []byte {
	out = c.settings(c.flush(out))
	if len(c.hidden) > 0 {
		r = &c.hidden[0].at
	}
	a := &answer{model: c.model.value, usage: c.lateUsage}
	a.Entry = agents.Entry{Type: "message", Parent: c.at, Time: slices.Clone(r.time), Path: r.path}
	a.ID = r.nextID()
	for _, h := range c.hidden {
		a.add(h.block, h.at.line)
	}
	c.at, c.last, c.open, c.isPrompted = a.ID, a.ID, a, false
	c.hidden, c.lateUsage = nil, agents.Usage{}
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

// reasoning adds reasoning to its answer. Unreadable reasoning waits for a readable item.
func (c *converter) reasoning(out []byte, r *record, item agents.Object) []byte {
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
		blocks = append(agents.AppendMember(blocks[:len(blocks)-1], "thinkingSignature", sealed), '}')
	case sealed.IsString():
		blocks = []byte(`{"type":"thinking","thinking":""`)
		blocks = append(agents.AppendMember(blocks, "thinkingSignature", sealed), '}')
		if c.open == nil || c.open.ended {
			c.hidden = append(c.hidden, hidden{blocks, r.snapshot()})
			return out
		}
	}
	return c.respond(out, r, blocks)
}

// thinkingBlock appends a block of reasoning.
func thinkingBlock(dst []byte, text rawjson.Value) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(agents.AppendMember(append(dst, `{"type":"thinking"`...), "thinking", text), '}')
}

// tokensOf reads a count of tokens.
func tokensOf(v rawjson.Value) tokens {
	o := agents.Read(v)
	n := func(key string) int64 { return agents.Count(o.Member(key)) }
	return tokens{n("input_tokens"), n("cached_input_tokens"), n("cache_write_input_tokens"),
		n("output_tokens"), n("total_tokens")}
}

// since returns the tokens counted after t.
func (all tokens) since(t tokens) tokens {
	return tokens{max(0, all.input-t.input), max(0, all.cached-t.cached), max(0, all.written-t.written),
		max(0, all.output-t.output), max(0, all.total-t.total)}
}

// count adds the tokens of the answer before them. Repeated totals add nothing. The input includes
// the tokens read from the cache and written to it.
func (c *converter) count(info rawjson.Value) {
	totals, last := info.Member("total_token_usage"), info.Member("last_token_usage")
	all, used := tokensOf(totals), tokensOf(last)
	if totals.IsObject() {
		if all == c.totals {
			return
		}
		if !last.IsObject() {
			used = all.since(c.totals)
		}
		c.totals = all
	}
	if c.isCounted() {
		return
	}
	u := &c.lateUsage
	if c.open != nil {
		u = &c.open.usage
	}
	u.Input += max(0, used.input-used.cached-used.written)
	u.CacheRead += used.cached
	u.CacheWrite += used.written
	u.Output += used.output
	u.Total += used.total
}

// fail ends the answer with an error, or makes an answer of it.
func (c *converter) fail(out []byte, r *record) []byte {
	text := r.payload.Member("message")
	if !text.IsString() {
		return out
	}
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
		c.open.Lines = append(c.open.Lines, r.line)
	}
	c.open.stop, c.open.failure = "error", slices.Clone(text)
	return out
}

// flush appends the open answer and the entries behind it.
func (c *converter) flush(out []byte) []byte {
	if c.open != nil {
		out = c.open.appendTo(out)
		c.open = nil
	}
	return out
}

// appendTo appends an answer and the entries behind it.
func (a *answer) appendTo(out []byte) []byte {
	b := provider.AppendAnswer(nil, a.blocks, a.model)
	if a.usage != (agents.Usage{}) {
		b = a.usage.AppendTo(b)
	}
	b = append(append(append(b, `,"stopReason":"`...), cmp.Or(a.stop, "stop")...), '"')
	b = agents.AppendMember(b, "errorMessage", a.failure)
	a.Body = append(agents.AppendMillis(b, a.Time), '}')
	return append(a.AppendTo(out), a.after...)
}
