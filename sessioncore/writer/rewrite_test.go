package writer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// oldFile is of version 1: no ids, a compaction that counts entries, a role of version 2, unreadable
// lines, a value over two lines, a torn tail.
const oldFile = `{"type":"session", "id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w","provider":"p","n":1.0}` + "\n" +
	`{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}` + "\n" +
	"not JSON \xff\n" +
	`{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"hookMessage","content":"two", "n":1.50}}` + "\n" +
	"[1,2]\n" +
	`{"type":"compaction","summary":"s","firstKeptEntryIndex":1,"tokensBefore":5}` + "\n" +
	"{\"type\":\"message\",\n\"message\":{\"role\":\"user\",\"content\":\"three\"}}\n" +
	`{"type":"mess`

// TestMigrationPersists: the first write of any kind makes the file one of version 3, with exactly what
// was shown, and loses nothing.
func TestMigrationPersists(t *testing.T) {
	ctx := context.Background()
	writes := map[string]func(w *writing, last string) error{
		"append": func(w *writing, last string) error {
			_, err := w.append(`{"type":"mode_change","id":"new","mode":"plan"}`)
			return err
		},
		"leaf":  func(w *writing, last string) error { return w.ResetLeaf(ctx, w.session) },
		"label": func(w *writing, last string) error { return w.SetLabel(ctx, w.session, last, "L") },
		"title": func(w *writing, last string) error { return w.SetTitle(ctx, w.session, "T") },
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			w := startMemory(t, oldFile, Options{})
			before := w.snapshot()
			shown := shownEntries(t, before)
			last, _ := before.ID(sessioncore.Entry(before.Len() - 1))
			require.NoError(t, write(w, last))
			after := w.snapshot()
			require.Equal(t, 3, after.Version())
			require.Equal(t, shown, shownEntries(t, after)[:len(shown)])
			content := w.content()
			for _, kept := range []string{"\nnot JSON \xff\n", "\n[1,2]\n", `"n":1.0`, `"n":1.50`, "\n{\"type\":\"mess\n"} {
				require.Contains(t, content+"\n", kept)
			}
			require.True(t, strings.HasPrefix(content, `{"type":"session", "id":"old"`))
			if name == "append" {
				require.Equal(t, last, w.parentOfID("new"))
			}
		})
	}
	t.Run("a bad line does not", func(t *testing.T) {
		w := startMemory(t, oldFile, Options{})
		_, err := w.append(`{"type":"mode_change"}`)
		require.ErrorIs(t, err, sessioncore.ErrInvalid)
		_, err = w.append(`{"type":"mode_change","mode":"x","parentId":"gone"}`)
		require.ErrorIs(t, err, sessioncore.ErrNotFound)
		require.Equal(t, oldFile, w.content())
	})
}

func shownEntries(t testing.TB, s *sessioncore.Snapshot) []string {
	out := []string{}
	for e := range sessioncore.Entry(s.Len()) {
		text, err := s.ShownText(e)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return out
}

// TestMigrationOfCases does it with every session of an old version that there is.
func TestMigrationOfCases(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cases/v[12]*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		store := sessioncore.NewStore(sessiontest.OpenDir(t, filepath.Dir(file)))
		t.Cleanup(store.Close)
		snap, err := sessiontest.Acquire(t, store.Session(filepath.Base(file)))
		require.NoError(t, err)
		require.Less(t, snap.Version(), sessioncore.CurrentVersion, file)
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		w := startMemory(t, string(raw), Options{})
		_, err = w.append(`{"type":"custom","customType":"x"}`)
		require.NoError(t, err)
		after := w.snapshot()
		require.Equal(t, sessioncore.CurrentVersion, after.Version())
		require.Equal(t, shownEntries(t, snap), shownEntries(t, after)[:snap.Len()], file)
	}
}
