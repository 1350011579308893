//go:build linux

package dir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestSweep: the temporary files of dead processes go with the next replacement in their directory. Those of living
// ones stay, and so do those of other programs and replaced versions.
func TestSweep(t *testing.T) {
	s := openTemp(t)
	require.NoError(t, os.WriteFile(pathOf(s, "x.jsonl"), []byte("one\n"), 0o600))
	leave := func(base string, age time.Duration) (path string, f *os.File) {
		path = filepath.Join(s.Path(), base)
		f, err := os.Create(path)
		require.NoError(t, err)
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, then, then))
		t.Cleanup(func() { _ = f.Close() })
		return path, f
	}
	dead, _ := leave(storage.TemporaryName("x.jsonl"), 2*sweepAge)
	living, f := leave(storage.TemporaryName("x.jsonl"), 2*sweepAge)
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	young, _ := leave(storage.TemporaryName("x.jsonl"), 0)
	client, _ := leave(".x.jsonl.0123456789abcdef.tmp", 2*sweepAge)
	replaced, _ := leave(storage.AsideName("x.jsonl"), 2*sweepAge)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	link := filepath.Join(s.Path(), storage.TemporaryName("link"))
	require.NoError(t, os.Symlink(outside, link))
	pipe := filepath.Join(s.Path(), storage.TemporaryName("pipe"))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))

	_, err := s.Replace("x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Write: storagetest.Content("two\n")})
	require.NoError(t, err)
	_, err = os.Lstat(dead)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ElementsMatch(t, []string{living, young, client, replaced, link, pipe}, storagetest.Leftovers(t, s.Path()))

	again, _ := leave(storage.TemporaryName("x.jsonl"), 2*sweepAge)
	_, err = s.Replace("x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Write: storagetest.Content("three\n")})
	require.NoError(t, err)
	require.FileExists(t, again, "a directory is not looked through for each replacement")
}

// TestTemporaryIsLocked: while a replacement is written, nobody takes its file for one of a dead process.
func TestTemporaryIsLocked(t *testing.T) {
	s := openTemp(t)
	require.NoError(t, os.WriteFile(pathOf(s, "x.jsonl"), []byte("one\n"), 0o600))
	p, err := s.openParentToWrite("x.jsonl")
	require.NoError(t, err)
	defer p.close()
	tmp, err := p.temporary()
	require.NoError(t, err)
	path := filepath.Join(s.Path(), tmp.temp.base)
	then := time.Now().Add(-2 * sweepAge)
	require.NoError(t, os.Chtimes(path, then, then))
	require.False(t, tmp.temp.removeStale())
	require.FileExists(t, path)
	require.NoError(t, unix.Close(tmp.fd)) // as the end of its process does
	require.True(t, tmp.temp.removeStale())
	require.NoFileExists(t, path)
}

// TestReplaceCarriesOver: the new file has what was appended to the old one right before and after it lost its name,
// also through a descriptor opened before.
func TestReplaceCarriesOver(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "old\n")
	var late *os.File
	done := make(chan error, 1)
	sys := kernel
	sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		stray, err := os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = stray.WriteString("before\n")
		require.NoError(t, err)
		require.NoError(t, stray.Close())
		late, err = os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		go func() {
			time.Sleep(carryLimit / 10)
			_, err := late.WriteString("after\nin two")
			time.Sleep(carryLimit / 10)
			_, err2 := late.WriteString(" writes\ntorn")
			done <- errors.Join(err, err2, late.Close())
		}()
		return unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	token := storagetest.Stat(t, s, "x.jsonl").Token
	st, err := s.replaceWith(sys, "x.jsonl",
		storage.Replacement{Expect: token, Write: storagetest.Content("new\n"), Ready: func(io.Writer) (storage.Token, error) { return token, nil }})
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, "new\nbefore\nafter\nin two writes\ntorn", readDisk(t, s, "x.jsonl"))
	require.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st, "of the file with all of that")
	require.Empty(t, storagetest.Leftovers(t, s.Path()))

	before := readDisk(t, s, "x.jsonl")
	_, err = s.Replace("x.jsonl",
		storage.Replacement{Expect: st.Token, Write: storagetest.Content("no\n"),
			Ready: func(io.Writer) (storage.Token, error) { return st.Token, errors.ErrUnsupported }})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Equal(t, before, readDisk(t, s, "x.jsonl"))
	require.Empty(t, storagetest.Leftovers(t, s.Path()))
}
