//go:build linux

package dir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// receivers are the two ways in which a file is received: without a name, and where that is not possible in a temporary
// file.
var receivers = map[string]func(int) (int, error){
	"unnamed":   openUnnamed,
	"temporary": func(int) (int, error) { return -1, unix.EOPNOTSUPP },
}

func receive(t *testing.T, s *Storage, dir, content string, open func(int) (int, error)) *incoming {
	t.Helper()
	in, err := s.receive(dir, open)
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	for at := 0; at <= len(content); at += 1000 { // in pieces, the last one first
		at := len(content)/1000*1000 - at
		_, err := in.WriteAt([]byte(content[at:min(at+1000, len(content))]), int64(at))
		require.NoError(t, err)
	}
	return in.(*incoming)
}

func publish(t *testing.T, s *Storage, in storage.Incoming, name string) (storage.Stat, error) {
	t.Helper()
	unlock := storagetest.Lock(t, s, name)
	defer func() { require.NoError(t, unlock()) }()
	return in.Publish(name)
}

// TestReceive: a file that is received is not there until it is published, then as a whole and with its attributes; one
// that is not published leaves nothing.
func TestReceive(t *testing.T) {
	for how, open := range receivers {
		t.Run(how, func(t *testing.T) {
			s := openTemp(t)
			require.NoError(t, s.MkdirAll("a"))
			require.NoError(t, s.MkdirAll("b"))
			for _, size := range []int{0, 1, 999, 1000, 100_000} {
				content := strings.Repeat("x", size)
				for _, dir := range []string{"", "a", "b"} {
					in := receive(t, s, dir, content, open)
					if how == "unnamed" {
						require.Empty(t, entries(t, filepath.Join(s.Path(), dir), "."))
					}
					require.Equal(t, content, storagetest.ReadObject(t, in))
					mode, modified := uint32(0o640), time.Unix(1_700_000_000, 123456789).UnixNano()
					require.NoError(t, in.SetAttributes(storage.Attributes{Mode: &mode, Modified: &modified}))
					before := entries(t, s.Path(), "b")
					st, err := publish(t, s, in, "b/x.jsonl")
					require.NoError(t, err)
					require.NotContains(t, before, "x.jsonl")
					require.Equal(t, storagetest.Stat(t, s, "b/x.jsonl"), st)
					require.Equal(t, mode, st.Mode)
					require.Equal(t, modified, st.Modified)
					require.Equal(t, content, storagetest.Read(t, s, "b/x.jsonl"))
					require.NoError(t, in.Close())
					require.Equal(t, []string{"x.jsonl"}, entries(t, s.Path(), "b"), "it stays")
					require.NoError(t, os.Remove(pathOf(s, "b/x.jsonl")))

					in = receive(t, s, dir, content, open)
					require.NoError(t, in.Truncate(0))
					require.NoError(t, in.Close())
					require.Empty(t, storagetest.Leftovers(t, s.Path()))
				}
			}
		})
	}
}

// entries are the names in a directory below top.
func entries(t *testing.T, top, dir string) (names []string) {
	t.Helper()
	items, err := os.ReadDir(filepath.Join(top, dir))
	require.NoError(t, err)
	for _, item := range items {
		if !item.IsDir() {
			names = append(names, item.Name())
		}
	}
	return names
}

// TestPublishReplacesNothing: whatever has the name is kept, and the file can still be published as another one.
func TestPublishReplacesNothing(t *testing.T) {
	for how, open := range receivers {
		t.Run(how, func(t *testing.T) {
			s := openTemp(t)
			require.NoError(t, s.MkdirAll("p"))
			writeDisk(t, s, "p/file.jsonl", "there\n")
			require.NoError(t, os.Mkdir(pathOf(s, "p/dir.jsonl"), 0o755))
			require.NoError(t, os.Symlink("nowhere", pathOf(s, "p/link.jsonl")))
			in := receive(t, s, "p", "new\n", open)
			for _, name := range []string{"p/file.jsonl", "p/dir.jsonl", "p/link.jsonl"} {
				_, err := in.Publish(name)
				require.ErrorIs(t, err, fs.ErrExist, name)
			}
			require.Equal(t, "there\n", storagetest.Read(t, s, "p/file.jsonl"))
			for _, name := range []string{"", "..", "../x.jsonl", "/x.jsonl", "p/../x.jsonl", "p/", "p/a\x00b", strings.Repeat("x", 300)} {
				_, err := in.Publish(name)
				require.Error(t, err, "%q", name)
			}
			require.NoError(t, os.Symlink(t.TempDir(), pathOf(s, "elsewhere")))
			for _, name := range []string{"elsewhere/x.jsonl", "none/x.jsonl"} {
				_, err := in.Publish(name)
				require.ErrorIs(t, err, fs.ErrNotExist, name)
			}
			_, err := in.Publish("p/other.jsonl")
			require.NoError(t, err)
			require.Equal(t, "new\n", storagetest.Read(t, s, "p/other.jsonl"))
		})
	}
}

// TestPublishIsDurable: the content is synced before the name is given, and the directory after it; without the first there
// is no name.
func TestPublishIsDurable(t *testing.T) {
	for how, open := range receivers {
		t.Run(how, func(t *testing.T) {
			s := openTemp(t)
			in := receive(t, s, "", "new\n", open)
			sys, synced := kernel, 0
			sys.fsync = func(fd int) error {
				synced++
				require.Equal(t, synced > 1, len(names(t, s, "x.jsonl")) == 1)
				return kernel.fsync(fd)
			}
			_, err := in.publish(sys, "x.jsonl")
			require.NoError(t, err)
			require.Equal(t, 2, synced)

			in = receive(t, s, "", "new\n", open)
			sys.fsync = func(int) error { return unix.EIO }
			_, err = in.publish(sys, "y.jsonl")
			require.ErrorIs(t, err, unix.EIO)
			require.Empty(t, names(t, s, "y.jsonl"))
		})
	}
}

// names are the names in the root that are name.
func names(t *testing.T, s *Storage, name string) (found []string) {
	t.Helper()
	items, err := s.List("")
	require.NoError(t, err)
	for _, item := range items {
		if item.Name == name {
			found = append(found, item.Name)
		}
	}
	return found
}

// TestPublishBesideReplacedDirectory: where the path leads elsewhere by now, nothing is published.
func TestPublishBesideReplacedDirectory(t *testing.T) {
	for how, open := range receivers {
		t.Run(how, func(t *testing.T) {
			s := openTemp(t)
			require.NoError(t, s.MkdirAll("p"))
			in := receive(t, s, "p", "new\n", open)
			sys := kernel
			sys.fsync = func(fd int) error { // between the look at the directory and the name
				require.NoError(t, os.Rename(pathOf(s, "p"), pathOf(s, "old")))
				require.NoError(t, os.Mkdir(pathOf(s, "p"), 0o755))
				return kernel.fsync(fd)
			}
			_, err := in.publish(sys, "p/x.jsonl")
			require.ErrorIs(t, err, storage.ErrStale)
			require.NoFileExists(t, pathOf(s, "p/x.jsonl"))
			require.NoFileExists(t, pathOf(s, "old/x.jsonl"))
		})
	}
}

// TestReceiveWithoutRoom: what does not fit is an error, and gives its room back.
func TestReceiveWithoutRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	top := t.TempDir()
	require.NoError(t, unix.Mount("none", top, "tmpfs", 0, "size=256k"))
	t.Cleanup(func() { _ = unix.Unmount(top, unix.MNT_DETACH) })
	s, err := Open(top)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	for _, open := range receivers {
		for range 3 {
			in, err := s.receive("", open)
			require.NoError(t, err)
			for at := int64(0); err == nil; at += 16 << 10 {
				_, err = in.WriteAt(make([]byte, 16<<10), at)
			}
			require.ErrorIs(t, err, unix.ENOSPC)
			require.NoError(t, in.Close())
		}
	}
	require.Empty(t, storagetest.Leftovers(t, top))
	in := receive(t, s, "", strings.Repeat("x", 100_000), openUnnamed)
	_, err = in.Publish("x.jsonl")
	require.NoError(t, err)
}

// TestMkdir: a directory has the mode that it is made with, whatever the umask, and replaces nothing.
func TestMkdir(t *testing.T) {
	s := openTemp(t)
	for name, mode := range map[string]uint32{"a": 0o700, "b": 0o755, "a/c": 0o777, "b/d": 0o711} {
		if strings.Contains(name, "/") {
			require.NoError(t, errors.Join(s.Mkdir(storage.Dir(name), 0o700), nil))
		}
		require.NoError(t, s.Mkdir(name, mode))
		st := storagetest.Stat(t, s, name)
		require.Equal(t, storage.KindDir, st.Kind)
		require.Equal(t, mode, st.Mode)
		require.ErrorIs(t, s.Mkdir(name, mode), fs.ErrExist)
		require.NoError(t, os.RemoveAll(pathOf(s, "a")))
		require.NoError(t, os.RemoveAll(pathOf(s, "b")))
	}
	require.NoError(t, os.Symlink(t.TempDir(), pathOf(s, "link")))
	require.ErrorIs(t, s.Mkdir("link", 0o755), fs.ErrExist)
	require.ErrorIs(t, s.Mkdir("link/x", 0o755), fs.ErrNotExist)
	require.ErrorIs(t, s.Mkdir("none/x", 0o755), fs.ErrNotExist)
	for _, name := range []string{"", "..", "../x", "a/../b", "a\x00b"} {
		require.ErrorIs(t, s.Mkdir(name, 0o755), storage.ErrBadName, "%q", name)
	}
}

// TestSetAttributes: only what is asked for changes, of a file or directory itself and never of what a link leads to.
func TestSetAttributes(t *testing.T) {
	s := openTemp(t)
	require.NoError(t, s.MkdirAll("p"))
	writeDisk(t, s, "p/x.jsonl", "x\n")
	number := func(n uint32) *uint32 { return &n }
	when := func(n int64) *int64 { return &n }
	for _, name := range []string{"p/x.jsonl", "p"} {
		before := storagetest.Stat(t, s, name)
		require.NoError(t, s.SetAttributes(name, storage.Attributes{}))
		require.Equal(t, before, storagetest.Stat(t, s, name))
		require.NoError(t, s.SetAttributes(name, storage.Attributes{Mode: number(0o701)}))
		st := storagetest.Stat(t, s, name)
		require.Equal(t, uint32(0o701), st.Mode)
		require.Equal(t, before.Modified, st.Modified)
		require.NoError(t, s.SetAttributes(name, storage.Attributes{Modified: when(1_700_000_000_123456789)}))
		st = storagetest.Stat(t, s, name)
		require.Equal(t, int64(1_700_000_000_123456789), st.Modified)
		require.Equal(t, uint32(0o701), st.Mode)
		if os.Geteuid() == 0 {
			require.NoError(t, s.SetAttributes(name, storage.Attributes{UID: number(1234), Mode: number(0o705)}))
			st = storagetest.Stat(t, s, name)
			require.Equal(t, []uint32{1234, before.GID, 0o705}, []uint32{st.UID, st.GID, st.Mode})
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	require.NoError(t, os.Symlink(outside, pathOf(s, "link")))
	require.Error(t, s.SetAttributes("link", storage.Attributes{Mode: number(0o777)}))
	st, err := os.Stat(outside)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), st.Mode())
	require.ErrorIs(t, s.SetAttributes("none", storage.Attributes{}), fs.ErrNotExist)
}

// TestRemoveIf: what is removed is the very file, as it was looked at, or an empty directory.
func TestRemoveIf(t *testing.T) {
	s := openTemp(t)
	require.NoError(t, s.MkdirAll("p"))
	writeDisk(t, s, "p/x.jsonl", "x\n")
	file, dir := storagetest.Stat(t, s, "p/x.jsonl"), storagetest.Stat(t, s, "p")
	require.ErrorIs(t, s.RemoveIf("p", dir.Token), unix.ENOTEMPTY)
	require.NoError(t, os.WriteFile(pathOf(s, "p/x.jsonl"), []byte("xx\n"), 0o600))
	require.ErrorIs(t, s.RemoveIf("p/x.jsonl", file.Token), storage.ErrStale)
	require.ErrorIs(t, s.RemoveIf("p", file.Token), storage.ErrStale)
	require.NoError(t, os.Symlink("x.jsonl", pathOf(s, "p/link")))
	require.ErrorIs(t, s.RemoveIf("p/link", storagetest.Stat(t, s, "p/link").Token), storage.ErrNotRegular)
	require.NoError(t, os.Remove(pathOf(s, "p/link")))
	require.NoError(t, s.RemoveIf("p/x.jsonl", storagetest.Stat(t, s, "p/x.jsonl").Token))
	require.ErrorIs(t, s.RemoveIf("p/x.jsonl", file.Token), fs.ErrNotExist)
	require.NoError(t, s.RemoveIf("p", storagetest.Stat(t, s, "p").Token))
	require.Empty(t, storagetest.Leftovers(t, s.Path()))
}
