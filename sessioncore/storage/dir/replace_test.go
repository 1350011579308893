//go:build linux

package dir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestReplaceIsDurable: the content is durable before the rename, and the name after it; Sync does the same for an append, and tells
// of each failure.
func TestReplaceIsDurable(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	var order []string
	s.sys.write = func(fd int, p []byte) (int, error) {
		order = append(order, "write")
		return unix.Write(fd, p)
	}
	s.sys.fsync = func(fd int) error {
		st, err := fstat(fd)
		require.NoError(t, err)
		switch st.Kind {
		case storage.KindFile:
			order = append(order, "fsync file")
		case storage.KindDir:
			order = append(order, "fsync dir")
		}
		return nil
	}
	s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		order = append(order, "rename")
		assert.Regexp(t, `^\.x\.jsonl\.[0-9a-f]{16}\.tmp$`, from)
		return unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	_, err := storagetest.Replace(s, "x.jsonl", "two\n")
	require.NoError(t, err)
	assert.Equal(t, []string{"write", "fsync file", "rename", "fsync dir"}, order)

	order = nil
	require.NoError(t, s.Sync("x.jsonl"))
	assert.Equal(t, []string{"fsync file", "fsync dir"}, order)
	for _, failing := range []storage.Kind{storage.KindFile, storage.KindDir} {
		s.sys.fsync = func(fd int) error {
			st, err := fstat(fd)
			if err != nil || st.Kind == failing {
				return errors.Join(err, unix.ENOSPC)
			}
			return nil
		}
		assert.ErrorIs(t, s.Sync("x.jsonl"), syscall.ENOSPC, "fsync of %v", failing)
	}
}

// TestDirectoryCannotBeSynced: the file is replaced already, and the caller gets the error, unless the file system
// has no fsync for directories.
func TestDirectoryCannotBeSynced(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	for errno, want := range map[unix.Errno]error{unix.EIO: syscall.EIO, unix.EINVAL: nil, unix.ENOTSUP: nil} {
		interrupted := false
		s.sys.fsync = func(fd int) error {
			st, err := fstat(fd)
			if err != nil || st.Kind != storage.KindDir {
				return err
			}
			interrupted = !interrupted // each second call
			if interrupted {
				return unix.EINTR
			}
			return errno
		}
		st, err := storagetest.Replace(s, "x.jsonl", errno.Error())
		assert.ErrorIs(t, err, want)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st)
		assert.Equal(t, errno.Error(), readDisk(t, s, "x.jsonl"))
		assert.ErrorIs(t, s.Sync("x.jsonl"), want)
	}
}

// TestReplaceFindsAnother: a file that a program without the lock gives the name at the last moment is kept, also on file
// systems without RENAME_NOREPLACE.
func TestReplaceFindsAnother(t *testing.T) {
	for _, test := range []struct {
		name      string
		lacks     uint // a flag that the file system does not know
		hasTheirs bool
	}{
		{name: "x.jsonl", hasTheirs: true},
		{name: "new.jsonl", lacks: unix.RENAME_NOREPLACE, hasTheirs: true},
		{name: "new.jsonl", lacks: unix.RENAME_NOREPLACE},
	} {
		s := openTemp(t, "x.jsonl")
		race := sync.OnceFunc(func() {
			if test.hasTheirs {
				writeDisk(t, s, "theirs", "theirs\n")
				require.NoError(t, os.Rename(pathOf(s, "theirs"), pathOf(s, test.name)))
			}
		})
		s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
			race()
			if flags&test.lacks != 0 {
				return unix.EINVAL
			}
			return unix.Renameat2(fromDir, from, toDir, to, flags)
		}
		st, err := storagetest.Replace(s, test.name, "ours\n")
		if test.hasTheirs {
			require.ErrorIs(t, err, storage.ErrStale)
			assert.Equal(t, test.name == "new.jsonl", errors.Is(err, fs.ErrExist))
			assert.Equal(t, "theirs\n", readDisk(t, s, test.name))
		} else {
			require.NoError(t, err)
			assert.Equal(t, storagetest.Stat(t, s, test.name), st)
			assert.Equal(t, "ours\n", readDisk(t, s, test.name))
		}
		assert.Empty(t, storagetest.Leftovers(t, s.Path()))
	}
}

// TestReplaceKeepsModeAndOwner: a new version has the mode and the owner of the old one, whatever the umask.
func TestReplaceKeepsModeAndOwner(t *testing.T) {
	before := unix.Umask(0o077)
	defer unix.Umask(before)
	for _, mode := range []os.FileMode{0o600, 0o640, 0o664, 0o444} {
		s := openTemp(t, "x.jsonl")
		require.NoError(t, os.Chmod(pathOf(s, "x.jsonl"), mode))
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(pathOf(s, "x.jsonl"), 1234, 4321))
		}
		old := storagetest.Stat(t, s, "x.jsonl")
		st, err := storagetest.Replace(s, "x.jsonl", "two\n")
		require.NoError(t, err)
		assert.Equal(t, uint32(mode), st.Mode)
		assert.Equal(t, old.UID, st.UID)
		assert.Equal(t, old.GID, st.GID)
	}
}

// TestReplaceRefusesWhatItCannotKeep: a file that others own is theirs.
func TestReplaceRefusesWhatItCannotKeep(t *testing.T) {
	needRoot(t)
	s := openPublic(t, "x.jsonl")
	asNobody(t, func() {
		_, err := storagetest.Replace(s, "x.jsonl", "mine\n")
		require.ErrorIs(t, err, os.ErrPermission)
	})
	assert.Equal(t, "one\n", readDisk(t, s, "x.jsonl"))
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// acl is an access control list that permits user 1234 to read and write.
func acl() []byte {
	list := []byte{2, 0, 0, 0} // version
	const nobody = ^uint32(0)  // for an entry that names no user
	for _, entry := range []struct {
		tag, permissions uint16
		id               uint32
	}{
		{1, 6, nobody},  // the owner
		{2, 6, 1234},    // a user
		{4, 0, nobody},  // the group
		{16, 6, nobody}, // the mask
		{32, 0, nobody}, // others
	} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.permissions)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return list
}

// TestReplaceKeepsTheAccessControlList: a new version has the list of the old one, and none from its directory if that had none.
func TestReplaceKeepsTheAccessControlList(t *testing.T) {
	s := openTemp(t, "list.jsonl", "none.jsonl")
	if err := unix.Setxattr(pathOf(s, "list.jsonl"), aclName, acl(), 0); err != nil {
		t.Skipf("no access control lists here: %v", err)
	}
	require.NoError(t, unix.Setxattr(s.Path(), "system.posix_acl_default", acl(), 0))
	for name, want := range map[string][]byte{"list.jsonl": acl(), "none.jsonl": nil} {
		before := storagetest.Stat(t, s, name)
		st, err := storagetest.Replace(s, name, "two\n")
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

// TestWhatRootMakesBelongsToTheDirectorysOwner: directories, sessions and locks that root makes have the owner of the directory above.
func TestWhatRootMakesBelongsToTheDirectorysOwner(t *testing.T) {
	needRoot(t)
	s := openTemp(t, "user/")
	require.NoError(t, os.Chown(pathOf(s, "user"), 1234, 4321))
	require.NoError(t, s.MkdirAll("user/a/b"))
	_, err := storagetest.Replace(s, "user/a/b/x.jsonl", "one\n")
	require.NoError(t, err)
	unlock := storagetest.Lock(t, s, "user/x.jsonl")
	for name, mode := range map[string]uint32{"user/a": 0o700, "user/a/b": 0o700, "user/a/b/x.jsonl": 0o600, "user/.x.jsonl.lock": 0o600} {
		st := storagetest.Stat(t, s, name)
		assert.Equal(t, []uint32{1234, 4321, mode}, []uint32{st.UID, st.GID, st.Mode}, name)
	}
	require.NoError(t, unlock())
}

// leaveFile leaves a file of an age, as a killed process does, and returns its path.
func leaveFile(t *testing.T, s *Storage, base, text string, age time.Duration) string {
	t.Helper()
	path := pathOf(s, base)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	return path
}

// TestSweep: the temporary files of dead processes go with the next replacement in their directory, however young they are. Those of
// living ones stay, and so do those of other programs, locks that were put aside a moment ago, and what may be a replaced version.
func TestSweep(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	living := leaveFile(t, s, storage.TemporaryName("x.jsonl"), "", 2*sweepAge)
	f, err := os.Open(living)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	dead := leaveFile(t, s, storage.TemporaryName("x.jsonl"), "", 2*sweepAge)
	young := leaveFile(t, s, storage.TemporaryName("x.jsonl"), "", 0)
	lock := leaveFile(t, s, storage.TemporaryName(".x.jsonl.lock"), "", 0)
	client := leaveFile(t, s, ".x.jsonl.0123456789abcdef.tmp", "", 2*sweepAge)
	replaced := leaveFile(t, s, storage.AsideName("x.jsonl"), "", 2*sweepAge)
	link := pathOf(s, storage.TemporaryName("link"))
	pipe := pathOf(s, storage.TemporaryName("pipe"))
	require.NoError(t, os.Symlink(pathOf(s, "x.jsonl"), link))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))

	_, err = storagetest.Replace(s, "x.jsonl", "two\n")
	require.NoError(t, err)
	require.NoFileExists(t, dead)
	require.NoFileExists(t, young)
	require.ElementsMatch(t, []string{living, lock, client, replaced, link, pipe}, storagetest.Leftovers(t, s.Path()))

	again := leaveFile(t, s, storage.TemporaryName("x.jsonl"), "", 2*sweepAge)
	_, err = storagetest.Replace(s, "x.jsonl", "three\n")
	require.NoError(t, err)
	require.FileExists(t, again, "a directory is not looked through for each replacement")
}

// TestSweepShared: where other machines write, locks may not be seen, and a young file stays.
func TestSweepShared(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	s.SetSharing(SharingAlways)
	young := leaveFile(t, s, storage.TemporaryName("x.jsonl"), "", 0)
	_, err := storagetest.Replace(s, "x.jsonl", "two\n")
	require.NoError(t, err)
	require.FileExists(t, young)
}

// TestSweepReplaced: what a process leaves that is killed around the exchange of a rewrite goes with the next one or with a move,
// unless another program's lines may be in it alone.
func TestSweepReplaced(t *testing.T) {
	const old, successor = "old header\nline\n", "the new header\nline\n"
	rename := func(t *testing.T, s *Storage, name, to string) {
		require.NoError(t, os.Rename(pathOf(s, name), pathOf(s, to)))
	}
	for name, test := range map[string]struct {
		leave     func(t *testing.T, s *Storage, aside string)
		isForeign bool // the name is made of another file
		stays     bool
	}{
		"before the exchange": {leave: func(t *testing.T, s *Storage, aside string) {
			leaveFile(t, s, aside, successor, 0)
		}},
		"before it, and the file grew": {leave: func(t *testing.T, s *Storage, aside string) {
			leaveFile(t, s, aside, successor, 0)
			writeDisk(t, s, "x.jsonl", old+"more\n")
		}},
		"behind the exchange": {leave: func(t *testing.T, s *Storage, aside string) {
			rename(t, s, "x.jsonl", aside)
			leaveFile(t, s, "x.jsonl", successor, 0)
		}},
		"with another program's line": {stays: true, leave: func(t *testing.T, s *Storage, aside string) {
			rename(t, s, "x.jsonl", aside)
			writeDisk(t, s, aside, old+"more\n")
			leaveFile(t, s, "x.jsonl", successor, 0)
		}},
		"of a file that is gone": {stays: true, leave: func(t *testing.T, s *Storage, aside string) {
			rename(t, s, "x.jsonl", aside)
		}},
		"of other files": {isForeign: true, stays: true, leave: func(t *testing.T, s *Storage, aside string) {
			rename(t, s, "x.jsonl", "y")
			leaveFile(t, s, aside, old, 0)
			leaveFile(t, s, "x.jsonl", old, 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t, "x.jsonl", "other.jsonl")
			require.NoError(t, s.MkdirAll("to"))
			writeDisk(t, s, "x.jsonl", old)
			replaced := storagetest.Stat(t, s, "x.jsonl").Token
			if test.isForeign {
				replaced.Inode ^= 1
			}
			aside, ok := storage.ReplacedName("x.jsonl", replaced)
			require.True(t, ok)
			test.leave(t, s, aside)
			require.NoError(t, s.Move("other.jsonl", "to/other.jsonl", ".jsonl"))
			left := storagetest.Leftovers(t, s.Path())
			require.Equal(t, test.stays, slices.Contains(left, pathOf(s, aside)))
		})
	}
}

// TestReplacedIsLocked: as long as its process lives, nobody takes a file that is being replaced for one of a dead process; another
// process's file of that name is not replaced.
func TestReplacedIsLocked(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	aside, _ := storage.ReplacedName("x.jsonl", storagetest.Stat(t, s, "x.jsonl").Token)
	seen := 0
	exchange := func(from string, flags uint) {
		if flags != renameExchange {
			return
		}
		seen++
		p, err := s.openParentToWrite("x.jsonl")
		require.NoError(t, err)
		defer p.close()
		p.sweep()
		require.FileExists(t, pathOf(s, from))
	}
	s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		exchange(from, flags)
		err := kernel.renameat2(fromDir, from, toDir, to, flags)
		exchange(from, flags)
		return err
	}
	_, err := storagetest.Replace(s, "x.jsonl", "two\n")
	require.NoError(t, err)
	require.Equal(t, 2, seen)
	require.NoFileExists(t, pathOf(s, aside))
	s.sys = kernel

	taken, _ := storage.ReplacedName("x.jsonl", storagetest.Stat(t, s, "x.jsonl").Token)
	leaveFile(t, s, taken, "another's", 0)
	_, err = storagetest.Replace(s, "x.jsonl", "three\n")
	require.NoError(t, err)
	require.FileExists(t, pathOf(s, taken))
	require.Equal(t, "three\n", storagetest.Read(t, s, "x.jsonl"))
}

// TestTemporaryIsLocked: while a replacement is written, nobody takes its file for one of a dead process.
func TestTemporaryIsLocked(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	p, err := s.openParentToWrite("x.jsonl")
	require.NoError(t, err)
	defer p.close()
	tmp, err := p.temporary()
	require.NoError(t, err)
	require.False(t, tmp.temp.removeStale())
	require.FileExists(t, pathOf(s, tmp.temp.base))
	require.NoError(t, unix.Close(tmp.fd)) // as the end of its process does
	require.True(t, tmp.temp.removeStale())
	require.NoFileExists(t, pathOf(s, tmp.temp.base))
}

// replaceReady replaces x.jsonl with a Ready that returns an error.
func replaceReady(t *testing.T, s *Storage, text string, failure error) (storage.Stat, error) {
	t.Helper()
	token := storagetest.Stat(t, s, "x.jsonl").Token
	return s.Replace("x.jsonl", storage.Replacement{
		Expect: token,
		Write:  storagetest.Content(text),
		Ready:  func(io.Writer) (storage.Token, error) { return token, failure },
	})
}

// TestReplaceCarriesOver: the new file has the lines appended to the old one right before and after it lost its name,
// also through a descriptor opened before.
func TestReplaceCarriesOver(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	done := make(chan error, 1)
	s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		stray, err := os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = stray.WriteString("before\n")
		require.NoError(t, err)
		go func() {
			time.Sleep(carryLimit / 10)
			_, firstErr := stray.WriteString("after\nin two")
			time.Sleep(carryLimit / 10)
			_, secondErr := stray.WriteString(" writes\ntorn")
			done <- errors.Join(firstErr, secondErr, stray.Close())
		}()
		return unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	st, err := replaceReady(t, s, "new\n", nil)
	require.NoError(t, err)
	require.NoError(t, <-done)
	_, err = replaceReady(t, s, "no\n", errors.ErrUnsupported)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Equal(t, "new\nbefore\nafter\nin two writes\ntorn", readDisk(t, s, "x.jsonl"))
	require.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st, "of the file with all of that")
	require.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// findNow finds a file now, and returns a function that opens it and appends to it a quarter of the wait for such programs later.
func findNow(t *testing.T, file string) (write func(text string) <-chan error) {
	found, err := unix.Open(file, unix.O_PATH, 0)
	require.NoError(t, err)
	return func(text string) <-chan error {
		done := make(chan error, 1)
		go func() {
			time.Sleep(carryOpen / 4 * carryPoll)
			stray, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", found), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = stray.WriteString(text)
				err = errors.Join(err, stray.Close())
			}
			done <- errors.Join(err, unix.Close(found))
		}()
		return done
	}
}

// TestReplaceWaitsForOpens: a program that found the old file right before it lost its name, and opens it only after the
// rename, loses no line.
func TestReplaceWaitsForOpens(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	var done <-chan error
	s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		write := findNow(t, pathOf(s, "x.jsonl"))
		err := unix.Renameat2(fromDir, from, toDir, to, flags)
		done = write("late\n")
		return err
	}
	_, err := replaceReady(t, s, "new\n", nil)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, "new\nlate\n", readDisk(t, s, "x.jsonl"))
}

// TestReplaceBesideOpenFile: a program that opened the old file right before the rename, and keeps it open, goes on in
// the file that has the name. So do those that wrote to the new file meanwhile, also late.
func TestReplaceBesideOpenFile(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	var stray *os.File
	var done <-chan error
	s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) (err error) {
		if stray != nil {
			write := findNow(t, pathOf(s, "x.jsonl"))
			err = unix.Renameat2(fromDir, from, toDir, to, flags)
			done = write("third\n")
			return err
		}
		stray, err = os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		err = unix.Renameat2(fromDir, from, toDir, to, flags)
		second, openErr := os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, openErr)
		_, openErr = second.WriteString("second\n")
		require.NoError(t, errors.Join(openErr, second.Close()))
		return err
	}
	_, err := replaceReady(t, s, "new\n", nil)
	require.ErrorIs(t, err, storage.ErrLocked)
	require.NoError(t, <-done)
	_, err = stray.WriteString("late\n")
	require.NoError(t, errors.Join(err, stray.Close()))
	require.Equal(t, "one\nsecond\nthird\nlate\n", readDisk(t, s, "x.jsonl"))

	stray, err = os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer stray.Close()
	s.sys.renameat2 = func(int, string, int, string, uint) error { return errors.New("it is replaced for a moment") }
	_, err = storagetest.Replace(s, "x.jsonl", "new\n")
	require.ErrorIs(t, err, storage.ErrLocked)
	require.Empty(t, storagetest.Leftovers(t, s.Path()))
}
