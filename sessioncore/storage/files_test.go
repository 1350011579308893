package storage_test

import (
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
)

// The first part of the contract: what everything promises that is read (storage.Files).

// badNames could lead out of the root, or cannot name a file.
var badNames = []string{"..", "/x", "a//b", "a/../b", "./x", "x/", "a\x00b", "../x"}

// TestBadNames: no name leads out of the root, or to anything but a file.
func TestBadNames(t *testing.T) {
	every.Files(t, func(t *testing.T, s every.Store) {
		for _, name := range badNames {
			for op, do := range storagetest.Reads {
				assert.ErrorIs(t, do(s, name), storage.ErrBadName, "%s(%q)", op, name)
			}
		}
		s.ReadAhead([]string{"", "none", "../x"})
	})
	every.Journals(t, func(t *testing.T, s every.Store) {
		for _, name := range append(badNames, "") {
			for op, do := range storagetest.Writes {
				assert.ErrorIs(t, do(s, name), storage.ErrBadName, "%s(%q)", op, name)
			}
		}
	})
}

func TestMissingNames(t *testing.T) {
	missing := []string{"none/x.jsonl", "file.jsonl/x.jsonl", "x.jsonl"}
	every.Files(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "file.jsonl", "{}\n")
		for _, name := range missing {
			for op, do := range storagetest.Reads {
				assert.ErrorIs(t, do(s, name), fs.ErrNotExist, "%s(%q)", op, name)
			}
		}
		assert.ErrorIs(t, storagetest.Reads["List"](s, "file.jsonl"), fs.ErrNotExist)
	})
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "file.jsonl", "{}\n")
		s.WriteFile(t, "d/x.jsonl", "{}\n")
		for _, op := range []string{"Append", "overwrite", "Sync"} {
			for _, name := range missing {
				assert.ErrorIs(t, storagetest.Writes[op](s, name), fs.ErrNotExist, "%s(%q)", op, name)
			}
			assert.ErrorIs(t, storagetest.Writes[op](s, "d"), storage.ErrNotRegular, op)
		}
		for _, name := range missing[:2] {
			assert.ErrorIs(t, storagetest.Writes["Lock"](s, name), fs.ErrNotExist, name)
		}
		assert.ErrorIs(t, storagetest.Writes["Replace"](s, "file.jsonl/x.jsonl"), unix.ENOTDIR, "it makes what is missing")
		_, err := storagetest.Replace(s, "d", "x")
		assert.ErrorIs(t, err, storage.ErrNotRegular)
	})
}

// TestFilesList: a directory has each name once, with its kind and its state, and a list ends when its function says so.
func TestFilesList(t *testing.T) {
	every.Files(t, func(t *testing.T, s every.Store) {
		for _, name := range []string{"f.jsonl", "p/f1.jsonl", "p/f2.jsonl", "p/g.jsonl", "q/r/f.jsonl"} {
			s.WriteFile(t, name, name)
		}
		file := func(name string) storage.Item { return storage.Item{Name: name, Kind: storage.KindFile} }
		folder := func(name string) storage.Item { return storage.Item{Name: name, Kind: storage.KindDir} }
		for dir, want := range map[string][]storage.Item{
			"":    {file("f.jsonl"), folder("p"), folder("q")},
			"p":   {file("f1.jsonl"), file("f2.jsonl"), file("g.jsonl")},
			"q":   {folder("r")},
			"q/r": {file("f.jsonl")},
		} {
			items, err := storage.List(s, dir)
			require.NoError(t, err)
			require.Equal(t, want, items, dir)
			for most := 1; most <= len(want); most++ {
				requireListed(t, s, dir, most)
			}
			first := want[0].Name
			last := want[len(want)-1].Name
			requireOnly(t, s, dir, []string{last, "none", first}, []string{last, first})
		}
		assert.Equal(t, storage.KindDir, storagetest.Stat(t, s, "").Kind)
		assert.NotEqual(t, storagetest.Stat(t, s, "q").Token, storagetest.Stat(t, s, "q/r").Token)
		assert.Error(t, storagetest.Reads["Open"](s, "q/r"), "a directory is no file")
		before := storagetest.Stat(t, s, "p").Token
		s.Remove(t, "p/f1.jsonl")
		assert.ErrorIs(t, storagetest.Reads["Stat"](s, "p/f1.jsonl"), fs.ErrNotExist)
		assert.NotEqual(t, before, storagetest.Stat(t, s, "p").Token, "a name is gone")
	})
}

// requireListed requires that a list ends after so many names, each with the state that Stat returns.
func requireListed(t *testing.T, s every.Store, dir string, most int) {
	t.Helper()
	states := map[string]storage.Stat{}
	require.NoError(t, s.List(dir, nil, func(item storage.Item) bool {
		st, err := item.State()
		require.NoError(t, err)
		states[item.Name] = st
		return len(states) < most
	}))
	require.Len(t, states, most, "it ends when it is told to")
	for name, st := range states {
		require.Equal(t, storagetest.Stat(t, s, path.Join(dir, name)), st)
	}
}

// requireOnly requires that a list of some names has those that are there, in their order.
func requireOnly(t *testing.T, s every.Store, dir string, only, want []string) {
	t.Helper()
	var listed []string
	require.NoError(t, s.List(dir, only, func(item storage.Item) bool {
		st, err := item.State()
		require.NoError(t, err)
		require.Equal(t, st.Kind, item.Kind)
		listed = append(listed, item.Name)
		return true
	}))
	require.Equal(t, want, listed)
}

// TestFilesPin: an open file stays what it was, and a name that is given to another file is another one.
func TestFilesPin(t *testing.T) {
	every.Files(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		first := storagetest.Open(t, s, "x.jsonl")
		assert.Equal(t, "one\n", storagetest.ReadObject(t, first))
		s.WriteFile(t, "x.jsonl", "another\n")
		after := storagetest.Stat(t, s, "x.jsonl")
		assert.False(t, after.SameObject(before.Token))
		assert.Equal(t, int64(8), after.Size)
		assert.Equal(t, "one\n", storagetest.ReadObject(t, first))
		assert.Equal(t, "another\n", storagetest.Read(t, s, "x.jsonl"))
		s.Remove(t, "x.jsonl")
		assert.Equal(t, "one\n", storagetest.ReadObject(t, first))

		for off, want := range map[int64]int{2: 2, 100: 0} {
			n, err := first.ReadAt(make([]byte, 10), off)
			assert.Equal(t, want, n)
			assert.ErrorIs(t, err, io.EOF)
		}
		_, err := first.ReadAt(make([]byte, 1), -1)
		assert.Error(t, err)
		require.NoError(t, first.Close())
	})
}

// TestFilesFollowNoLink: a link is told with where it leads, and never followed.
func TestFilesFollowNoLink(t *testing.T) {
	every.Files(t, func(t *testing.T, s every.Store) {
		if s.Link == nil {
			return
		}
		s.WriteFile(t, "d/x.jsonl", "")
		s.Link(t, "d/link", "../d//x.jsonl")
		st := storagetest.Stat(t, s, "d/link")
		assert.Equal(t, storage.KindLink, st.Kind)
		assert.Equal(t, "../d//x.jsonl", st.Link, "as stored")
		assert.ErrorIs(t, storagetest.Reads["Open"](s, "d/link"), fs.ErrNotExist)
		assert.Empty(t, storagetest.Stat(t, s, "d/x.jsonl").Link)
	})
}

// TestEndsInNewline: only an empty file, or one with a newline at its end, needs none before an append.
func TestEndsInNewline(t *testing.T) {
	for text, want := range map[string]bool{"": true, "\n": true, "x": false, "x\n": true, "x\ny": false} {
		got, err := storage.EndsInNewline(strings.NewReader(text), int64(len(text)))
		require.NoError(t, err)
		assert.Equal(t, want, got, "%q", text)
	}
	_, err := storage.EndsInNewline(strings.NewReader(""), 5)
	assert.ErrorIs(t, err, io.EOF, "shorter than it was said to be")
}
