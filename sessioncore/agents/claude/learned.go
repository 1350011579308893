package claude

// learned has facts about records that stand in the file before the records that tell them. A new fact requires
// another reading, which finds it here from the start.
type learned struct {
	counts   map[string]int64  // the last line of a repeated record, which counts
	late     map[string]string // of a record after its children: another parent for these
	removed  map[string]int64  // the line that removes a record, or answers, from the context
	replaced map[string]string // the sent JSON text of a replaced result, by its call
	queued   map[int64]bool    // lines of prompts that came as messages of their own, not with a result
	last     map[string]int64  // the first line of the part that counts of an answer that another one interrupts
	moved    bool              // counts or removed changed in this reading, so that late and last must be found anew
	whole    bool              // lines without a charge are needed, too
}

func newLearned() *learned {
	return &learned{
		counts:   map[string]int64{},
		late:     map[string]string{},
		removed:  map[string]int64{},
		replaced: map[string]string{},
		queued:   map[int64]bool{},
		last:     map[string]int64{},
	}
}

// beginReading drops the facts that depend on the others, if those have changed since the last reading.
func (l *learned) beginReading() {
	if l.moved {
		clear(l.late)
		clear(l.last)
		l.moved = false
	}
}

// maxLate bounds the records without an entry in a row after their child.
const maxLate = 100

// learn sets a fact, and reports whether it is new. Then the file is read again.
func learn[K, V comparable](c *converter, facts map[K]V, key K, value V) bool {
	old, isKnown := facts[key]
	if isKnown && old == value {
		return false
	}
	facts[key] = value
	c.Reread()
	return true
}

// isOutdated reports whether a record is to be left out, as it is repeated later. It learns of repetitions.
func (c *converter) isOutdated(r *record) bool {
	if r.uuid == "" {
		return false
	}
	countedLine, isRepeated := c.learned.counts[r.uuid]
	if isRepeated && r.line < countedLine {
		return true
	}
	if c.compacted[r.uuid] && (isBoundary(r) || isSummary(r)) {
		return true // a compaction that comes again cuts nothing
	}
	_, isPlaced := c.places[r.uuid]
	if !isPlaced && !isRepeated {
		return false
	}
	if learn(c, c.learned.counts, r.uuid, r.line) {
		c.learned.moved = true
	}
	return false
}

// sharedSize is the part of a uuid that all blocks of a retracted answer share.
const sharedSize = 24

// retract removes the records that a record retracts. isTalk tells that the record is of a person or the model.
func (c *converter) retract(r *record, isTalk bool) {
	if isTalk || r.Member("subtype").Is("model_refusal_fallback") {
		for v := range r.Member("retractedMessageUuids").EachElement {
			uuid, _ := v.Text()
			c.remove(uuid, r.line)
			isMissing := c.places[uuid] == nil
			if isMissing && len(uuid) > sharedSize { // the file has other blocks of the answer
				c.remove(uuid[:sharedSize], r.line)
			}
		}
	}
	for v := range r.Member("snipMetadata").Member("removedUuids").EachElement {
		uuid, _ := v.Text()
		c.remove(uuid, r.line)
	}
}

// remove removes the record of a uuid or, if uuid is the shared part of one, the answers before a line that have
// it. It does nothing for "". The last line that removes them counts.
func (c *converter) remove(uuid string, line int64) {
	if uuid == "" {
		return
	}
	removed := c.learned.removed
	last := max(line, removed[uuid])
	if learn(c, removed, uuid, last) {
		c.learned.moved = true
	}
}

// isRemoved reports whether a record is not sent any more.
func (c *converter) isRemoved(r *record) bool {
	removed := c.learned.removed
	if removed[r.uuid] > 0 {
		return true
	}
	if len(r.uuid) <= sharedSize || !r.typ.Is("assistant") {
		return false
	}
	shared := r.uuid[:sharedSize]
	return r.line < removed[shared]
}

// parentID returns the parent of a record or, if that is removed, the first record above it that is not.
// A removed record stays on its parent, and is noted for its children.
func (c *converter) parentID(r *record) string {
	sentParent, isPassed := c.passed[r.parent]
	if !isPassed {
		sentParent = r.parent
	}
	if !c.isRemoved(r) {
		return sentParent
	}
	c.passed[r.uuid] = sentParent
	return r.parent
}

// placeOf returns the place of the children of a record, never nil; for "" it is before the first entry. A missing
// record leaves its name as the place's id, so that the entry shows as one without its parent, and is noted in
// c.missed in case it comes later.
func (c *converter) placeOf(uuid string) *branchPoint {
	for range maxLate {
		p := c.places[uuid]
		if p != nil {
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

// setPlace sets the place of a record's children. other is another parent for them,
// where no entry has the id of r; it is used if they stand in the file before r.
func (c *converter) setPlace(r *record, p *branchPoint, other string) {
	if r.uuid == "" {
		return
	}
	c.places[r.uuid] = p
	if c.behind != nil {
		c.behind[r.uuid] = true
	}
	isAfterChildren := c.missed[r.uuid]
	if isAfterChildren && other != r.uuid {
		learn(c, c.learned.late, r.uuid, other)
	}
}
