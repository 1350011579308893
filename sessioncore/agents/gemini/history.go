package gemini

import (
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// note notes the hash of a message's text, 0 for none, to find copies of the message.
func (c *converter) note(p *messagePlace, said uint64) {
	p.said = said
	p.all = p.before.all
	if said != 0 {
		p.all = hashBehind(p.all, said)
		c.known[p.all] = p
	}
}

// hashBehind returns the hash of all texts up to a message with a text, by the hash of those before it. The order counts.
func hashBehind(all, said uint64) uint64 { return all*31 + said }

// follow makes the next message one behind p.
func (c *converter) follow(p *messagePlace) {
	c.live = p
	c.Hang(p.end)
}

// rewind makes the next entry hang on the one before a message, which stays as a branch. The client
// removes all messages for an unknown one.
func (c *converter) rewind(to rawjson.Value) {
	id, _ := to.Text()
	c.copying = false
	p := c.places[id]
	if p == nil || p == c.root || !c.isLive(p) {
		c.follow(c.root)
		return
	}
	c.follow(p.before)
}

// isLive reports whether the model is sent a message.
func (c *converter) isLive(p *messagePlace) bool {
	return p.depth <= c.live.depth && c.live.above(p.depth) == p
}

// isCopy reports whether a message is a copy, and goes on at its original then. The client records all messages once more
// when a call is rejected, long results are left out or a checkpoint is loaded: first the context, then each message with
// a new id. A message is a copy if all texts up to it are the same. A context without copies behind it begins anew.
func (c *converter) isCopy(r agents.Object, id string, said uint64) bool {
	isBegin := false
	at := c.live // the place that a copy would follow
	if !c.copying {
		at = c.root
		isOfUser := r.Member("type").Is("user")
		hasContext := isOfUser && startsWith(userOf(r).context, contexts[:2]...)
		isBegin = hasContext && c.live != c.root
	}
	if isBegin {
		c.begins = true
	}
	p := c.known[hashBehind(at.all, said)]
	isKnown := p != nil && said != 0
	mayBeCopy := c.begins || c.copying
	switch {
	case isBegin && said == 0: // the context alone, before the copies
		p = c.live
	case !isKnown || !mayBeCopy:
		if c.begins && said != 0 { // a checkpoint of another session
			c.begins = false
			c.follow(c.root)
		}
		return false
	default:
		c.begins = false
		c.copying = true
	}
	c.places[id] = p
	c.follow(p)
	return true
}

// replace makes a list the messages that the model is sent. New ones become entries, but for those
// behind a summary: the client's answer to it, and copies. The next entry hangs on the last one.
func (c *converter) replace(list rawjson.Value) {
	old := c.live
	c.follow(c.root)
	c.copying = true
	var summary agents.Object
	var copies []*messagePlace // it and those behind it
	agents.EachPart(list, func(v rawjson.Value) {
		id, hasID := v.Member("id").Text()
		known := c.places[id]
		switch {
		case known != nil:
			c.follow(known)
			return
		case !hasID:
			c.follow(c.live)
			return
		}
		m := agents.Read(v)
		if summary == nil && isSummary(m) {
			summary = m
		}
		if summary == nil {
			c.message(m)
			return
		}
		c.live = c.live.behind("")
		c.note(c.live, saidBy(m))
		c.places[id] = c.live
		copies = append(copies, c.live)
	})
	last := c.live
	c.copying = false
	if summary != nil {
		c.compress(summary, old, copies)
	}
	c.follow(last)
}

// isSummary reports whether a message is the summary of a compression.
func isSummary(m agents.Object) bool {
	text := agents.TextIn(m.Member("content"))
	return m.Member("type").Is("user") && startsWith(text, snapshot)
}

// compress makes the entry of a compression behind a message. The new history is the summary, the answer to it, and
// copies of the last messages:
//
//	before  a b c d
//	after   summary answer c' d'    keeps c
//
// A later compression may copy copies.
func (c *converter) compress(summary agents.Object, old *messagePlace, copies []*messagePlace) {
	kept := ""
	originals := newOriginals(old, len(copies))
	const first = 2 // after the summary and the answer
	for i := len(copies) - 1; i >= first; i-- {
		copied := copies[i]
		original := originals.last(copied.said)
		if original == nil {
			continue
		}
		kept = original.id // in the end the id of the first copy
		copied.id = original.id
	}
	c.follow(old)
	id, _ := summary.Member("id").Text()
	c.From(id, summary.Member("timestamp"))
	text := agents.TextIn(summary.Member("content"))
	c.Compaction(agents.Quoted(text), kept, c.input)
	for _, p := range copies { // the next message hangs on the compression
		p.end = c.At()
	}
	c.last = copies[0]
}

// originals are the last messages before a compression, by their texts.
type originals struct {
	bySaid map[uint64][]*messagePlace // the last one first
	before int                        // the depth below which the next one is
}

// newOriginals returns the originals of some copies. They are at the end of the talk: a look further back
// would take the square of the records' number.
func newOriginals(last *messagePlace, copies int) *originals {
	o := &originals{
		bySaid: map[uint64][]*messagePlace{},
		before: last.depth + 1,
	}
	at := last
	reach := 4*copies + 100 // other messages may be among the originals
	for range reach {
		if at == nil {
			break
		}
		if at.said != 0 && at.id != "" {
			o.bySaid[at.said] = append(o.bySaid[at.said], at)
		}
		at = at.before
	}
	return o
}

// last returns the last message with a text before the one that it returned last; nil if there is none.
func (o *originals) last(said uint64) *messagePlace {
	for len(o.bySaid[said]) > 0 {
		p := o.bySaid[said][0]
		o.bySaid[said] = o.bySaid[said][1:]
		if p.depth < o.before {
			o.before = p.depth
			return p
		}
	}
	return nil
}
