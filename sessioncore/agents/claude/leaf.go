package claude

// current returns the entry at which the conversation stands, "" before the first. A retracted
// entry gives way to the one before it.
func (c *converter) currentEntry() string {
	at := c.recordedLeaf()
	for range maxLate {
		parent, ok := c.passed[at]
		if !ok {
			break
		}
		at = c.placeOf(parent).id
	}
	return at
}

func (c *converter) recordedLeaf() string {
	l := &c.leaf
	p := c.places[l.id]
	isBefore := c.behind != nil && p != nil && !c.behind[l.id] // a boundary, so the client does not read it
	switch {
	case l.cleared:
		return ""
	case l.id == "" || p == nil && l.pinned || isBefore:
		if c.newest != "" {
			return c.newest
		}
		return c.Last()
	case p == nil || !l.pinned && c.descendsFrom(p):
		return c.Last()
	}
	return p.id
}

// descendsFrom reports whether the last entry descends from a place, as a leaf without a pin does.
func (c *converter) descendsFrom(p *branchPoint) bool {
	at := c.end
	for range len(c.places) + maxQueued {
		if at == p || at.id == p.id {
			return true
		}
		up := at.up
		if up == nil {
			up = c.places[at.id] // it stands after its children
		}
		if up == nil || up == at {
			return false
		}
		at = up
	}
	return false
}

// leaf is the recorded place of the conversation.
type leaf struct {
	id      string // of a record, or ""
	pinned  bool   // a person moved there, and nothing followed
	cleared bool   // a person moved to before the first entry, and nothing followed
	line    int64
}

// set handles a record of type last-prompt. An explicit one pins the leaf or, without a record,
// empties the conversation; another one with another leaf removes the pin.
func (l *leaf) set(r *record) {
	id, _ := r.Member("leafUuid").Text()
	explicit := r.Member("explicit").IsTrue()
	switch {
	case explicit:
		*l = leaf{id: id, pinned: id != "", cleared: id == "", line: r.line}
	case id != "" && id != l.id:
		*l = leaf{id: id, line: r.line}
	}
}
