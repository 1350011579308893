package claude

import "cmp"

// stands returns the entry at which the conversation stands, "" before the first. One that was
// taken back gives way to the one before it.
func (c *converter) stands() string {
	at := c.standsAt()
	for range maxLate {
		parent, ok := c.passed[at]
		if !ok {
			break
		}
		at = c.placeOf(parent).id
	}
	return at
}

func (c *converter) standsAt() string {
	l := &c.leaf
	p := c.places[l.id]
	switch {
	case l.cleared:
		return ""
	case l.id == "" || p == nil && l.pinned:
		return cmp.Or(c.newest, c.last)
	case p == nil || !l.pinned && c.comesFrom(p):
		return c.last
	}
	return p.id
}

// comesFrom reports whether the entry made last comes from a place, as the client tells of a leaf that is not pinned.
func (c *converter) comesFrom(p *place) bool {
	at := c.end
	for range len(c.places) + maxQueued {
		if at == p || at.id == p.id {
			return true
		}
		up := at.up
		if up == nil {
			up = c.places[at.id] // it stands behind its children
		}
		if up == nil || up == at {
			return false
		}
		at = up
	}
	return false
}

// leaf is the place where the conversation stands, by its records.
type leaf struct {
	id      string // of a record; "" for nothing
	pinned  bool   // the person went there, and nothing was said since then
	cleared bool   // the same, before the first
	line    int64
}

// set handles a record of type last-prompt: one that is explicit pins the leaf or, without a record,
// empties the conversation; another one, with another leaf, removes the pin.
func (l *leaf) set(r *record) {
	id, _ := r.Member("leafUuid").Text()
	switch explicit := isTrue(r.Member("explicit")); {
	case explicit:
		*l = leaf{id, id != "", id == "", r.line}
	case id != "" && id != l.id:
		*l = leaf{id: id, line: r.line}
	}
}
