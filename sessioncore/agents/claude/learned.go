package claude

import (
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// learned is what a file says of records that stand before it. That is rare: the file is then converted once more.
type learned struct {
	counts   map[string]int64  // the line that counts of a record that is in the file several times: the last
	late     map[string]string // of a record that stands behind one that hangs on it, another that its children can hang on
	removed  map[string]bool   // records that were taken out of the context
	replaced map[string]string // by the id of its call: the JSON text that is sent in the place of a result
	queued   map[int64]bool    // lines of prompts that came as messages of their own, not with a result
	last     map[string]int64  // the first line of the last part of an answer between whose records another one stands
	news     bool
	moved    bool // records are elsewhere than they were, and late ones have to be found anew
}

func newLearned() *learned {
	return &learned{
		counts: map[string]int64{}, late: map[string]string{}, removed: map[string]bool{}, replaced: map[string]string{},
		queued: map[int64]bool{}, last: map[string]int64{},
	}
}

// maxLate is how many records that say nothing may stand one after the other behind one that hangs on them.
const maxLate = 100

// learn notes something, and returns whether that was not known.
func learn[K, V comparable](l *learned, m map[K]V, key K, value V) bool {
	old, ok := m[key]
	isNew := !ok || old != value
	m[key], l.news = value, l.news || isNew
	return isNew
}

// Again implements foreign.Rereader.
func (c *converter) Restart() foreign.Converter {
	isShown := c.Facts || c.Title() == c.About.Title && c.moves.cwd() == c.Moved
	if !c.learned.news && isShown {
		return nil
	}
	if c.learned.moved {
		clear(c.learned.late)
		clear(c.learned.last)
	}
	c.learned.news, c.learned.moved = false, false
	about := c.About
	about.Title, about.Moved = c.Title(), c.moves.cwd()
	again := newConverter(about, c.learned)
	again.projects, again.path = c.projects, c.path
	return again
}

// Title implements foreign.Titler.
func (c *converter) Title() string { return c.titles.title() }

// isOutdated reports whether a record comes again. If it was not known before, that is learned.
func (c *converter) isOutdated(r *record) bool {
	if r.uuid == "" {
		return false
	}
	counts, known := c.learned.counts[r.uuid]
	if known && r.line < counts {
		return true
	}
	if _, seen := c.places[r.uuid]; seen || known {
		c.learned.moved = learn(c.learned, c.learned.counts, r.uuid, r.line) || c.learned.moved
	}
	return false
}

// sharedSize is how much of a uuid the client compares where an answer was taken back: it gives the blocks of an answer
// uuids that differ behind it.
const sharedSize = 24

// takesBack notes the records of which one says that they are not sent any more.
func (c *converter) takesBack(r *record, isTalk bool) {
	remove := func(key string) { c.learned.moved = learn(c.learned, c.learned.removed, key, true) || c.learned.moved }
	if isTalk || r.Member("subtype").Is("model_refusal_fallback") {
		r.Member("retractedMessageUuids").EachElement(func(v rawjson.Value, _ int) bool {
			uuid, _ := v.Text()
			if c.places[uuid] == nil && len(uuid) > sharedSize {
				uuid = uuid[:sharedSize] // the file has another one of the same answer
			}
			remove(uuid)
			return true
		})
	}
	r.Member("snipMetadata").Member("removedUuids").EachElement(func(v rawjson.Value, _ int) bool {
		if uuid, ok := v.Text(); ok {
			remove(uuid)
		}
		return true
	})
}

// isRemoved reports whether a record is not sent any more.
func (c *converter) isRemoved(r *record) bool {
	return c.learned.removed[r.uuid] ||
		len(r.uuid) > sharedSize && !r.typ.Is("system") && c.learned.removed[r.uuid[:sharedSize]]
}

// above returns the record that one hangs on: none that was removed, unless it was itself.
func (c *converter) above(r *record) string {
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

// placeOf returns what the children of a record hang on. A record that is not in the file leaves its name, so that the
// entry shows as one without its parent.
func (c *converter) placeOf(uuid string) *place {
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
			return &place{id: uuid}
		}
		uuid = other
	}
	return &place{} // most likely they hang on one another
}

// at says where the children of a record hang, and on which other record they do where that is not an entry of its name.
func (c *converter) at(r *record, p *place, other string) {
	if r.uuid == "" {
		return
	}
	c.places[r.uuid] = p
	if c.missed[r.uuid] && other != r.uuid {
		learn(c.learned, c.learned.late, r.uuid, other)
	}
}
