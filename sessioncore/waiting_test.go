package sessioncore

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

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
	waiters := func(s *Session) int {
		s.readers.mu.Lock()
		defer s.readers.mu.Unlock()
		return s.readers.n
	}
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
		<-first
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
