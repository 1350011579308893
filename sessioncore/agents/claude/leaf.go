package claude

// currentEntry returns the leaf of the conversation, "" before the first entry. A retracted
// entry gives way to the one before it.
func (c *converter) currentEntry() string {
	id := c.recordedLeaf()
	for range maxLate {
		parent, isRemoved := c.passed[id]
		if !isRemoved {
			break
		}
		id = c.placeOf(parent).id
	}
	return id
}

// recordedLeaf returns the entry of the recorded leaf, which may be a retracted one. If none counts, it is the newest
// entry by time; for a leaf without a pin that the conversation has continued, it is the last one in the file.
func (c *converter) recordedLeaf() string {
	l := &c.leaf
	p := c.places[l.id]
	isMissing := p == nil
	isBeforeBoundary := !isMissing && c.behind != nil && !c.behind[l.id] // the client reads nothing there
	switch {
	case l.cleared:
		return ""
	case l.id == "" || isBeforeBoundary || isMissing && l.pinned:
		if c.newest != "" {
			return c.newest
		}
		return c.Last()
	case isMissing:
		return c.Last()
	case !l.pinned && c.descendsFrom(p):
		return c.Last()
	}
	return p.id
}

// descendsFrom reports whether the last entry descends from a place, or is there.
func (c *converter) descendsFrom(p *branchPoint) bool {
	at := c.end
	for range len(c.places) + maxQueued { // a path has no more places; a cycle ends here
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
	isExplicit := r.Member("explicit").IsTrue()
	switch {
	case isExplicit:
		*l = leaf{id: id, pinned: id != "", cleared: id == "", line: r.line}
	case id != "" && id != l.id:
		*l = leaf{id: id, line: r.line}
	}
}
