package memory_test

import (
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/memory"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
)

// faultStorage makes operations of a Storage fail, for tests of what is above it.
type faultStorage struct {
	storage.Storage
	fail map[string]error // by the operation's name: returned before anything is done
	// short lets Replace's writer take so many bytes before it fails with ENOSPC; 0 is no limit.
	short int
}

func (f *faultStorage) Open(name string) (storage.Object, error) {
	if err := f.fail["Open"]; err != nil {
		return nil, err
	}
	return f.Storage.Open(name)
}

func (f *faultStorage) Append(name string, data []byte) (storage.Stat, error) {
	if err := f.fail["Append"]; err != nil {
		return storage.Stat{}, err
	}
	return f.Storage.Append(name, data)
}

func (f *faultStorage) Sync(name string) error {
	if err := f.fail["Sync"]; err != nil {
		return err
	}
	return f.Storage.Sync(name)
}

func (f *faultStorage) Replace(name string, expect storage.Token, write func(io.Writer) error) (storage.Stat, error) {
	if err := f.fail["Replace"]; err != nil {
		return storage.Stat{}, err
	}
	if f.short == 0 {
		return f.Storage.Replace(name, expect, write)
	}
	return f.Storage.Replace(name, expect, func(w io.Writer) error {
		return write(&shortWriter{w: w, left: f.short})
	})
}

// shortWriter is a disk with so much space left.
type shortWriter struct {
	w    io.Writer
	left int
}

func (s *shortWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p[:min(len(p), s.left)])
	s.left -= n
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func TestFaultStorage(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		f := &faultStorage{Storage: s.Storage, short: 5, fail: map[string]error{
			"Append": syscall.EDQUOT, "Sync": syscall.EIO, "Open": syscall.EACCES,
		}}
		_, err := f.Append("x.jsonl", []byte("two\n"))
		assert.ErrorIs(t, err, syscall.EDQUOT)
		assert.ErrorIs(t, f.Sync("x.jsonl"), syscall.EIO)
		_, err = f.Open("x.jsonl")
		assert.ErrorIs(t, err, syscall.EACCES)
		_, err = f.Replace("x.jsonl", before.Token, storagetest.Content("longer than that\n"))
		assert.ErrorIs(t, err, syscall.ENOSPC)
		assert.Equal(t, before, storagetest.Stat(t, s, "x.jsonl"))
		f.fail["Replace"] = syscall.EROFS
		_, err = f.Replace("x.jsonl", before.Token, storagetest.Content("x\n"))
		assert.ErrorIs(t, err, syscall.EROFS)
		f.fail, f.short = nil, 0
		_, err = f.Replace("x.jsonl", before.Token, storagetest.Content("two\n"))
		require.NoError(t, err)
		_, err = f.Append("x.jsonl", []byte("three\n"))
		require.NoError(t, err)
		require.NoError(t, f.Sync("x.jsonl"))
		assert.Equal(t, "two\nthree\n", storagetest.Read(t, f, "x.jsonl"))
	})
}

func TestMemoryTokens(t *testing.T) {
	m := memory.New()
	data := []byte("one\n")
	require.NoError(t, m.WriteFile("d/x.jsonl", data))
	data[0] = 'X'
	assert.Equal(t, "one\n", storagetest.Read(t, m, "d/x.jsonl"), "the caller's bytes are the caller's")
	seen := map[storage.Token]bool{}
	note := func() {
		t.Helper()
		token := storagetest.Stat(t, m, "d/x.jsonl").Token
		assert.False(t, seen[token], "a change that the token does not show")
		assert.NotEqual(t, storage.Token{}, token)
		seen[token] = true
	}
	note()
	require.NoError(t, m.WriteFile("d/x.jsonl", []byte("one\n")))
	note()
	when := time.Unix(1_700_000_000, 0)
	require.NoError(t, m.Chtimes("d/x.jsonl", when))
	note()
	assert.True(t, storagetest.Stat(t, m, "d/x.jsonl").ModTime().Equal(when))
	_, err := m.Append("d/x.jsonl", []byte("two\n"))
	require.NoError(t, err)
	note()

	dir := storagetest.Stat(t, m, "d").Token
	require.NoError(t, m.WriteFile("d/y.jsonl", nil))
	assert.NotEqual(t, dir, storagetest.Stat(t, m, "d").Token, "a listing changed and the token did not")
	dir = storagetest.Stat(t, m, "d").Token
	require.NoError(t, m.Remove("d/y.jsonl"))
	assert.NotEqual(t, dir, storagetest.Stat(t, m, "d").Token)
	require.NoError(t, m.Remove("d"))
	items, err := m.List("")
	require.NoError(t, err)
	assert.Empty(t, items)
}

func TestMemoryHelpersRefuse(t *testing.T) {
	m := memory.New()
	require.NoError(t, m.WriteFile("d/x.jsonl", nil))
	assert.ErrorIs(t, m.WriteFile("", nil), storage.ErrBadName)
	assert.ErrorIs(t, m.WriteFile("../x", nil), storage.ErrBadName)
	assert.ErrorIs(t, m.WriteFile("d", nil), storage.ErrNotRegular)
	assert.ErrorIs(t, m.WriteFile("d/x.jsonl/y", nil), storage.ErrNotRegular)
	assert.ErrorIs(t, m.Remove(""), storage.ErrBadName)
	assert.ErrorIs(t, m.Remove("none"), fs.ErrNotExist)
	assert.ErrorIs(t, m.Chtimes("none", time.Time{}), fs.ErrNotExist)
}

func TestMemoryWriters(t *testing.T) {
	m := memory.New()
	require.NoError(t, m.WriteFile("x.jsonl", nil))
	for _, want := range []storage.WriterState{storage.WritersNone, storage.WritersPresent, storage.WritersUnknown} {
		if want != storage.WritersNone {
			m.SetWriters("x.jsonl", want)
		}
		got, err := m.Writers("x.jsonl")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// TestMemoryReadersBesideAWriter is for the race detector.
func TestMemoryReadersBesideAWriter(t *testing.T) {
	m := memory.New()
	require.NoError(t, m.WriteFile("x.jsonl", []byte("0\n")))
	pinned, err := m.Open("x.jsonl")
	require.NoError(t, err)
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				text := storagetest.ReadObject(t, pinned)
				assert.True(t, strings.HasPrefix(text, "0\n") && strings.HasSuffix(text, "\n"))
				_, err := m.List("")
				assert.NoError(t, err)
			}
		})
	}
	for range 500 {
		_, err := m.Append("x.jsonl", []byte("more\n"))
		require.NoError(t, err)
	}
	close(done)
	all.Wait()
}
