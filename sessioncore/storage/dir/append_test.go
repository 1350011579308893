//go:build linux

package dir

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// takes returns a write that accepts so many bytes in each of the first calls and then fails with the error; -1 is
// EINTR.
func takes(err error, counts ...int) func(fd int, p []byte) (int, error) {
	return func(fd int, p []byte) (int, error) {
		if len(counts) == 0 {
			return -1, err
		}
		n := counts[0]
		counts = counts[1:]
		if n < 0 {
			return -1, unix.EINTR
		}
		return unix.Write(fd, p[:min(n, len(p))])
	}
}

// TestFailures: a failed write is taken back, and the next one succeeds. But a failed append keeps the lines that a program without
// the lock wrote meanwhile; the error is the append's nevertheless.
func TestFailures(t *testing.T) {
	type sys = func(c *calls)
	writes := func(write func(int, []byte) (int, error)) sys { return func(c *calls) { c.write = write } }
	meanwhile := func(do func(fd int), ours ...int) sys {
		return func(c *calls) {
			takes := takes(unix.ENOSPC, ours...)
			c.write = func(fd int, p []byte) (int, error) {
				n, err := takes(fd, p)
				if err != nil {
					do(fd)
				}
				return n, err
			}
		}
	}
	others := func(text string) func(int) { return func(fd int) { _, _ = unix.Write(fd, []byte(text)) } }
	many := strings.Repeat("theirs\n", 9)
	appends := func(s *Storage) (storage.Stat, error) { return s.Append("x.jsonl", []byte("two is a line\n")) }
	replaces := func(s *Storage) (storage.Stat, error) { return storagetest.Replace(s, "x.jsonl", "another\n") }
	creates := func(s *Storage) (storage.Stat, error) { return storagetest.Replace(s, "new.jsonl", "new\n") }
	overwrites := func(s *Storage) (storage.Stat, error) {
		return s.Replace("x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Head: []byte("ONE"), Tail: []byte("two\n")})
	}
	const eio, enospc = unix.EIO, unix.ENOSPC
	noFsync := func(c *calls) { c.fsync = func(int) error { return eio } }
	noRename := func(c *calls) { c.renameat2 = func(int, string, int, string, uint) error { return eio } }
	for name, test := range map[string]struct {
		do   func(s *Storage) (storage.Stat, error)
		sys  sys
		want error
		left string // in the file, "" for its line
	}{
		"append: nothing written":    {appends, writes(takes(enospc)), enospc, ""},
		"append: short, then full":   {appends, writes(takes(enospc, 5)), enospc, ""},
		"append: interrupted, short": {appends, writes(takes(eio, -1, 5, -1)), eio, ""},
		"append: short, no reason":   {appends, writes(takes(nil, 5, 100)), io.ErrShortWrite, ""},
		"append: short, then zero":   {appends, writes(takes(nil, 5, 0)), io.ErrShortWrite, ""},
		"replace: full":              {replaces, writes(takes(enospc, 3)), enospc, ""},
		"replace: short, then zero":  {replaces, writes(takes(nil, 3, 0)), io.ErrShortWrite, ""},
		"replace: fsync":             {replaces, noFsync, eio, ""},
		"replace: rename":            {replaces, noRename, eio, ""},
		"create: full":               {creates, writes(takes(enospc, 3)), enospc, ""},
		"create: fsync":              {creates, noFsync, eio, ""},
		"create: rename":             {creates, noRename, eio, ""},
		"overwrite: the tail":        {overwrites, writes(takes(enospc, 3)), enospc, ""},
		"others, behind our part":    {appends, meanwhile(others("theirs\n"), 3), enospc, "one\ntwotheirs\n"},
		"others, where we failed":    {appends, meanwhile(others("theirs\n")), enospc, "one\ntheirs\n"},
		"others, more than we meant": {appends, meanwhile(others(many)), enospc, "one\n" + many},
		"others made it shorter":     {appends, meanwhile(func(fd int) { _ = unix.Ftruncate(fd, 2) }), enospc, "on"},
		"nobody, but it cannot be undone": {appends, func(c *calls) {
			c.write = takes(enospc, 5)
			c.ftruncate = func(int, int64) error { return eio }
		}, enospc, "one\ntwo i"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t, "x.jsonl")
			interrupted := false
			s.sys.ftruncate = func(fd int, size int64) error {
				interrupted = !interrupted // each second call
				if interrupted {
					return unix.EINTR
				}
				return unix.Ftruncate(fd, size)
			}
			test.sys(&s.sys)
			_, err := test.do(s)
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.want == eio, errors.Is(err, eio))
			require.Equal(t, test.left != "", strings.Contains(err.Error(), "not taken back"), err)
			require.Equal(t, cmp.Or(test.left, "one\n"), readDisk(t, s, "x.jsonl"))
			names, err := os.ReadDir(s.Path())
			require.NoError(t, err)
			require.Len(t, names, 1)
			s.sys = kernel
			_, err = test.do(s)
			require.NoError(t, err)
		})
	}
}

// TestAppendIsOneWrite: an append of any size is one system call, and syncs nothing.
func TestAppendIsOneWrite(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	writes := 0
	s.sys.write = func(fd int, p []byte) (int, error) {
		writes++
		return unix.Write(fd, p)
	}
	s.sys.fsync = func(int) error {
		t.Error("an append does not sync")
		return nil
	}
	_, err := s.Append("x.jsonl", bytes.Repeat([]byte("line\n"), 1<<20))
	require.NoError(t, err)
	assert.Equal(t, 1, writes)
}

// TestAppendSeesAReplacementMeanwhile: an old client renames a new file over the name without taking the lock.
func TestAppendSeesAReplacementMeanwhile(t *testing.T) {
	for _, gone := range []bool{false, true} {
		s := openTemp(t, "x.jsonl")
		require.NoError(t, os.Link(pathOf(s, "x.jsonl"), pathOf(s, "old")))
		s.sys.write = func(fd int, p []byte) (int, error) {
			require.NoError(t, os.Remove(pathOf(s, "x.jsonl")))
			if !gone {
				writeDisk(t, s, "x.jsonl", "theirs\n")
			}
			return unix.Write(fd, p)
		}
		_, err := s.Append("x.jsonl", []byte("two\n"))
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.Equal(t, "one\n", readDisk(t, s, "old"), "taken back from the old file too")
		if !gone {
			assert.Equal(t, "theirs\n", readDisk(t, s, "x.jsonl"))
		}
	}
}

// TestWhatIsNoFileIsNotOpened: no operation follows a link or opens a pipe or a socket, and each tells the kind by its error.
func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	s := openTemp(t, "secret", "real.jsonl", "real/x.jsonl", "dir -> real", "link.jsonl -> real.jsonl", "dangling.jsonl -> nothing")
	require.NoError(t, os.Symlink(pathOf(s, "secret"), pathOf(s, "absolute.jsonl")))
	require.NoError(t, unix.Mkfifo(pathOf(s, "pipe.jsonl"), 0o600))
	require.NoError(t, unix.Mknod(pathOf(s, "socket.jsonl"), unix.S_IFSOCK|0o600, 0))

	for want, names := range map[error][]string{
		fs.ErrNotExist:        {"link.jsonl", "absolute.jsonl", "dangling.jsonl", "dir/x.jsonl"},
		storage.ErrNotRegular: {"pipe.jsonl", "socket.jsonl"},
	} {
		for _, name := range names {
			for _, op := range []string{"Append", "Sync", "overwrite"} {
				assert.ErrorIs(t, storagetest.Writes[op](s, name), want, "%s(%s)", op, name)
			}
			_, err := s.Writers(name)
			assert.ErrorIs(t, err, want, name)
			assert.ErrorIs(t, storagetest.Reads["Open"](s, name), want, name)
		}
	}
	assert.ErrorIs(t, storagetest.Writes["Lock"](s, "dir/x.jsonl"), fs.ErrNotExist)
	assert.ErrorIs(t, storagetest.Writes["Replace"](s, "dir/new.jsonl"), unix.ENOTDIR)
	for _, dir := range []string{"dir/new", "dir", "dangling.jsonl"} {
		assert.ErrorIs(t, s.MkdirAll(dir), unix.ENOTDIR)
	}
	for _, name := range []string{"link.jsonl", "pipe.jsonl"} {
		_, err := storagetest.Replace(s, name, "x")
		assert.ErrorIs(t, err, storage.ErrNotRegular, name)
		assert.ErrorIs(t, storagetest.Writes["Replace"](s, name), fs.ErrExist, name)
	}
	for _, name := range []string{"secret", "real.jsonl", "real/x.jsonl"} {
		assert.Equal(t, "one\n", readDisk(t, s, name))
	}
}

// TestNoDescriptorStaysOpen: a process that kept one for writing would look like a live client.
func TestNoDescriptorStaysOpen(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	before := descriptors(t)
	require.NoError(t, unix.Mkfifo(pathOf(s, "pipe"), 0o600))
	for _, name := range []string{"x.jsonl", "pipe", "none", "no/dir", "d"} {
		for _, do := range storagetest.Reads {
			_ = do(s, name)
		}
		for _, do := range storagetest.Writes {
			_ = do(s, name)
		}
		_, _ = s.Writers(name)
		_ = s.MkdirAll("d/e")
		_ = s.MkdirAll("x.jsonl/e")
	}
	st, err := storagetest.Replace(s, "x.jsonl", "two\n")
	require.NoError(t, err)
	_, err = s.Replace("x.jsonl", storage.Replacement{Expect: st.Token, Write: func(io.Writer) error { return io.EOF }})
	require.ErrorIs(t, err, io.EOF)
	assert.LessOrEqual(t, descriptors(t), before)
}

// descriptors returns the number of open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(open)
}

// TestTwoProcessesAppend: no line is lost and none is mixed with another (docs/design.md section 4).
func TestTwoProcessesAppend(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "")
	other := childtest.Command(t, "append", s.Path(), "b")
	var said bytes.Buffer
	other.Stdout = &said
	require.NoError(t, other.Start())
	err := appendLines(s, "a")
	require.NoError(t, other.Wait(), "%s", &said)
	require.NoError(t, err)

	next := map[string]int{}
	whole := regexp.MustCompile(`^([ab]) ([0-9]+) ([0-9]+) (a*|b*)\.\n$`)
	for line := range strings.Lines(readDisk(t, s, "x.jsonl")) {
		m := whole.FindStringSubmatch(line)
		require.NotNil(t, m, "a line is not whole: %q", line)
		process := m[1]
		writer := process + m[2]
		number := next[writer]
		require.Equal(t, fmt.Sprint(number), m[3], "a line is lost or out of order")
		require.Equal(t, strings.Repeat(process, number%longestLine), m[4])
		next[writer]++
	}
	assert.Len(t, next, 2*appendWriters)
	for writer, n := range next {
		assert.Equal(t, appendedLines, n, writer)
	}
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}
