package sessioncore

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"time"

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

// TestPassedOverByEviction: a snapshot that could not be given back, as its session's mutex was held, is not forgotten.
func TestPassedOverByEviction(t *testing.T) {
	files := memory.New()
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		require.NoError(t, files.WriteFile(name, []byte(`{"type":"session","version":3,"id":"s","cwd":"/"}`+"\n")))
	}
	store := NewStore(files)
	store.Keep(1)
	defer store.Close()
	a, b := store.Session("a.jsonl"), store.Session("b.jsonl")
	acquire := func(s *Session) *Snapshot {
		snap, err := s.Acquire(t.Context())
		require.NoError(t, err)
		snap.Release()
		return snap
	}
	snap := acquire(a)
	a.mu.Lock()
	acquire(b)
	require.NotContains(t, store.kept, a)
	a.mu.Unlock()

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	long := snap.stat
	long.Size += longRead + 1
	_, err := a.refresh(gone, snap, long, time.Now())
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return b.current.Load() == nil }, time.Minute, time.Millisecond)
	require.Equal(t, snap, a.current.Load())
	require.Contains(t, store.kept, a)
	require.NotContains(t, store.kept, b)
}
