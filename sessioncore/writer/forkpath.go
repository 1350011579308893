package writer

import (
	"io"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// forkPath is the path to a fork's leaf, and the part of it that the fork keeps.
type forkPath struct {
	snap *sessioncore.Snapshot
	kept []sessioncore.Entry // from the root on, without entries that only point to others
	// next and previous map an omitted entry to the kept one after or before it on the path, if there is one.
	next, previous map[sessioncore.Entry]sessioncore.Entry
}

// newForkPath returns the path to leaf.
func newForkPath(s *sessioncore.Snapshot, leaf sessioncore.Entry) *forkPath {
	p := &forkPath{snap: s, next: map[sessioncore.Entry]sessioncore.Entry{}, previous: map[sessioncore.Entry]sessioncore.Entry{}}
	var waiting []sessioncore.Entry // omitted since the last kept entry
	last := sessioncore.NoEntry
	for _, e := range s.Path(leaf) {
		if isPointer(s, e) {
			waiting = append(waiting, e)
			if last != sessioncore.NoEntry {
				p.previous[e] = last
			}
			continue
		}
		for _, out := range waiting {
			p.next[out] = e
		}
		waiting, last = waiting[:0], e
		p.kept = append(p.kept, e)
	}
	return p
}

// isPointer reports whether an entry only points to another one.
func isPointer(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.Kind(e) == sessioncore.TypeLabel || s.Kind(e) == sessioncore.TypeLeaf
}

// write writes the kept entries, one per line.
func (p *forkPath) write(out io.Writer) error {
	for i, e := range p.kept {
		text, err := p.text(i, e)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// text returns the text of kept[i], which is e. Its bytes are unchanged except for references to omitted entries:
// their children become children of the kept entry before, and a compaction keeps what it kept.
func (p *forkPath) text(i int, e sessioncore.Entry) ([]byte, error) {
	s := p.snap
	text, err := s.ShownText(e)
	if err != nil {
		return nil, err
	}
	var changed []objectMember
	if parent := s.Parent(e); parent != sessioncore.NoEntry && isPointer(s, parent) {
		var above *string
		if i > 0 {
			id, _ := s.ID(p.kept[i-1])
			above = &id
		}
		changed = append(changed, objectMember{s.Dialect().ParentKey, string(appendReference(nil, above))})
	}
	if s.Kind(e) == sessioncore.TypeCompaction {
		changed = p.redirect(changed, text, s.Dialect().KeptKey, p.next)
		changed = p.redirect(changed, text, replayedKey, p.previous)
	}
	if len(changed) > 0 {
		text = setMembers(text, changed)
	}
	return text, nil
}

// replayedKey is the member of a compaction that names the last entry which is replaced by a provider's own history.
const replayedKey = "providerReplayThroughEntryId"

// redirect appends a change to changed if the member key names an omitted entry: its value becomes the entry that
// replaces it in to. The first entry that a compaction keeps is replaced by the next one; if all that it kept is
// omitted, that is the compaction itself, which then keeps nothing.
func (p *forkPath) redirect(changed []objectMember, text rawjson.Value, key string, to map[sessioncore.Entry]sessioncore.Entry) []objectMember {
	id, ok := text.Member(key).Text()
	if !ok {
		return changed
	}
	named, err := p.snap.Find(id)
	if err != nil {
		return changed
	}
	if at, ok := to[named]; ok {
		id, _ := p.snap.ID(at)
		changed = append(changed, objectMember{key, string(rawjson.AppendQuoted(nil, id))})
	}
	return changed
}
