//go:build linux

package dir

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

func TestReplaceFailures(t *testing.T) {
	fails := func(int) error { return unix.EIO }
	for name, test := range map[string]struct {
		sys  func(*calls)
		want error
	}{
		"write":  {func(c *calls) { c.write = takes(unix.ENOSPC, 100) }, syscall.ENOSPC},
		"zero":   {func(c *calls) { c.write = takes(nil, 100, 0) }, io.ErrShortWrite},
		"fsync":  {func(c *calls) { c.fsync = fails }, syscall.EIO},
		"rename": {func(c *calls) { c.renameat2 = func(int, string, int, string, uint) error { return unix.EIO } }, syscall.EIO},
	} {
		for _, file := range []string{"x.jsonl", "new.jsonl"} {
			t.Run(name+" "+file, func(t *testing.T) {
				s := openTemp(t)
				writeDisk(t, s, "x.jsonl", "one\n")
				before := storagetest.Stat(t, s, "x.jsonl")
				expect := before.Token
				if file == "new.jsonl" {
					expect = storage.Token{}
				}
				sys := kernel
				test.sys(&sys)
				_, err := s.replaceWith(sys, file, storage.Replacement{Expect: expect, Write: storagetest.Content(strings.Repeat("line\n", 1000))})
				assert.ErrorIs(t, err, test.want)
				assert.Equal(t, before, storagetest.Stat(t, s, "x.jsonl"))
				items, err := storage.List(s, "")
				require.NoError(t, err)
				assert.Equal(t, []storage.Item{{Name: "x.jsonl", Kind: storage.KindFile}}, items)
			})
		}
	}
}

func TestReplaceIsDurable(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "one\n")
	var order []string
	sys := kernel
	sys.write = func(fd int, p []byte) (int, error) {
		order = append(order, "write")
		return unix.Write(fd, p[:min(len(p), 1<<20)])
	}
	sys.fsync = func(fd int) error {
		st, err := fstat(fd)
		require.NoError(t, err)
		order = append(order, map[storage.Kind]string{storage.KindFile: "fsync file", storage.KindDir: "fsync dir"}[st.Kind])
		return nil
	}
	sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		order = append(order, "rename")
		assert.Regexp(t, regexp.MustCompile(`^\.x\.jsonl\.[0-9a-f]{16}\.tmp$`), from)
		return unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	_, err := s.replaceWith(sys, "x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Write: storagetest.Content("two\n")})
	require.NoError(t, err)
	assert.Equal(t, []string{"write", "fsync file", "rename", "fsync dir"}, order)

	order = nil
	require.NoError(t, s.syncWith(sys, "x.jsonl"))
	assert.Equal(t, []string{"fsync file", "fsync dir"}, order)

	sys.fsync = func(int) error { return unix.ENOSPC }
	assert.ErrorIs(t, s.syncWith(sys, "x.jsonl"), syscall.ENOSPC)
}

// TestDirectoryCannotBeSynced: the file is replaced already, and the caller gets the error, unless the file system
// has no fsync for directories.
func TestDirectoryCannotBeSynced(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "one\n")
	for errno, want := range map[unix.Errno]error{unix.EIO: syscall.EIO, unix.EINVAL: nil, unix.ENOTSUP: nil} {
		sys := kernel
		interrupted := false
		sys.fsync = func(fd int) error {
			if st, err := fstat(fd); err != nil || st.Kind != storage.KindDir {
				return err
			}
			if interrupted = !interrupted; interrupted {
				return unix.EINTR
			}
			return errno
		}
		st, err := s.replaceWith(sys, "x.jsonl",
			storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Write: storagetest.Content(errno.Error())})
		assert.ErrorIs(t, err, want)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st)
		assert.Equal(t, errno.Error(), readDisk(t, s, "x.jsonl"))
		assert.ErrorIs(t, s.syncWith(sys, "x.jsonl"), want)
	}
}

// TestReplaceWithoutNoreplace: some file systems do not support the flag.
func TestReplaceWithoutNoreplace(t *testing.T) {
	s := openTemp(t)
	sys := kernel
	race := func() {}
	sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		race()
		if flags != 0 {
			return unix.EINVAL
		}
		return unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	st, err := s.replaceWith(sys, "x.jsonl", storage.Replacement{Write: storagetest.Content("one\n")})
	require.NoError(t, err)
	assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st)
	assert.Equal(t, "one\n", readDisk(t, s, "x.jsonl"))
	race = func() { writeDisk(t, s, "y.jsonl", "theirs\n") }
	_, err = s.replaceWith(sys, "y.jsonl", storage.Replacement{Write: storagetest.Content("ours\n")})
	assert.ErrorIs(t, err, fs.ErrExist)
	assert.ErrorIs(t, err, storage.ErrStale)
	assert.Equal(t, "theirs\n", readDisk(t, s, "y.jsonl"))
	_, err = s.replaceWith(kernel, "z.jsonl", storage.Replacement{Write: func(io.Writer) error {
		writeDisk(t, s, "z.jsonl", "theirs\n")
		return nil
	}})
	assert.ErrorIs(t, err, fs.ErrExist)
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

func TestReplaceKeepsModeAndOwner(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	s := openTemp(t)
	for _, mode := range []os.FileMode{0o600, 0o640, 0o664, 0o444} {
		writeDisk(t, s, "x.jsonl", "one\n")
		require.NoError(t, os.Chmod(pathOf(s, "x.jsonl"), mode))
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(pathOf(s, "x.jsonl"), 1234, 4321))
		}
		before := storagetest.Stat(t, s, "x.jsonl")
		st, err := s.Replace("x.jsonl", storage.Replacement{Expect: before.Token, Write: storagetest.Content("two\n")})
		require.NoError(t, err)
		assert.Equal(t, uint32(mode), st.Mode)
		assert.Equal(t, []uint32{before.UID, before.GID}, []uint32{st.UID, st.GID})
		require.NoError(t, os.Remove(pathOf(s, "x.jsonl")))
	}
}

func TestReplaceRefusesWhatItCannotKeep(t *testing.T) {
	folder, err := os.MkdirTemp("/tmp", "sessioncore")
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	require.NoError(t, os.Chmod(folder, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "x.jsonl"), []byte("one\n"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(folder, "x.jsonl"), 0o666))
	childtest.RunAsNobody(t, "chown", folder, "x.jsonl")
	data, err := os.ReadFile(filepath.Join(folder, "x.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(data))
	assert.Empty(t, storagetest.Leftovers(t, folder))
}

// acl is an access control list that permits user 1234 to read and write.
func acl() []byte {
	list := []byte{2, 0, 0, 0} // version
	for _, entry := range [][3]uint32{{1, 6, ^uint32(0)}, {2, 6, 1234}, {4, 0, ^uint32(0)}, {16, 6, ^uint32(0)}, {32, 0, ^uint32(0)}} {
		list = append(list, byte(entry[0]), 0, byte(entry[1]), 0,
			byte(entry[2]), byte(entry[2]>>8), byte(entry[2]>>16), byte(entry[2]>>24))
	}
	return list
}

func TestReplaceKeepsTheAccessControlList(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "list.jsonl", "one\n")
	writeDisk(t, s, "none.jsonl", "one\n")
	if err := unix.Setxattr(pathOf(s, "list.jsonl"), aclName, acl(), 0); err != nil {
		t.Skipf("no access control lists here: %v", err)
	}
	require.NoError(t, unix.Setxattr(s.Path(), "system.posix_acl_default", acl(), 0))
	for name, want := range map[string][]byte{"list.jsonl": acl(), "none.jsonl": nil} {
		before := storagetest.Stat(t, s, name)
		st, err := s.Replace(name, storage.Replacement{Expect: before.Token, Write: storagetest.Content("two\n")})
		require.NoError(t, err)
		assert.Equal(t, before.Mode, st.Mode)
		got := make([]byte, 1000)
		n, err := unix.Getxattr(pathOf(s, name), aclName, got)
		if want == nil {
			assert.ErrorIs(t, err, unix.ENODATA, "a list that the file did not have")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, got[:n])
	}
}

func TestWhatRootMakesBelongsToTheDirectorysOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	s := openTemp(t)
	require.NoError(t, os.Mkdir(pathOf(s, "user"), 0o700))
	require.NoError(t, os.Chown(pathOf(s, "user"), 1234, 4321))
	require.NoError(t, s.MkdirAll("user/a/b"))
	st, err := s.Replace("user/a/b/x.jsonl", storage.Replacement{Write: storagetest.Content("one\n")})
	require.NoError(t, err)
	assert.Equal(t, []uint32{1234, 4321, 0o600}, []uint32{st.UID, st.GID, st.Mode})
	for _, name := range []string{"user/a", "user/a/b"} {
		st := storagetest.Stat(t, s, name)
		assert.Equal(t, []uint32{1234, 4321, 0o700}, []uint32{st.UID, st.GID, st.Mode}, name)
	}
	unlock := storagetest.Lock(t, s, "user/x.jsonl")
	st = storagetest.Stat(t, s, "user/.x.jsonl.lock")
	assert.Equal(t, []uint32{1234, 4321, 0o600}, []uint32{st.UID, st.GID, st.Mode})
	require.NoError(t, unlock())
}

// TestOverwriteTakenBack: if what is added to a file with another beginning cannot be written, the beginning is as it was.
func TestOverwriteTakenBack(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "one\ntwo\n")
	sys := kernel
	sys.write = takes(unix.ENOSPC, 3)
	_, err := s.replaceWith(sys, "x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Head: []byte("ONE"), Tail: []byte("three\n")})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, "one\ntwo\n", readDisk(t, s, "x.jsonl"))
}
