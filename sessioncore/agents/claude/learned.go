package claude

// learned has facts about records that stand in the file before them. They require another reading.
type learned struct {
	counts   map[string]int64  // the last line of a repeated record, which counts
	late     map[string]string // of a record after its children: another one on which they can hang
	removed  map[string]int64  // the line that removes a record, or answers, from the context
	replaced map[string]string // the sent JSON text of a replaced result, by its call
	queued   map[int64]bool    // lines of prompts that came as messages of their own, not with a result
	last     map[string]int64  // the first line of the part that counts of an answer that another one interrupts
	moved    bool              // records moved, so that late and last must be found anew
	whole    bool              // lines without a charge are needed, too
}

// maxLate bounds the records without an entry in a row after their child.
const maxLate = 100

// learn sets a fact, and reports whether it is new.
func learn[K, V comparable](c *converter, m map[K]V, key K, value V) bool {
	if old, ok := m[key]; ok && old == value {
		return false
	}
	m[key] = value
	c.Reread()
	return true
}

// isOutdated reports whether the record is repeated later. It learns of repetitions.
func (c *converter) isOutdated(r *record) bool {
	if r.uuid == "" {
		return false
	}
	counts, known := c.learned.counts[r.uuid]
	if known && r.line < counts {
		return true
	}
	_, isPlaced := c.places[r.uuid]
	if c.compacted[r.uuid] && (isBoundary(r) || isSummary(r)) {
		return true // a compaction that comes again cuts nothing
	}
	if isPlaced || known {
		c.learned.moved = learn(c, c.learned.counts, r.uuid, r.line) || c.learned.moved
	}
	return false
}

// sharedSize is the part of a uuid that all blocks of a retracted answer share.
const sharedSize = 24

// retract removes the records that a record retracts.
func (c *converter) retract(r *record, isTalk bool) {
	if isTalk || r.Member("subtype").Is("model_refusal_fallback") {
		for v := range r.Member("retractedMessageUuids").EachElement {
			uuid, _ := v.Text()
			c.remove(uuid, r.line)
			if c.places[uuid] == nil && len(uuid) > sharedSize {
				c.remove(uuid[:sharedSize], r.line) // the file has another one of the same answer
			}
		}
	}
	for v := range r.Member("snipMetadata").Member("removedUuids").EachElement {
		uuid, _ := v.Text()
		c.remove(uuid, r.line)
	}
}

// remove removes the record of a uuid, or answers before a line with its shared part.
func (c *converter) remove(uuid string, line int64) {
	if removed := c.learned.removed; uuid != "" {
		c.learned.moved = learn(c, removed, uuid, max(line, removed[uuid])) || c.learned.moved
	}
}

// isRemoved reports whether a record is not sent any more.
func (c *converter) isRemoved(r *record) bool {
	removed := c.learned.removed
	return removed[r.uuid] > 0 ||
		len(r.uuid) > sharedSize && r.typ.Is("assistant") && r.line < removed[r.uuid[:sharedSize]]
}

// parentID returns the record on which one hangs: not a removed one, unless it is removed itself.
func (c *converter) parentID(r *record) string {
	parent, ok := c.passed[r.parent]
	if !ok {
		parent = r.parent
	}
	if !c.isRemoved(r) {
		return parent
	}
	c.passed[r.uuid] = parent
	return r.parent
}

// placeOf returns the place of a record's children. A missing record leaves its name, so that the
// entry shows as one without its parent.
func (c *converter) placeOf(uuid string) *branchPoint {
	for range maxLate {
		if p := c.places[uuid]; p != nil {
			return p
		}
		if uuid == "" {
			break
		}
		c.missed[uuid] = true
		other, ok := c.learned.late[uuid]
		if !ok {
			return &branchPoint{id: uuid}
		}
		uuid = other
	}
	return &branchPoint{} // a cycle, most likely
}

// at sets the place of a record's children, and the record other on which they hang without an
// entry of its id.
func (c *converter) at(r *record, p *branchPoint, other string) {
	if r.uuid == "" {
		return
	}
	c.places[r.uuid] = p
	if c.behind != nil {
		c.behind[r.uuid] = true
	}
	if c.missed[r.uuid] && other != r.uuid {
		learn(c, c.learned.late, r.uuid, other)
	}
}
