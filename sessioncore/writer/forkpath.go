package writer

import (
	"io"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// forkPath is the path to the entry that a fork is made at, and what of it the fork has.
type forkPath struct {
	snap *sessioncore.Snapshot
	kept []sessioncore.Entry // without the entries that are but pointers to others, from the root
	// next and previous name, for an entry that is left out, the entry of the path behind it or before it
	// that is kept; none where there is none.
	next, previous map[sessioncore.Entry]sessioncore.Entry
}

// newForkPath returns the path to an entry as a fork has it.
func newForkPath(s *sessioncore.Snapshot, leaf sessioncore.Entry) *forkPath {
	p := &forkPath{snap: s, next: map[sessioncore.Entry]sessioncore.Entry{}, previous: map[sessioncore.Entry]sessioncore.Entry{}}
	var waiting []sessioncore.Entry // left out since the last one that was kept
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

// isPointer reports whether an entry is but a pointer to another one.
func isPointer(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.Kind(e) == sessioncore.TypeLabel || s.Kind(e) == sessioncore.TypeLeaf
}

// write writes the kept entries, a line each.
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

// text returns the text of the kept entry at i. Its bytes are as shown but for the ids of entries that are
// left out: a child of one hangs under the kept entry before it, and a compaction keeps what it kept.
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

// replayedKey is the member of a compaction that names the last entry which a provider's own history
// stands for.
const replayedKey = "providerReplayThroughEntryId"

// redirect adds the change of a member that names an entry which is left out to the one that stands in for
// it. A compaction keeps from its first kept entry on, so that is the next one; where all that it kept is
// left out, it is the compaction itself, which keeps nothing.
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
