package writer

import (
	"io"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// forkPath is the path to a fork's leaf, of which the fork keeps all but the entries that only point to others.
type forkPath struct {
	snap *sessioncore.Snapshot
	all  []sessioncore.Entry // from the root on
}

// kept returns the entry at i, or the nearest one in the direction of step that is kept; NoEntry if there is none.
func (p *forkPath) kept(i, step int) sessioncore.Entry {
	for ; i >= 0 && i < len(p.all); i += step {
		if !isPointer(p.snap, p.all[i]) {
			return p.all[i]
		}
	}
	return sessioncore.NoEntry
}

// isPointer reports whether an entry only points to another one.
func isPointer(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.Kind(e) == sessioncore.TypeLabel || s.Kind(e) == sessioncore.TypeLeaf
}

// write writes the kept entries, one per line.
func (p *forkPath) write(out io.Writer) error {
	for i, e := range p.all {
		if isPointer(p.snap, e) {
			continue
		}
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

// text returns the text of all[i], which is e. Its bytes are unchanged except for references to omitted entries: their
// children become children of the kept entry before. The first entry that a compaction keeps is replaced by the next one;
// if all that it kept is omitted, that is the compaction itself, which then keeps nothing.
func (p *forkPath) text(i int, e sessioncore.Entry) ([]byte, error) {
	s := p.snap
	text, err := s.ShownText(e)
	if err != nil {
		return nil, err
	}
	var changed []objectMember
	if parent := s.Parent(e); parent != sessioncore.NoEntry && isPointer(s, parent) {
		var above *string
		if before := p.kept(i-1, -1); before != sessioncore.NoEntry {
			id, _ := s.ID(before)
			above = &id
		}
		changed = append(changed, objectMember{s.Dialect().ParentKey, string(appendReference(nil, above))})
	}
	if s.Kind(e) == sessioncore.TypeCompaction {
		changed = p.redirect(changed, text, s.Dialect().KeptKey, 1)
		changed = p.redirect(changed, text, replayedKey, -1)
	}
	if len(changed) > 0 {
		text = setMembers(text, changed)
	}
	return text, nil
}

// replayedKey is the member of a compaction that names the last entry which is replaced by a provider's own history.
const replayedKey = "providerReplayThroughEntryId"

// redirect appends a change to changed if the member key names an omitted entry: its value becomes the nearest one that is
// kept in the direction of step.
func (p *forkPath) redirect(changed []objectMember, text rawjson.Value, key string, step int) []objectMember {
	id, ok := text.Member(key).Text()
	if !ok {
		return changed
	}
	named, err := p.snap.Find(id)
	if err != nil || !isPointer(p.snap, named) {
		return changed
	}
	at := slices.Index(p.all, named)
	if at < 0 {
		return changed
	}
	if e := p.kept(at, step); e != sessioncore.NoEntry {
		id, _ := p.snap.ID(e)
		changed = append(changed, objectMember{key, string(rawjson.AppendQuoted(nil, id))})
	}
	return changed
}
