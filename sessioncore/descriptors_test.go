package sessioncore

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// scarceStorage is a storage of which only a few files can be open at once.
type scarceStorage struct {
	storage.Storage
	open, most atomic.Int64
}

const fewFiles = 10

func (s *scarceStorage) Open(name string) (storage.Object, error) {
	if s.open.Load() >= fewFiles {
		return nil, fmt.Errorf("open %s: %w", name, syscall.EMFILE)
	}
	obj, err := s.Storage.Open(name)
	if err == nil {
		s.most.Store(max(s.most.Load(), s.open.Add(1)))
		obj = &scarceObject{obj, s}
	}
	return obj, err
}

type scarceObject struct {
	storage.Object
	of *scarceStorage
}

func (o *scarceObject) Close() error {
	o.of.open.Add(-1)
	return o.Object.Close()
}

// TestFewDescriptors: more sessions can be read, one after the other, than the process has descriptors for.
func TestFewDescriptors(t *testing.T) {
	files := memory.New()
	scarce := &scarceStorage{Storage: files}
	store := NewStore(scarce)
	for i := range 300 {
		name := fmt.Sprintf("p/%d.jsonl", i)
		require.NoError(t, files.WriteFile(name, []byte(sessiontest.Header+sessiontest.Entry("e", ""))))
		_, err := store.Session(name).Probe(t.Context())
		require.NoError(t, err)
		snap, err := store.Session(name).Acquire(t.Context())
		require.NoError(t, err, "session %d", i)
		require.Equal(t, 1, snap.Len())
		snap.Release()
	}
	require.EqualValues(t, fewFiles, scarce.most.Load(), "files are kept open")
	store.Close()
	require.Zero(t, scarce.open.Load())
}
