package sessioncore

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestNamesLookedUpInVain: names that are not there leave nothing in memory, and a file that comes is found.
func TestNamesLookedUpInVain(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("d.jsonl/x", nil))
	store := NewStore(files)
	defer store.Close()
	for n := range 1000 {
		_, err := store.Probe(t.Context(), fmt.Sprintf("%d.jsonl", n))
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	_, err := store.Probe(t.Context(), "d.jsonl")
	require.ErrorIs(t, err, storage.ErrNotRegular)
	require.Empty(t, store.sessions)
	require.NoError(t, files.WriteFile("7.jsonl", []byte(`{"type":"session","version":3,"id":"s","cwd":"/"}`+"\n")))
	_, err = store.Probe(t.Context(), "7.jsonl")
	require.NoError(t, err)
	require.Len(t, store.sessions, 1)
}
