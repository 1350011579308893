//go:build linux

package dir

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// writeDisk writes a file on disk, bypassing the storage.
func writeDisk(t *testing.T, s *Storage, name, data string) {
	t.Helper()
	require.NoError(t, os.WriteFile(pathOf(s, name), []byte(data), 0o600))
}

func readDisk(t *testing.T, s *Storage, name string) string {
	t.Helper()
	data, err := os.ReadFile(pathOf(s, name))
	require.NoError(t, err)
	return string(data)
}

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

func TestAppendTakesBackWhatFailed(t *testing.T) {
	const data = "two is a line\n"
	for name, test := range map[string]struct {
		write func(fd int, p []byte) (int, error)
		want  error
	}{
		"nothing written":    {takes(unix.ENOSPC), syscall.ENOSPC},
		"short, then full":   {takes(unix.ENOSPC, 5), syscall.ENOSPC},
		"interrupted, short": {takes(unix.EIO, -1, 5, -1), syscall.EIO},
		"short, no reason":   {takes(nil, 5, 100), io.ErrShortWrite},
		"short, then zero":   {takes(nil, 5, 0), io.ErrShortWrite},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t)
			writeDisk(t, s, "x.jsonl", "one\n")
			sys := kernel
			sys.write = test.write
			truncated := 0
			sys.ftruncate = func(fd int, size int64) error {
				if truncated++; truncated == 1 {
					return unix.EINTR
				}
				return unix.Ftruncate(fd, size)
			}
			_, err := s.appendWith(sys, "x.jsonl", []byte(data))
			assert.ErrorIs(t, err, test.want)
			assert.Equal(t, "one\n", readDisk(t, s, "x.jsonl"))
			_, err = s.Append("x.jsonl", []byte(data))
			require.NoError(t, err)
			assert.Equal(t, "one\n"+data, readDisk(t, s, "x.jsonl"))
		})
	}
}

func TestAppendIsOneWrite(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "one\n")
	sys := kernel
	writes := 0
	sys.write = func(fd int, p []byte) (int, error) { writes++; return unix.Write(fd, p) }
	sys.fsync = func(int) error { t.Error("an append does not sync"); return nil }
	_, err := s.appendWith(sys, "x.jsonl", bytes.Repeat([]byte("line\n"), 1<<20))
	require.NoError(t, err)
	assert.Equal(t, 1, writes)
}

// TestAppendKeepsWhatOthersWrote: undoing a failed append does not remove what a program without the lock appended
// meanwhile. The error is that of the append.
func TestAppendKeepsWhatOthersWrote(t *testing.T) {
	others := func(fd int, text string) { _, _ = unix.Write(fd, []byte(text)) }
	fails := func(int, int64) error { return unix.EIO }
	for name, test := range map[string]struct {
		meanwhile func(fd int)
		written   []int // by us, before the disk is full
		want      string
		truncate  func(int, int64) error
	}{
		"behind our part": {func(fd int) { others(fd, "theirs\n") }, []int{3}, "one\ntwotheirs\n", unix.Ftruncate},
		"where we failed": {func(fd int) { others(fd, "theirs\n") }, nil, "one\ntheirs\n", unix.Ftruncate},
		"more than we meant": {func(fd int) { others(fd, strings.Repeat("theirs\n", 9)) }, nil,
			"one\n" + strings.Repeat("theirs\n", 9), unix.Ftruncate},
		"made it shorter":                 {func(fd int) { _ = unix.Ftruncate(fd, 2) }, nil, "on", unix.Ftruncate},
		"nobody, and it cannot be undone": {func(int) {}, []int{5}, "one\ntwo i", fails},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t)
			writeDisk(t, s, "x.jsonl", "one\n")
			sys := kernel
			sys.ftruncate = test.truncate
			ours := takes(unix.ENOSPC, test.written...)
			sys.write = func(fd int, p []byte) (int, error) {
				n, err := ours(fd, p)
				if err != nil {
					test.meanwhile(fd)
				}
				return n, err
			}
			_, err := s.appendWith(sys, "x.jsonl", []byte("two is a line\n"))
			assert.ErrorIs(t, err, syscall.ENOSPC)
			assert.NotErrorIs(t, err, syscall.EIO)
			assert.ErrorContains(t, err, "not taken back")
			assert.Equal(t, test.want, readDisk(t, s, "x.jsonl"))
		})
	}
}

// TestAppendSeesAReplacementMeanwhile: an old client renames a new file over the name without taking the lock.
func TestAppendSeesAReplacementMeanwhile(t *testing.T) {
	s := openTemp(t)
	for _, gone := range []bool{false, true} {
		writeDisk(t, s, "x.jsonl", "one\n")
		require.NoError(t, os.Link(pathOf(s, "x.jsonl"), pathOf(s, "x.jsonl.00.bak")))
		sys := kernel
		sys.write = func(fd int, p []byte) (int, error) {
			if gone {
				require.NoError(t, os.Remove(pathOf(s, "x.jsonl")))
			} else {
				writeDisk(t, s, "new", "theirs\n")
				require.NoError(t, os.Rename(pathOf(s, "new"), pathOf(s, "x.jsonl")))
			}
			return unix.Write(fd, p)
		}
		_, err := s.appendWith(sys, "x.jsonl", []byte("two\n"))
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.Equal(t, "one\n", readDisk(t, s, "x.jsonl.00.bak"), "taken back from the old file too")
		if !gone {
			assert.Equal(t, "theirs\n", readDisk(t, s, "x.jsonl"))
		}
		require.NoError(t, os.Remove(pathOf(s, "x.jsonl.00.bak")))
	}
}

func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "secret", "secret\n")
	writeDisk(t, s, "real.jsonl", "one\n")
	require.NoError(t, os.Mkdir(pathOf(s, "real"), 0o700))
	writeDisk(t, s, "real/x.jsonl", "one\n")
	require.NoError(t, os.Symlink("real.jsonl", pathOf(s, "link.jsonl")))
	require.NoError(t, os.Symlink(pathOf(s, "secret"), pathOf(s, "absolute.jsonl")))
	require.NoError(t, os.Symlink("nothing", pathOf(s, "dangling.jsonl")))
	require.NoError(t, os.Symlink("real", pathOf(s, "dir")))
	require.NoError(t, unix.Mkfifo(pathOf(s, "pipe.jsonl"), 0o600))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(socket)
	require.NoError(t, unix.Bind(socket, &unix.SockaddrUnix{Name: pathOf(s, "socket.jsonl")}))

	for _, name := range []string{"link.jsonl", "absolute.jsonl", "dangling.jsonl", "dir/x.jsonl"} {
		for _, op := range []string{"Append", "Sync", "overwrite"} {
			assert.ErrorIs(t, storagetest.Writes[op](s, name), fs.ErrNotExist, "%s(%s)", op, name)
		}
		assert.ErrorIs(t, storagetest.Reads["Open"](s, name), fs.ErrNotExist, name)
		_, err := s.Writers(name)
		assert.ErrorIs(t, err, fs.ErrNotExist, name)
	}
	assert.ErrorIs(t, storagetest.Writes["Lock"](s, "dir/x.jsonl"), fs.ErrNotExist)
	assert.ErrorIs(t, storagetest.Writes["Replace"](s, "dir/new.jsonl"), unix.ENOTDIR)
	assert.ErrorIs(t, s.MkdirAll("dir/new"), unix.ENOTDIR)
	assert.ErrorIs(t, s.MkdirAll("dir"), unix.ENOTDIR)
	assert.ErrorIs(t, s.MkdirAll("dangling.jsonl"), unix.ENOTDIR)
	for _, name := range []string{"pipe.jsonl", "socket.jsonl"} {
		for _, op := range []string{"Append", "Sync", "overwrite"} {
			assert.ErrorIs(t, storagetest.Writes[op](s, name), storage.ErrNotRegular, "%s(%s)", op, name)
		}
		_, err := s.Writers(name)
		assert.ErrorIs(t, err, storage.ErrNotRegular, name)
	}
	assert.ErrorIs(t, storagetest.Reads["Open"](s, "pipe.jsonl"), storage.ErrNotRegular)
	for _, name := range []string{"link.jsonl", "pipe.jsonl"} {
		_, err := s.Replace(name, storage.Replacement{Expect: storagetest.Stat(t, s, name).Token, Write: storagetest.Content("x")})
		assert.ErrorIs(t, err, storage.ErrNotRegular, name)
		assert.ErrorIs(t, storagetest.Writes["Replace"](s, name), fs.ErrExist, name)
	}
	assert.Equal(t, "secret\n", readDisk(t, s, "secret"))
	assert.Equal(t, "one\n", readDisk(t, s, "real.jsonl"))
	assert.Equal(t, "one\n", readDisk(t, s, "real/x.jsonl"))
}

// TestNoDescriptorStaysOpen: a process that kept one for writing would look like a live client.
func TestNoDescriptorStaysOpen(t *testing.T) {
	s := openTemp(t)
	before := descriptors(t)
	writeDisk(t, s, "x.jsonl", "one\n")
	require.NoError(t, unix.Mkfifo(pathOf(s, "pipe"), 0o600))
	for _, name := range []string{"x.jsonl", "pipe", "none", "no/dir", "d"} {
		for _, do := range storagetest.Reads {
			_ = do(s, name)
		}
		for _, do := range storagetest.Writes {
			_ = do(s, name)
		}
		_, _ = s.Writers(name)
		_ = s.List(name, nil, func(storage.Item) bool { return true })
		_ = s.MkdirAll("d/e")
		_ = s.MkdirAll("x.jsonl/e")
	}
	_, err := s.Replace("x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Write: storagetest.Content("two\n")})
	require.NoError(t, err)
	_, err = s.Replace("x.jsonl", storage.Replacement{Expect: storagetest.Stat(t, s, "x.jsonl").Token, Write: func(io.Writer) error { return io.EOF }})
	require.ErrorIs(t, err, io.EOF)
	assert.LessOrEqual(t, descriptors(t), before)
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("cannot count descriptors: %v", err)
	}
	return len(open)
}

// TestTwoProcessesAppend: no line is lost and none is mixed with another (docs/design.md section 4).
func TestTwoProcessesAppend(t *testing.T) {
	const writers, lines = 4, 500
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "")
	other := childtest.Command(t, "append", s.Path(), "x.jsonl", "b", fmt.Sprint(writers), fmt.Sprint(lines))
	var said bytes.Buffer
	other.Stdout = &said
	require.NoError(t, other.Start())
	err := appendLines(s, "x.jsonl", "a", writers, lines)
	require.NoError(t, other.Wait(), "%s", &said)
	require.NoError(t, err)

	next := map[string]int{}
	whole := regexp.MustCompile(`^([ab]) ([0-9]+) ([0-9]+) (a*|b*)\.$`)
	text := strings.TrimSuffix(readDisk(t, s, "x.jsonl"), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		m := whole.FindStringSubmatch(line)
		require.NotNil(t, m, "a line is not whole: %q", line)
		who := m[1] + m[2]
		require.Equal(t, fmt.Sprint(next[who]), m[3], "a line is lost or out of order")
		require.Equal(t, strings.Repeat(m[1], next[who]%400), m[4])
		next[who]++
	}
	assert.Len(t, next, 2*writers)
	for who, n := range next {
		assert.Equal(t, lines, n, who)
	}
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}
