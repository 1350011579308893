//go:build linux

package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// Tests of directories that are replaced while a storage uses them.

// newReplaced returns a storage of a directory dir in a temporary directory, with x.jsonl in dir and in dir/scope.
func newReplaced(t *testing.T) (s *Storage, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "dir")
	makeDir(t, folder, "one\n")
	s, err := Open(folder)
	require.NoError(t, err)
	return s, s.Path()
}

// makeDir makes a directory with replacedNames of one text.
func makeDir(t *testing.T, folder, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "scope/x"), 0o700))
	for _, name := range replacedNames {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
}

// replaceDir atomically replaces a directory by another one with the same names and another text in its files.
func replaceDir(t *testing.T, folder, text string) (old string) {
	t.Helper()
	other := folder + "-new"
	require.NoError(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		made := other + strings.TrimPrefix(path, folder)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.Mkdir(made, 0o700)
		case e.Name() != "x.jsonl":
			return nil
		}
		return os.WriteFile(made, []byte(text), 0o600)
	}))
	require.NoError(t, unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, folder, unix.RENAME_EXCHANGE))
	old = folder + "-old"
	require.NoError(t, os.Rename(other, old))
	return old
}

var replacedNames = []string{"x.jsonl", "scope/x.jsonl", "scope/x/x.jsonl"}

// TestStorageIsWhatStandsAtItsPath: a storage follows its path, and those below it, but no link, not the directories that were
// opened once.
func TestStorageIsWhatStandsAtItsPath(t *testing.T) {
	outside := t.TempDir()
	makeDir(t, outside, "outside\n")
	removed := func(t *testing.T, folder string) { require.NoError(t, os.RemoveAll(folder)) }
	for what, change := range map[string]func(t *testing.T, folder string){
		"removed":  removed,
		"replaced": func(t *testing.T, folder string) { removed(t, replaceDir(t, folder, "another\n")) },
		"a link that leads out": func(t *testing.T, folder string) {
			removed(t, folder)
			require.NoError(t, os.Symlink(outside, folder))
		},
		"above, a link that leads out": func(t *testing.T, folder string) {
			top, elsewhere := filepath.Dir(folder), t.TempDir()
			removed(t, top)
			makeDir(t, filepath.Join(elsewhere, filepath.Base(folder)), "outside\n")
			require.NoError(t, os.Symlink(elsewhere, top))
			t.Cleanup(func() { require.NoError(t, os.Remove(top)) })
		},
		"a file": func(t *testing.T, folder string) {
			removed(t, folder)
			require.NoError(t, os.WriteFile(folder, nil, 0o600))
		},
	} {
		for _, changed := range []string{"", "scope"} {
			t.Run(what+": "+changed, func(t *testing.T) {
				s, folder := newReplaced(t)
				storagetest.Stat(t, s, "")
				change(t, filepath.Join(folder, changed))
				for _, name := range replacedNames[1:] {
					st, statErr := s.Stat(name)
					_, appendErr := s.Append(name, nil)
					for _, err := range []error{statErr, appendErr, storagetest.Reads["Open"](s, name)} {
						assert.Equal(t, what != "replaced", errors.Is(err, fs.ErrNotExist), "%s: %v", name, err)
						assert.Equal(t, what == "replaced", err == nil)
					}
					assert.Equal(t, what == "replaced", st.Size == 8)
				}
				assert.Equal(t, storage.KindDir, storagetest.Stat(t, s, "").Kind, "the directory itself has its looks still")
				items, err := storage.List(s, "")
				require.NoError(t, err)
				if changed == "" {
					assert.Equal(t, what != "replaced", len(items) == 0)
				}
			})
		}
	}
}

// TestSub: a directory of a storage that is created later, disappears and comes back.
func TestSub(t *testing.T) {
	s, folder := newReplaced(t)
	sub, err := s.Sub("later")
	require.NoError(t, err)
	looks := func() storage.Stat { return storagetest.Stat(t, sub, "") }
	assert.Equal(t, storagetest.Stat(t, s, ""), looks())
	_, err = sub.Stat("x.jsonl")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	items, err := storage.List(sub, "")
	require.NoError(t, err)
	assert.Empty(t, items)

	require.NoError(t, sub.MkdirAll("p"))
	require.DirExists(t, filepath.Join(folder, "later/p"))
	assert.False(t, looks().SameObject(storagetest.Stat(t, s, "").Token))
	makeDir(t, filepath.Join(folder, "later"), "one\n")
	assert.Equal(t, int64(4), storagetest.Stat(t, sub, "scope/x.jsonl").Size)

	backup := filepath.Join(folder, "backup")
	require.NoError(t, os.Rename(filepath.Join(folder, "later"), backup))
	assert.Equal(t, storagetest.Stat(t, s, ""), looks())
	assert.ErrorIs(t, sub.MkdirAll("p"), storage.ErrStale, "what is put back would land in it")
	assert.NoDirExists(t, filepath.Join(folder, "later"))
	require.NoError(t, os.Rename(backup, filepath.Join(folder, "later")))
	require.NoError(t, sub.MkdirAll("q"))
	assert.Equal(t, int64(4), storagetest.Stat(t, sub, "scope/x.jsonl").Size)

	require.NoError(t, os.RemoveAll(filepath.Join(folder, "later")))
	_, err = sub.Stat("x.jsonl")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, sub.MkdirAll("scope"), storage.ErrStale)
	sub.missing.Store(time.Now().Add(-maxAbsence).UnixNano())
	require.NoError(t, sub.MkdirAll("scope"), "it was removed for good")
	assert.DirExists(t, filepath.Join(folder, "later/scope"))
}

// TestSubBehindLinks: links are resolved once, including dangling ones.
func TestSubBehindLinks(t *testing.T) {
	s, folder := newReplaced(t)
	disk := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.Symlink(disk, filepath.Join(folder, "first")))
	require.NoError(t, os.Symlink("first/sessions", filepath.Join(folder, "sessions")))
	sub, err := s.Sub("sessions")
	require.NoError(t, err)
	assert.Error(t, sub.MkdirAll("p"), "a disk that is not mounted is not made")
	assert.NoDirExists(t, disk)
	makeDir(t, filepath.Join(disk, "sessions"), "one\n")
	assert.Equal(t, int64(4), storagetest.Stat(t, sub, "scope/x.jsonl").Size)

	other := t.TempDir()
	makeDir(t, filepath.Join(other, "sessions"), "another\n")
	require.NoError(t, os.Remove(filepath.Join(folder, "first")))
	require.NoError(t, os.Symlink(other, filepath.Join(folder, "first")))
	assert.Equal(t, int64(4), storagetest.Stat(t, sub, "scope/x.jsonl").Size, "where the links led at first")
	replaceDir(t, filepath.Join(disk, "sessions"), "replaced\n")
	assert.Equal(t, int64(9), storagetest.Stat(t, sub, "scope/x.jsonl").Size, "what stands there may be replaced")

	require.NoError(t, os.Symlink("b", filepath.Join(folder, "a")))
	require.NoError(t, os.Symlink("a", filepath.Join(folder, "b")))
	_, err = s.Sub("a")
	assert.Error(t, err)
}

// TestNoWriteToReplacedDirectory: the directory is replaced during a write, at each system call.
func TestNoWriteToReplacedDirectory(t *testing.T) {
	writes := map[string]func(s *Storage, name string) error{
		"append": func(s *Storage, name string) error { return storagetest.Writes["Append"](s, name) },
		"replace": func(s *Storage, name string) error {
			_, err := storagetest.Replace(s, name, "two\n")
			return err
		},
		"new file": func(s *Storage, name string) error {
			return storagetest.Writes["Replace"](s, filepath.Join(filepath.Dir(name), "new.jsonl"))
		},
	}
	for kind, write := range writes {
		for _, name := range replacedNames {
			for _, what := range []string{".", "scope", "scope/x"} {
				rel, err := filepath.Rel(what, filepath.Dir(name))
				if err != nil || strings.HasPrefix(rel, "..") {
					continue // the write does not pass it
				}
				const mostCalls = 5 // of the system, in a write
				for n := range mostCalls {
					t.Run(fmt.Sprintf("%s of %s, %s replaced at %d", kind, name, what, n), func(t *testing.T) {
						mayBeDone := kind != "append" // when the directory is replaced: its fsync is after it
						writeWhileReplaced(t, name, what, n, mayBeDone, write)
					})
				}
			}
		}
	}
}

// writeWhileReplaced requires that a write changes nothing, and says so, whose directory what is replaced before its system call of
// number n, the first one being 0.
func writeWhileReplaced(t *testing.T, name, what string, n int, mayBeDone bool, write func(s *Storage, name string) error) {
	s, folder := newReplaced(t)
	storagetest.Stat(t, s, name)
	target := filepath.Join(folder, what)
	calls := 0
	old := ""
	s.sys = hooked(func() {
		if calls == n {
			old = replaceDir(t, target, "replaced\n")
		}
		calls++
	})
	err := write(s, name)
	s.sys = kernel
	if old == "" {
		require.NoError(t, err, "it has fewer calls")
		return
	}
	if mayBeDone && err == nil {
		return
	}
	require.ErrorIs(t, err, storage.ErrStale)
	requireOnly(t, old, "one\n")
	requireOnly(t, target, "replaced\n")
	require.NoError(t, write(s, name), "it goes on in what is there now")
}

// requireOnly requires that all files below a directory are x.jsonl with a text.
func requireOnly(t *testing.T, folder, want string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		assert.Equal(t, "x.jsonl", e.Name())
		text, err := os.ReadFile(path)
		assert.Equal(t, want, string(text), path)
		return err
	}))
}

// hooked returns the real calls, each preceded by a call of a hook.
func hooked(hit func()) calls {
	return calls{
		write: func(fd int, p []byte) (int, error) {
			hit()
			return unix.Write(fd, p)
		},
		ftruncate: unix.Ftruncate,
		fsync: func(fd int) error {
			hit()
			return unix.Fsync(fd)
		},
		renameat2: func(fromDir int, from string, toDir int, to string, flags uint) error {
			hit()
			return unix.Renameat2(fromDir, from, toDir, to, flags)
		},
	}
}

// TestOverwriteInReplacedDirectory: the slot is not overwritten if the lock is held in another directory.
func TestOverwriteInReplacedDirectory(t *testing.T) {
	s, folder := newReplaced(t)
	for _, name := range replacedNames {
		unlock := storagetest.Lock(t, s, name)
		old := replaceDir(t, folder, "replaced\n")
		_, err := s.Replace(name, storage.Replacement{Expect: storagetest.Stat(t, s, name).Token, Head: []byte("two\n")})
		assert.ErrorIs(t, err, storage.ErrStale)
		_, err = s.Append(name, []byte("two\n"))
		assert.ErrorIs(t, err, storage.ErrStale, "what is there now is not what was locked")
		_, err = storagetest.Replace(s, name, "two\n")
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.Equal(t, "replaced\n", readDisk(t, s, name))
		require.NoError(t, unlock(), "it is given back where it was taken")
		assert.Empty(t, storagetest.Leftovers(t, old))
		unlock = storagetest.Lock(t, s, name)
		_, err = s.Replace(name, storage.Replacement{Expect: storagetest.Stat(t, s, name).Token, Head: []byte("REPL")})
		require.NoError(t, err)
		require.NoError(t, unlock())
		require.NoError(t, os.RemoveAll(old))
	}
}

// TestLockOfReplacedDirectory: a waiter for a lock in a directory that is replaced gets the lock in the new one.
func TestLockOfReplacedDirectory(t *testing.T) {
	s, folder := newReplaced(t)
	for _, name := range replacedNames {
		held := filepath.Join(folder, filepath.Dir(name), "."+filepath.Base(name)+".lock")
		require.NoError(t, os.WriteFile(held, fmt.Appendf(nil, "1:%d\n", time.Now().UnixMilli()), 0o600)) // process 1 lives
		got := make(chan error, 1)
		go func() {
			unlock, err := s.Lock(context.Background(), name)
			if err == nil {
				_, err = s.Append(name, []byte("two\n"))
				err = errors.Join(err, unlock())
			}
			got <- err
		}()
		time.Sleep(20 * time.Millisecond)
		old := replaceDir(t, folder, "replaced\n")
		require.NoError(t, <-got)
		assert.Equal(t, "replaced\ntwo\n", readDisk(t, s, name))
		text, err := os.ReadFile(filepath.Join(old, name))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "two")
		require.NoError(t, os.RemoveAll(old))
	}
}
