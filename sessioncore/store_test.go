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
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestNamesLookedUpInVain: a Probe of a missing file leaves nothing in memory, and finds the file once it exists.
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

// TestLongTextsOfIndexes: ids and labels of megabytes are memory of a cached snapshot, of which few stay then.
func TestLongTextsOfIndexes(t *testing.T) {
	const sessions = 6
	long := strings.Repeat("x", 12<<20)
	ids := sessiontest.Entry(long, "")
	var labels strings.Builder
	for n := range len(long) / maxLabel {
		fmt.Fprintf(&labels, `{"type":"label","id":"l%d","parentId":null,"timestamp":"2026-02-16T10:20:30.000Z","targetId":"e","label":%q}`+"\n", n, long[:maxLabel])
	}
	for _, text := range []string{ids, labels.String()} {
		files := memory.New()
		store := NewStore(files)
		for n := range sessions {
			name := fmt.Sprintf("%d.jsonl", n)
			require.NoError(t, files.WriteFile(name, []byte(sessiontest.Header+text)))
			snap, err := store.Session(name).Acquire(t.Context())
			require.NoError(t, err)
			snap.Release()
		}
		require.Equal(t, maxCachedEntries*entrySize/len(long), store.Indexed())
		store.Close()
	}
}

// TestFewDescriptors: more sessions can be read, one after the other, than the process has descriptors for, and no more
// stay open than the store may keep.
func TestFewDescriptors(t *testing.T) {
	for limit, most := range map[int]int{10: 10, 10_000: maxCached + 1} {
		files := memory.New()
		open := 0
		peak := 0
		countOpen := func(c storagetest.Call) error {
			switch {
			case c.Op == "Close":
				open--
			case c.Op == "Open" && open >= limit:
				return fmt.Errorf("open %s: %w", c.Name, syscall.EMFILE)
			case c.Op == "Open":
				open++
				peak = max(peak, open)
			}
			return nil
		}
		store := NewStore(&storagetest.Hooked{Storage: files, Before: countOpen})
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
		require.Equal(t, most, peak, "files are kept open")
		store.Close()
		require.Zero(t, open)
	}
}

// haltingStorage is a storage of one file, in which the first read behind the half blocks until goesOn is closed.
type haltingStorage struct {
	storagetest.Hooked
	half    int64
	opens   atomic.Int64
	read    atomic.Int64 // bytes, behind the half
	reached chan struct{}
	goesOn  chan struct{}
}

// newHalting returns a haltingStorage and the session in it, which is long enough for a shared read.
func newHalting(t *testing.T) (*haltingStorage, *Session) {
	const entries = 4 * longRead / 100 // of some 100 bytes each
	content := sessiontest.Header + strings.Repeat(sessiontest.Entry("e", ""), entries)
	h := &haltingStorage{
		half:    int64(len(content)) / 2,
		reached: make(chan struct{}),
		goesOn:  make(chan struct{}),
	}
	h.Storage = sessiontest.NewFile(t, content).Storage
	h.Before = func(c storagetest.Call) error {
		if c.Op == "Open" {
			h.opens.Add(1)
		}
		if c.Op != "ReadAt" || c.Off <= h.half {
			return nil
		}
		size := int64(c.Size)
		isFirst := h.read.Add(size) == size
		if isFirst {
			close(h.reached)
			<-h.goesOn
		}
		return nil
	}
	return h, NewStore(h).Session(sessiontest.FileName)
}

// TestReadingForWaiters: a large file is read as long as a caller of Acquire waits, even if another one began the read, and no
// longer.
func TestReadingForWaiters(t *testing.T) {
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
	waitFor := func(s *Session, readers int) {
		for s.readers.Count() != readers {
			runtime.Gosched()
		}
	}
	t.Run("others wait", func(t *testing.T) {
		h, s := newHalting(t)
		ctx, leave := context.WithCancel(t.Context())
		first := acquire(s, ctx)
		<-h.reached
		second := acquire(s, t.Context())
		waitFor(s, 2)
		leave()
		waitFor(s, 1)
		close(h.goesOn)
		require.NoError(t, <-second)
		_ = <-first
		require.EqualValues(t, 1, h.opens.Load())
	})
	t.Run("nobody waits", func(t *testing.T) {
		h, s := newHalting(t)
		ctx, leave := context.WithCancel(t.Context())
		first := acquire(s, ctx)
		<-h.reached
		leave()
		waitFor(s, 0)
		close(h.goesOn)
		require.ErrorIs(t, <-first, context.Canceled)
		require.Less(t, h.read.Load(), h.half/2)
		require.NoError(t, <-acquire(s, t.Context()), "a later caller")
	})
}
