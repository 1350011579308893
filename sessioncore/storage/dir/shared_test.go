//go:build linux

package dir

import (
	"fmt"
	"os"
	"os/exec"
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

func TestSharedIsDetected(t *testing.T) {
	var st unix.Statfs_t
	for _, local := range []string{t.TempDir(), "/dev/shm"} {
		require.NoError(t, unix.Statfs(local, &st))
		if !assert.Contains(t, []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
			unix.OVERLAYFS_SUPER_MAGIC}, st.Type) {
			continue
		}
		s, err := Open(local)
		require.NoError(t, err)
		assert.False(t, s.Shared(), local)
		s.SetSharing(SharingAlways)
		assert.True(t, s.Shared())
		sub, err := s.Sub("scope")
		require.NoError(t, err)
		assert.False(t, sub.Shared(), "it is not there")
	}

	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("bindfs is not installed")
	}
	behind, at := t.TempDir(), t.TempDir()
	if out, err := exec.Command("bindfs", behind, at).CombinedOutput(); err != nil {
		t.Skipf("bindfs: %s", out)
	}
	defer func() { _ = exec.Command("fusermount3", "-u", at).Run() }()
	s, err := Open(at)
	require.NoError(t, err)
	assert.True(t, s.Shared())
	sub, err := s.Sub("scope")
	require.NoError(t, err)
	require.NoError(t, sub.MkdirAll("p"))
	assert.True(t, sub.Shared())
	s.SetSharing(SharingNever)
	assert.False(t, s.Shared())
	never, err := s.Sub("scope")
	require.NoError(t, err)
	assert.False(t, never.Shared())
}

// over writes text into a file at an offset, as a machine does that believes this to be the end of the file.
func over(t *testing.T, s *Storage, text string, at int64) {
	t.Helper()
	f, err := os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestSharedAppend: between our look at the end of the file and the end of our write, another machine appends.
func TestSharedAppend(t *testing.T) {
	const (
		one   = "one\n"
		data  = "{ours a}\n{ours b}\n{ours c}\n"
		short = "{theirs}\n"
		long  = "{theirs, which is a line that is longer than all of ours together}\n"
	)
	write := func(fd int, p []byte) (int, error) { return unix.Write(fd, p) }
	for name, test := range map[string]struct {
		write func(t *testing.T, s *Storage, p []byte)
		want  string
		stale bool
	}{
		"nobody": {func(t *testing.T, s *Storage, p []byte) { over(t, s, string(p), 4) }, one + data, false},
		"before us, where the server knows the end": {func(t *testing.T, s *Storage, p []byte) {
			over(t, s, short, 4)
			over(t, s, string(p), 4+int64(len(short)))
		}, one + short + data, false},
		"under us, and longer": {func(t *testing.T, s *Storage, p []byte) {
			over(t, s, long, 4)
			over(t, s, string(p), 4)
		}, one + data + long[len(data):], false},
		"over our first line": {func(t *testing.T, s *Storage, p []byte) {
			over(t, s, string(p), 4)
			over(t, s, "{theirs 2}\n", 4)
		}, one + "{theirs 2}\n" + "urs b}\n" + strings.Repeat(" ", 8) + "\n", true},
		"over our second line": {func(t *testing.T, s *Storage, p []byte) {
			over(t, s, string(p), 4)
			over(t, s, short, 4+9)
		}, one + "{ours a}\n" + short + strings.Repeat(" ", 8) + "\n", true},
		"and cut the file": {func(t *testing.T, s *Storage, p []byte) {
			over(t, s, string(p), 4)
			require.NoError(t, os.Truncate(pathOf(s, "x.jsonl"), 4+12))
		}, one, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t)
			s.SetSharing(SharingAlways)
			writeDisk(t, s, "x.jsonl", one)
			sys := kernel
			sys.write = func(_ int, p []byte) (int, error) {
				test.write(t, s, p)
				return len(p), nil
			}
			before := descriptors(t)
			_, err := s.appendWith(sys, "x.jsonl", []byte(data))
			if test.stale {
				assert.ErrorIs(t, err, storage.ErrStale)
			} else {
				assert.NoError(t, err)
			}
			assert.Equal(t, test.want, readDisk(t, s, "x.jsonl"))
			assert.LessOrEqual(t, descriptors(t), before)
		})
	}
	t.Run("a local directory is not read back", func(t *testing.T) {
		s := openTemp(t)
		writeDisk(t, s, "x.jsonl", one)
		sys := kernel
		sys.write = func(fd int, p []byte) (int, error) {
			n, err := write(fd, p)
			over(t, s, long, 4)
			return n, err
		}
		_, err := s.appendWith(sys, "x.jsonl", []byte(data))
		assert.NoError(t, err)
	})
}

// TestSharedLocks: of a lock in a shared directory neither the clock nor the PID tells whether it is stale. What does is
// that it stays as it is.
func TestSharedLocks(t *testing.T) {
	now := time.Now().UnixMilli()
	dead := deadPid(t)
	for name, text := range map[string]string{
		"a process that is not there, an hour ago": fmt.Sprintf("%d:%d\n", dead, now-3_600_000),
		"an hour from now":                         fmt.Sprintf("%d:%d\n", dead, now+3_600_000),
		"our own PID, an hour ago":                 fmt.Sprintf("%d:%d\n", os.Getpid(), now-3_600_000),
		"nothing yet":                              "",
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t)
			s.SetSharing(SharingAlways)
			writeDisk(t, s, "x.jsonl", "one\n")
			lock := filepath.Join(s.Path(), ".x.jsonl.lock")
			require.NoError(t, os.WriteFile(lock, []byte(text), 0o600))
			old := time.Now().Add(-time.Hour)
			require.NoError(t, os.Chtimes(lock, old, old))
			for range 2 {
				_, err := s.Lock(t.Context(), "x.jsonl")
				require.ErrorIs(t, err, storage.ErrLocked)
			}
			seen := s.locks.foreign["x.jsonl"]
			seen.since = time.Now().Add(-lockForeign)
			s.locks.foreign["x.jsonl"] = seen
			unlock := storagetest.Lock(t, s, "x.jsonl")
			assert.Empty(t, s.locks.foreign)
			require.NoError(t, unlock())
		})
	}
}
