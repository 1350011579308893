package sessioncore

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"
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
	for limit, most := range map[int]int{10: 10, 10_000: maxCached + 1} {
		files := memory.New()
		scarce := &scarceStorage{Storage: files, limit: limit}
		store := NewStore(scarce)
		for i := range 3 * maxCached {
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

// haltingStorage is a storage whose files stop at the first read behind half of them until they may go on.
type haltingStorage struct {
	storage.Storage
	half    int64
	opens   atomic.Int64
	read    atomic.Int64 // bytes, behind the half
	reached chan struct{}
	goesOn  chan struct{}
}

func (h *haltingStorage) Open(name string) (storage.Object, error) {
	h.opens.Add(1)
	obj, err := h.Storage.Open(name)
	return &haltingObject{obj, h}, err
}

type haltingObject struct {
	storage.Object
	of *haltingStorage
}

func (o *haltingObject) ReadAt(p []byte, off int64) (int, error) {
	if off > o.of.half {
		if o.of.read.Add(int64(len(p))) == int64(len(p)) {
			close(o.of.reached)
			<-o.of.goesOn
		}
	}
	return o.Object.ReadAt(p, off)
}

// TestReadingForWaiters: a large file is read as long as one of those who asked for it waits, whoever does the work,
// and no longer.
func TestReadingForWaiters(t *testing.T) {
	content := sessiontest.Header + strings.Repeat(sessiontest.Entry("e", ""), 4*longRead/100)
	start := func(t *testing.T) (*haltingStorage, *Session) {
		h := &haltingStorage{
			Storage: sessiontest.NewFile(t, content).Storage, half: int64(len(content)) / 2,
			reached: make(chan struct{}), goesOn: make(chan struct{}),
		}
		return h, NewStore(h).Session(sessiontest.FileName)
	}
	acquire := func(s *Session, ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			snap, err := s.Acquire(ctx)
			if err == nil {
				snap.Release()
			}
			done <- err
		}()
		return done
	}
	waiters := func(s *Session) int { return s.readers.Count() }
	t.Run("others wait", func(t *testing.T) {
		h, s := start(t)
		ctx, leave := context.WithCancel(t.Context())
		first := acquire(s, ctx)
		<-h.reached
		second := acquire(s, t.Context())
		for waiters(s) < 2 {
			runtime.Gosched()
		}
		leave()
		for waiters(s) > 1 {
			runtime.Gosched()
		}
		close(h.goesOn)
		require.NoError(t, <-second)
		_ = <-first
		require.EqualValues(t, 1, h.opens.Load())
	})
	t.Run("nobody waits", func(t *testing.T) {
		h, s := start(t)
		ctx, leave := context.WithCancel(t.Context())
		first := acquire(s, ctx)
		<-h.reached
		leave()
		for waiters(s) > 0 {
			runtime.Gosched()
		}
		close(h.goesOn)
		require.ErrorIs(t, <-first, context.Canceled)
		require.Less(t, h.read.Load(), h.half/2)
		require.NoError(t, <-acquire(s, t.Context()), "a later caller")
	})
}
