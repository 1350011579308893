package gemini

import (
	"hash/maphash"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

var seed = maphash.MakeSeed()

// hashOf returns a hash of a message's type and its text, 0 without a text.
func hashOf(typ, text string) uint64 {
	if text == "" {
		return 0
	}
	return maphash.String(seed, typ+" "+text)
}

func (c *converter) hang(at string) {
	if at != c.At() {
		c.Hang(at)
	}
}

// rewind makes the next entry hang on the one before a message, which stays as a branch. The client
// removes all messages where it does not know the one.
func (c *converter) rewind(to rawjson.Value) {
	at, before := 0, ""
	id, _ := to.Text()
	if i := slices.IndexFunc(c.live, func(p *place) bool { return p.id == id }); i >= 0 {
		at, before = i, c.live[i].before
	}
	c.live = c.live[:at]
	c.Hang(before)
}

// replace makes a list the messages that the model is sent. New ones among them become entries. The
// next entry hangs on the last one of the list.
func (c *converter) replace(list rawjson.Value) {
	old, at := c.live, ""
	c.live = nil
	var summary *place
	agents.EachPart(list, func(v rawjson.Value) {
		id, ok := v.Member("id").Text()
		p := c.places[id]
		switch {
		case !ok:
			return
		case p != nil:
		case summary != nil: // the client's answer to the summary, and copies of what is kept
			p = &place{id: id, before: summary.end, end: summary.end}
		case v.Member("type").Is("user") && isSnapshot(agents.TextIn(v.Member("content"))):
			p = c.compress(v, id, keptFrom(list, id, old))
			summary = p
		default:
			c.hang(at)
			c.message(agents.Read(v))
			at = c.At()
			return
		}
		at, c.places[id], c.live = p.end, p, append(c.live, p)
	})
	c.hang(at)
}

// compress makes the entry of a compression, of which a message has the summary.
func (c *converter) compress(v rawjson.Value, id, kept string) *place {
	p := &place{id: id, before: c.At()}
	c.From(id, v.Member("timestamp"))
	c.Compaction(agents.Quoted(agents.TextIn(v.Member("content"))), kept, c.input)
	p.end, c.last = c.At(), nil
	return p
}

// keptFrom returns the entry of the first message before a compression that is still sent, "" for
// none. Behind the summary and the answer to it, a list has copies of these messages.
func keptFrom(list rawjson.Value, summary string, old []*place) (kept string) {
	var copies []uint64
	behind := 0
	agents.EachPart(list, func(v rawjson.Value) {
		if behind > 1 {
			typ, _ := v.Member("type").Text()
			copies = append(copies, hashOf(typ, saidBy(v)))
		}
		if behind > 0 || v.Member("id").Is(summary) {
			behind++
		}
	})
	for _, hash := range slices.Backward(copies) {
		i := len(old) - 1
		for ; i >= 0 && (hash == 0 || old[i].hash != hash); i-- {
		}
		if i >= 0 {
			old, kept = old[:i], old[i].id
		}
	}
	return kept
}
