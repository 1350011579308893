package memory_test

import (
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
)

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
	items, err := storage.List(m, "")
	require.NoError(t, err)
	assert.Empty(t, items)
}

func TestMemoryHelpersRefuse(t *testing.T) {
	m := memory.New()
	require.NoError(t, m.WriteFile("d/x.jsonl", nil))
	assert.ErrorIs(t, m.WriteFile("", nil), storage.ErrBadName)
	assert.ErrorIs(t, m.WriteFile("../x", nil), storage.ErrBadName)
	assert.ErrorIs(t, m.WriteFile("d", nil), storage.ErrNotRegular)
	assert.ErrorIs(t, m.WriteFile("d/x.jsonl/y", nil), syscall.ENOTDIR)
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
				_, err := storage.List(m, "")
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
