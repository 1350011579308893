package codex

import (
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// sealedReasoning is reasoning that only the provider can read.
type sealedReasoning struct {
	sealed rawjson.Value
	at     agents.Origin
}

// isOpen reports whether the next item of the model belongs to the open answer.
func (c *converter) isOpen() bool {
	open := c.Open()
	return open != nil && !c.ended && open.Size() < maxAnswer
}

// maxAnswer bounds an answer that waits for its tokens, in bytes.
const maxAnswer = 8 << 20

// answer returns the open answer, or begins one: it has the items between two messages or results. The answer gets the
// unreadable reasoning and the tokens that wait for it.
func (c *converter) answer() *agents.Answer {
	if !c.isOpen() {
		c.Close()
		for _, h := range c.hidden {
			c.Of(&h.at, func() { c.Answer("").Thinking(nil, h.sealed) })
		}
		c.hidden = nil
		c.isPrompted = false
		c.ended = false
	}
	a := c.Answer("")
	a.Count(c.early)
	c.early = agents.Usage{}
	return a
}

// reasoning adds reasoning to its answer. Unreadable reasoning waits for a readable item.
func (c *converter) reasoning(item agents.Object) {
	var texts []rawjson.Value
	for _, key := range [...]string{"summary", "content"} {
		for part := range item.Member(key).EachElement {
			text := part.Member("text")
			if text.IsString() && !text.Is("") {
				texts = append(texts, text)
			}
		}
	}
	sealed := item.Member("encrypted_content")
	switch {
	case len(texts) > 0: // the last one has the ciphertext of all
		last := len(texts) - 1
		for _, text := range texts[:last] {
			c.answer().Thinking(text, nil)
		}
		c.answer().Thinking(texts[last], sealed)
	case !sealed.IsString(): // there is none
	case c.isOpen():
		c.answer().Thinking(nil, sealed)
	default:
		c.hidden = append(c.hidden, sealedReasoning{
			sealed: slices.Clone(sealed),
			at:     c.Here(),
		})
	}
}

// tokens are a session's totals.
type tokens struct {
	input   int64 // with the two parts below
	cached  int64 // read from the cache
	written int64 // to the cache
	output  int64
	total   int64
}

// tokensOf reads a count of tokens.
func tokensOf(v rawjson.Value) tokens {
	o := agents.Read(v)
	n := func(key string) int64 { return agents.Count(o.Member(key)) }
	return tokens{
		input:   n("input_tokens"),
		cached:  n("cached_input_tokens"),
		written: n("cache_write_input_tokens"),
		output:  n("output_tokens"),
		total:   n("total_tokens"),
	}
}

// since returns the tokens counted after earlier totals. Totals that are smaller began anew.
func (all tokens) since(earlier tokens) tokens {
	if all.input+all.output < earlier.input+earlier.output {
		earlier = tokens{}
	}
	return tokens{
		input:   max(0, all.input-earlier.input),
		cached:  max(0, all.cached-earlier.cached),
		written: max(0, all.written-earlier.written),
		output:  max(0, all.output-earlier.output),
		total:   max(0, all.total-earlier.total),
	}
}

// count adds the tokens of the answer before them, or keeps them for the next one. Repeated totals add nothing.
func (c *converter) count(info rawjson.Value) {
	totals := info.Member("total_token_usage")
	last := info.Member("last_token_usage")
	all := tokensOf(totals)
	if totals.IsObject() && all == c.totals {
		return
	}
	used := tokensOf(last)
	if totals.IsObject() {
		if !last.IsObject() {
			used = all.since(c.totals)
		}
		c.totals = all
	}
	u := used.usage()
	switch {
	case c.isCounted(): // the other session has them
	case c.Open() != nil:
		c.Open().CountHere(u)
	default:
		c.early = c.early.Plus(u)
		c.earlyAt = c.Here()
	}
}

// usage returns the tokens as a usage. Its input lacks the tokens of the cache.
func (all tokens) usage() agents.Usage {
	return agents.Usage{
		Input:      max(0, all.input-all.cached-all.written),
		CacheRead:  all.cached,
		CacheWrite: all.written,
		Output:     all.output,
		Total:      all.total,
	}
}
