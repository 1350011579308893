package gemini

import (
	"cmp"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// note notes the hash of a message's text.
func (c *converter) note(p *place, said uint64) {
	p.said = said
	p.all = p.before.all
	if said != 0 {
		p.all = p.all*31 + said
		c.known[p.all] = p
	}
}

// follow makes the next message one behind p.
func (c *converter) follow(p *place) {
	c.live = p
	c.Hang(p.end)
}

// rewind makes the next entry hang on the one before a message, which stays as a branch. The client
// removes all messages for an unknown one.
func (c *converter) rewind(to rawjson.Value) {
	id, _ := to.Text()
	p := c.live
	for p != c.root && p != c.places[id] {
		p = p.before
	}
	c.copying = false
	c.follow(cmp.Or(p.before, c.root))
}

// isCopy reports whether a message is a copy. The client records all messages once more when a call
// is rejected, long results are left out or a checkpoint is loaded.
func (c *converter) isCopy(r agents.Object, id string, said uint64) bool {
	isBegin := false
	at := c.live
	if !c.copying {
		at = c.root
		isBegin = c.live != at && r.Member("type").Is("user") && startsWith(userOf(r).context, contexts[:2]...)
	}
	c.begins = c.begins || isBegin
	p := c.known[at.all*31+said]
	switch {
	case isBegin && said == 0:
		p = c.live
	case p == nil || said == 0 || !c.begins && !c.copying:
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
	var copies []*place // it and those behind it
	agents.EachPart(list, func(v rawjson.Value) {
		id, ok := v.Member("id").Text()
		if p := c.places[id]; !ok || p != nil {
			c.follow(cmp.Or(p, c.live))
			return
		}
		m := agents.Read(v)
		if summary == nil && m.Member("type").Is("user") && startsWith(agents.TextIn(m.Member("content")), snapshot) {
			summary = m
		}
		if summary == nil {
			c.message(m)
			return
		}
		c.live = &place{before: c.live}
		c.note(c.live, saidBy(m))
		c.places[id], copies = c.live, append(copies, c.live)
	})
	last := c.live
	c.copying = false
	if summary != nil {
		c.compress(summary, old, copies)
	}
	c.follow(last)
}

// compress makes the entry of a compression behind a message. Of the copies behind the summary and
// the answer to it, the first one tells which message is still sent. Later ones may copy copies.
func (c *converter) compress(summary agents.Object, old *place, copies []*place) {
	kept := ""
	for p, i := old, len(copies)-1; i > 1; i-- {
		at := p
		for said := copies[i].said; at != nil && (said == 0 || at.id == "" || at.said != said); at = at.before {
		}
		if at != nil {
			kept, copies[i].id, p = at.id, at.id, at.before
		}
	}
	c.follow(old)
	id, _ := summary.Member("id").Text()
	c.From(id, summary.Member("timestamp"))
	c.Compaction(agents.Quoted(agents.TextIn(summary.Member("content"))), kept, c.input)
	for _, p := range copies {
		p.end = c.At()
	}
	c.last = copies[0]
}
