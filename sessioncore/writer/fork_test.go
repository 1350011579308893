package writer

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// contextAt returns the context at an entry, as context.json without blobs.
func contextAt(t testing.TB, s *sessioncore.Snapshot, at sessioncore.Entry) string {
	doc, err := s.Context(context.Background(), at, nil)
	require.NoError(t, err)
	defer doc.Close()
	text := make([]byte, doc.Size())
	_, err = doc.ReadAt(text, 0)
	require.NoError(t, err)
	return string(text)
}

// forkIn forks the session at an entry. source is the session's snapshot: its context at the entry must be the one at the
// fork's leaf.
func (w *writing) forkIn(source *sessioncore.Snapshot, id string) (name string, err error) {
	name, err = w.Fork(w.t.Context(), w.session, id, "")
	if err != nil {
		return "", err
	}
	fork, err := w.store.Session(name).Acquire(w.t.Context())
	require.NoError(w.t, err)
	defer fork.Release()
	at, err := source.Find(id)
	require.NoError(w.t, err)
	require.Equal(w.t, contextAt(w.t, source, at), contextAt(w.t, fork, sessiontest.Leaf(w.t, fork)), "%s at %s", w.session.Name(), id)
	return name, nil
}

// forkSamples is the number of entries of a session that are forked in a sample.
const forkSamples = 12

// TestForkKeepsContext: the context at a fork's leaf is that at the forked entry. All compactions and all children of
// labels are tested, and a sample of the other entries.
func TestForkKeepsContext(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for _, file := range caseFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		w := startMemory(t, string(content), Options{})
		source, err := w.session.Acquire(context.Background())
		if err != nil {
			continue
		}
		step := max(source.Len()/forkSamples, 1)
		for e := range sessioncore.Entry(source.Len()) {
			id, hasID := source.ID(e)
			if !hasID {
				continue
			}
			newest, err := source.Find(id)
			if err != nil || newest != e {
				continue // a later entry has the id
			}
			parent := source.Parent(e)
			isBelowPointer := parent != sessioncore.NoEntry && isPointer(source, parent)
			isSpecial := isBelowPointer || source.Kind(e) == sessioncore.TypeCompaction
			isSample := int(e)%step == 0
			if !isSample && !isSpecial {
				continue
			}
			if movesElsewhere(t, source, e) {
				continue // the fork's leaf is the target of the move
			}
			_, err = w.forkIn(source, id)
			require.NoError(t, err, "%s at %s", filepath.Base(file), id)
		}
		source.Release()
	}
}

// movesElsewhere reports whether an entry is a move of the leaf to another entry than its parent, which only files that were made
// by hand have.
func movesElsewhere(t testing.TB, s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	text, err := s.ShownText(e)
	require.NoError(t, err)
	target, isMove := s.Dialect().MoveTarget(text)
	return isMove && s.Kind(e) == s.Dialect().MoveType && string(target) != string(text.Member(s.Dialect().ParentKey))
}
