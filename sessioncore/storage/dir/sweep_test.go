//go:build linux

package dir

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestSweepLinks: the links of killed moves go with the next replacement in their directory, or the next move into it,
// unless they are young or in use. Those of others stay.
func TestSweepLinks(t *testing.T) {
	others := []string{"a/elsewhere -> ../b/another/.", "a/users -> ../b/users", "a/x -> ../b/x/.", "a/young -> ../b/young/."}
	left := []string{"a/gone -> ../b/gone/.", "a/self -> ../a/self/."}
	for name, sweep := range map[string]func(t *testing.T, s *Storage){
		"replacement": func(t *testing.T, s *Storage) {
			_, err := s.Replace("a/x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "a/x.jsonl").Token, Write: storagetest.Content("two\n")})
			require.NoError(t, err)
		},
		"move": func(t *testing.T, s *Storage) { require.NoError(t, s.Move("c/y.jsonl", "a/y.jsonl", ".jsonl")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := movable(t, slices.Concat(others, left, []string{"a/x.jsonl", "b/users/1.log", "b/gone/1.log", "b/x/1.log", "c/y.jsonl"})...)
			then := unix.NsecToTimeval(time.Now().Add(-2 * sweepAge).UnixNano())
			for _, link := range []string{"elsewhere", "users", "x", "gone", "self"} {
				require.NoError(t, unix.Lutimes(pathOf(s, "a/"+link), []unix.Timeval{then, then}))
			}
			sweep(t, s)
			is := slices.DeleteFunc(s.tree(t), func(name string) bool { return !strings.Contains(name, "->") })
			require.Equal(t, others, is)
		})
	}
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
	path := filepath.Join(s.Path(), tmp.tempBase)
	then := time.Now().Add(-2 * sweepAge)
	require.NoError(t, os.Chtimes(path, then, then))
	require.False(t, p.removeStale(tmp.tempBase))
	require.FileExists(t, path)
	base := tmp.tempBase
	require.NoError(t, unix.Close(tmp.fd)) // as the end of its process does
	require.True(t, p.removeStale(base))
	require.NoFileExists(t, path)
}
