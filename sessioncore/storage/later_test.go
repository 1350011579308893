package storage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestOverLater: files that come later are shown by the next look, which is not at each call.
func TestOverLater(t *testing.T) {
	front := t.TempDir()
	back := t.TempDir()
	sessiontest.WriteFile(t, front+"/p/a.jsonl", "a")
	sessiontest.WriteFile(t, back+"/p/a.jsonl", "old")
	sessiontest.WriteFile(t, back+"/p/b.jsonl", "b")
	looks := 0
	isThere := false
	now := time.Now()
	files := storage.OverLaterAt(sessiontest.OpenDir(t, front), func() (storage.Files, bool) {
		looks++
		return sessiontest.OpenDir(t, back), isThere
	}, func() time.Time { return now })
	names := func() (names []string) {
		items, err := storage.List(files, "p")
		require.NoError(t, err)
		for _, item := range items {
			names = append(names, item.Name)
		}
		return names
	}
	require.Equal(t, []string{"a.jsonl"}, names())
	before := storagetest.Stat(t, files, "p").Token
	isThere = true
	require.Equal(t, []string{"a.jsonl"}, names())
	_, err := files.Stat("p/b.jsonl")
	require.Error(t, err)
	require.Equal(t, 1, looks)
	now = now.Add(5 * time.Second)
	require.Equal(t, []string{"a.jsonl", "b.jsonl"}, names())
	require.NotEqual(t, before, storagetest.Stat(t, files, "p").Token, "so that lists look once more")
	require.Equal(t, "b", storagetest.Read(t, files, "p/b.jsonl"))
	require.Equal(t, "a", storagetest.Read(t, files, "p/a.jsonl"))
	now = now.Add(time.Hour)
	require.Equal(t, []string{"a.jsonl", "b.jsonl"}, names())
	require.Equal(t, 2, looks)
}
