package gemini

import (
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// rewind makes the next entry hang on the one before a message, which stays as a branch. The client
// removes all messages where it does not know the one.
func (c *converter) rewind(to string) {
	at := slices.IndexFunc(c.live, func(p *place) bool { return p.id == to })
	if at < 0 {
		c.live = nil
		c.Hang("")
		return
	}
	c.Hang(c.live[at].before)
	c.live = c.live[:at]
}

// replace makes a list the messages that the model is sent. New ones among them become entries. The next
// entry hangs on the last one of the list.
func (c *converter) replace(list rawjson.Value) {
	old, at := c.live, ""
	c.live = nil
	var summary *place
	list.EachElement(func(v rawjson.Value, _ int) bool {
		id, ok := v.Member("id").Text()
		p := c.places[id]
		switch {
		case !ok:
			return true
		case p != nil:
			c.live = append(c.live, p)
		case summary != nil: // the client's answer to the summary, and copies of what is kept
			p = &place{id: id, before: summary.end, end: summary.end, first: summary.first}
			c.places[id], c.live = p, append(c.live, p)
		case v.Member("type").Is("user") && isSnapshot(textOf(v.Member("content"))):
			summary = c.compress(v, id, keptFrom(list, id, old))
			p = summary
		default:
			c.hang(at)
			c.message(foreign.Read(v))
			at = c.At()
			return true
		}
		at = p.end
		return true
	})
	c.hang(at)
}

func (c *converter) hang(at string) {
	if at != c.At() {
		c.Hang(at)
	}
}

// compress makes the entry of a compression, of which a message has the summary.
func (c *converter) compress(v rawjson.Value, id, kept string) *place {
	p := &place{id: id, before: c.At()}
	c.From(id, v.Member("timestamp"))
	c.Compaction(quoted(textOf(v.Member("content"))), kept, c.input)
	p.end, p.first = c.At(), c.At()
	c.places[id], c.live, c.last = p, append(c.live, p), nil
	return p
}

// keptFrom returns the entry of the first message before a compression that is still sent, "" for none.
// Behind the summary and the answer to it, a list has copies of these messages.
func keptFrom(list rawjson.Value, summary string, old []*place) (kept string) {
	var copies []uint64
	behind := 0
	list.EachElement(func(v rawjson.Value, _ int) bool {
		if behind > 1 {
			typ, _ := v.Member("type").Text()
			copies = append(copies, hashOfText(typ, textOf(v.Member("content"))))
		}
		if behind > 0 || v.Member("id").Is(summary) {
			behind++
		}
		return true
	})
	at := len(old)
	for _, hash := range slices.Backward(copies) {
		for i := at - 1; hash != 0 && i >= 0; i-- {
			if old[i].hash == hash {
				at, kept = i, old[i].first
				break
			}
		}
	}
	return kept
}
