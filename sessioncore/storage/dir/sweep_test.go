//go:build linux

package dir

import (
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
