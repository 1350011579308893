package writer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"

	"github.com/stretchr/testify/require"
)

// caseFiles are the sessions of testdata's stores and cases and of the conformance cases; not the huge ones.
func caseFiles(t *testing.T) []string {
	roots := []string{"../../testdata/cases", "../../testdata/demo", "../../testdata/operator", "../../testdata/pi", "../../testdata/xcsh"}
	for _, c := range sessiontest.Cases(t) {
		roots = append(roots, filepath.Join(c.Dir, "agent"))
	}
	var files []string
	for _, root := range roots {
		before := len(files)
		require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".jsonl") {
				files = append(files, path)
			}
			return err
		}))
		require.Greater(t, len(files), before, root)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Size() >= 1<<20
	})
}

// TestWriteToCases appends to, labels, moves, forks every session that there is.
func TestWriteToCases(t *testing.T) {
	ctx := context.Background()
	sessions := 0
	for _, file := range caseFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if len(content) == 0 {
			continue // no session, and here no file
		}
		w := startMemory(t, string(content), Options{})
		before, err := w.session.Acquire(context.Background())
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession, file)
			continue
		}
		sessions++
		name := filepath.Base(file)
		shown := shownEntries(t, before)
		ids, err := w.append(customLine(before))
		require.NoError(t, err, name)
		if before.Version() >= sessioncore.CurrentVersion {
			require.True(t, strings.HasPrefix(w.content(), string(content)), name)
		}
		require.Equal(t, ids[0], w.leaf(), name)
		require.NoError(t, w.SetLabel(ctx, w.session, ids[0], "L"), name)
		require.NoError(t, w.SetTitle(ctx, w.session, "a title"), name)
		require.NoError(t, w.MoveLeaf(ctx, w.session, ids[0]), name)
		require.Equal(t, ids[0], w.leaf(), name)
		after := w.snapshot()
		require.Equal(t, shown, shownEntries(t, after)[:len(shown)], name)
		title, err := after.Title()
		require.NoError(t, err)
		require.Equal(t, "a title", title, name)
		w.checkFork(name, after, ids[0])
		before.Release()
	}
	require.Greater(t, sessions, 100)
}

// customLine is an entry that every session of its dialect takes.
func customLine(s *sessioncore.Snapshot) string {
	if s.Dialect() == sessioncore.Operator {
		return `{"type":"custom_info","custom_type":"x"}`
	}
	return `{"type":"custom","customType":"x"}`
}

// checkFork forks at an entry and compares the path.
func (w *writing) checkFork(name string, source *sessioncore.Snapshot, id string) {
	forked, err := w.Fork(context.Background(), w.session, id)
	require.NoError(w.t, err, name)
	snap, err := w.store.Session(forked).Acquire(context.Background())
	require.NoError(w.t, err, name)
	defer snap.Release()
	at, err := source.Find(id)
	require.NoError(w.t, err)
	want := slices.DeleteFunc(source.Path(at), func(e sessioncore.Entry) bool { return isPointer(source, e) })
	last, err := snap.Find(id)
	require.NoError(w.t, err, name)
	got := snap.Path(last)
	require.Len(w.t, got, len(want), name)
	onPath := map[string]bool{}
	for i, e := range want {
		wantID, _ := source.ID(e)
		gotID, _ := snap.ID(got[i])
		require.Equal(w.t, wantID, gotID, name)
		onPath[wantID] = true
	}
	for _, l := range source.Labels() {
		if onPath[l.Target] {
			require.Equal(w.t, l.Label, snap.LabelOf(l.Target), name)
		}
	}
}
