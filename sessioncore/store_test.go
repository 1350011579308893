package sessioncore

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
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

// scarceStorage is a storage of which only some files can be open at once.
type scarceStorage struct {
	storage.Storage
	limit, open, most int
}

func (s *scarceStorage) Open(name string) (storage.Object, error) {
	if s.open >= s.limit {
		return nil, fmt.Errorf("open %s: %w", name, syscall.EMFILE)
	}
	obj, err := s.Storage.Open(name)
	if err == nil {
		s.open++
		s.most = max(s.most, s.open)
		obj = &scarceObject{obj, s}
	}
	return obj, err
}

type scarceObject struct {
	storage.Object
	of *scarceStorage
}

func (o *scarceObject) Close() error {
	o.of.open--
	return o.Object.Close()
}

// TestFewDescriptors: more sessions can be read, one after the other, than the process has descriptors for, and no more
// stay open than the store may keep.
func TestFewDescriptors(t *testing.T) {
	for limit, most := range map[int]int{10: 10, 10_000: maxKept + 1} {
		files := memory.New()
		scarce := &scarceStorage{Storage: files, limit: limit}
		store := NewStore(scarce)
		for i := range 3 * maxKept {
			name := fmt.Sprintf("p/%d.jsonl", i)
			require.NoError(t, files.WriteFile(name, []byte(sessiontest.Header+sessiontest.Entry("e", ""))))
			_, err := store.Session(name).Probe(t.Context())
			require.NoError(t, err)
			snap, err := store.Session(name).Acquire(t.Context())
			require.NoError(t, err, "session %d", i)
			require.Equal(t, 1, snap.Len())
			snap.Release()
		}
		require.Equal(t, most, scarce.most, "files are kept open")
		store.Close()
		require.Zero(t, scarce.open)
	}
}
