//go:build linux

package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// deadPid returns the PID of a process that has ended.
func deadPid(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	require.ErrorIs(t, unix.Kill(cmd.Process.Pid, 0), unix.ESRCH)
	return cmd.Process.Pid
}

func TestLockFileIsTheClients(t *testing.T) {
	s := openTemp(t)
	unlock := storagetest.Lock(t, s, "x.jsonl")
	m := regexp.MustCompile(`^([0-9]+):([0-9]+)\n$`).FindStringSubmatch(readDisk(t, s, ".x.jsonl.lock"))
	require.NotNil(t, m)
	assert.Equal(t, strconv.Itoa(os.Getpid()), m[1])
	ms, err := strconv.ParseInt(m[2], 10, 64)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), time.UnixMilli(ms), storagetest.Generous)
	st := storagetest.Stat(t, s, ".x.jsonl.lock")
	assert.Equal(t, uint32(0o600), st.Mode)
	require.NoError(t, unlock())
	_, err = os.Lstat(pathOf(s, ".x.jsonl.lock"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestLockHolder(t *testing.T) {
	for text, want := range map[string]int{
		"12:1700000000000\n":       12,
		"12:1700000000000":         12,
		"2147483647:0\n":           2147483647,
		"2147483648:0\n":           0,
		"0:1700000000000\n":        0,
		"-1:1700000000000\n":       0,
		"+1:1700000000000\n":       0,
		"1:\n":                     0,
		":1\n":                     0,
		"1\n":                      0,
		"":                         0,
		"1:2\n\n":                  0,
		"1:2:3\n":                  0,
		" 1:2\n":                   0,
		"1:2 \n":                   0,
		"99999999999999999999:1\n": 0,
		"1:" + fmt.Sprintf("%0*d", lockSize, 1) + "\n": 0,
	} {
		pid, ok := lockHolder(text)
		assert.Equal(t, want != 0, ok, "%q", text)
		if ok {
			assert.Equal(t, want, pid, "%q", text)
		}
	}
}

func TestStaleLock(t *testing.T) {
	now := time.Now()
	old, future := now.Add(-time.Hour), now.Add(time.Hour)
	dead, live := deadPid(t), os.Getppid()
	for _, test := range []struct {
		text     string
		modified time.Time
		want     bool
	}{
		{fmt.Sprintf("%d:1\n", dead), now, true},
		{fmt.Sprintf("%d:1\n", dead), future, true},
		{fmt.Sprintf("%d:1\n", live), old, false},
		{"1:1\n", old, false}, // for a plain user: EPERM, which is a living process
		{fmt.Sprintf("%d:1", dead), now, false},
		{fmt.Sprintf("%d:1", dead), old, true},
		{fmt.Sprintf("%d:1", live), old, false},
		{"", now, false},
		{"", old, true},
		{"", future, false},
		{"garbage\n", now, false},
		{"garbage\n", old, true},
		{"0:1\n", now, false}, // kill(0) would be our own group
		{"0:1\n", old, true},
	} {
		assert.Equal(t, test.want, staleLock(test.text, test.modified), "%q", test.text)
	}
}

func TestLockOfADeadProcessIsBroken(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, ".x.jsonl.lock", fmt.Sprintf("%d:%d\n", deadPid(t), time.Now().UnixMilli()))
	unlock, err := storagetest.LockPatiently(s, "x.jsonl")
	require.NoError(t, err)
	assert.Contains(t, readDisk(t, s, ".x.jsonl.lock"), strconv.Itoa(os.Getpid()))
	require.NoError(t, unlock())
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

func TestLockOfALivingProcessIsRespected(t *testing.T) {
	s := openTemp(t)
	pid, end := childtest.Start(t, "lock", s.Path(), "x.jsonl")
	before := readDisk(t, s, ".x.jsonl.lock")
	require.Contains(t, before, strconv.Itoa(pid))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(pathOf(s, ".x.jsonl.lock"), long, long))

	_, err := s.Lock(t.Context(), "x.jsonl")
	assert.ErrorIs(t, err, storage.ErrLocked)
	assert.ErrorContains(t, err, strconv.Itoa(pid))
	assert.Equal(t, before, readDisk(t, s, ".x.jsonl.lock"))
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.Lock(soon, "x.jsonl")
	assert.ErrorIs(t, err, context.DeadlineExceeded)

	end()
	unlock, err := storagetest.LockPatiently(s, "x.jsonl")
	require.NoError(t, err)
	require.NoError(t, unlock())
}

func TestMalformedLock(t *testing.T) {
	s := openTemp(t)
	for _, text := range []string{"", "garbage", "0:0\n", "\x00\xff"} {
		path := pathOf(s, ".x.jsonl.lock")
		// Young: left to whoever may be writing it. A time in the future stays young for all of the wait.
		writeDisk(t, s, ".x.jsonl.lock", text)
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
		soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := s.Lock(soon, "x.jsonl")
		cancel()
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, text, readDisk(t, s, ".x.jsonl.lock"))

		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
		unlock, err := storagetest.LockPatiently(s, "x.jsonl")
		require.NoError(t, err)
		require.NoError(t, unlock())
	}
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// TestMalformedLockGetsOldWhileWaiting: a malformed lock that is too young at first is broken by a later attempt.
func TestMalformedLockGetsOldWhileWaiting(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, ".x.jsonl.lock", "")
	unlock, err := storagetest.LockPatiently(s, "x.jsonl")
	require.NoError(t, err)
	require.NoError(t, unlock())
}

// TestStrangeLock: a lock that is not a regular file is kept, and blocks us no longer than any lock.
func TestStrangeLock(t *testing.T) {
	s := openTemp(t)
	path := pathOf(s, ".x.jsonl.lock")
	writeDisk(t, s, "target", "garbage")
	for name, make := range map[string]func() error{
		"link":     func() error { return os.Symlink("target", path) },
		"dangling": func() error { return os.Symlink("nothing", path) },
		"dir":      func() error { return os.Mkdir(path, 0o700) },
		"pipe":     func() error { return unix.Mkfifo(path, 0o600) },
	} {
		require.NoError(t, make(), name)
		_, err := s.Lock(t.Context(), "x.jsonl")
		assert.ErrorIs(t, err, storage.ErrLocked, name)
		require.NoError(t, os.Remove(path), name)
	}
	assert.Equal(t, "garbage", readDisk(t, s, "target"))
	_, err := os.Lstat(pathOf(s, "nothing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnlockLeavesAnothersLock(t *testing.T) {
	s := openTemp(t)
	path := pathOf(s, ".x.jsonl.lock")
	unlock := storagetest.Lock(t, s, "x.jsonl")
	require.NoError(t, os.Remove(path))
	assert.ErrorIs(t, unlock(), storage.ErrStale, "removed by somebody")

	unlock = storagetest.Lock(t, s, "x.jsonl")
	require.NoError(t, os.Remove(path))
	writeDisk(t, s, ".x.jsonl.lock", "1:1\n")
	assert.ErrorIs(t, unlock(), storage.ErrStale, "and taken")
	assert.Equal(t, "1:1\n", readDisk(t, s, ".x.jsonl.lock"))
}

func TestLockOnAReadOnlyDisk(t *testing.T) {
	s := openTemp(t)
	require.NoError(t, os.Mkdir(pathOf(s, "d"), 0o700))
	if err := unix.Mount("none", pathOf(s, "d"), "tmpfs", unix.MS_RDONLY, ""); err != nil {
		t.Skipf("cannot mount a read-only disk: %v", err)
	}
	defer unix.Unmount(pathOf(s, "d"), unix.MNT_DETACH)
	_, err := s.Lock(t.Context(), "d/x.jsonl")
	assert.ErrorIs(t, err, unix.EROFS)
}

// TestTwoStoragesShareTheQueue: two storages of one directory in one process.
func TestTwoStoragesShareTheQueue(t *testing.T) {
	s := openTemp(t)
	require.NoError(t, os.Mkdir(pathOf(s, "d"), 0o700))
	deeper, err := Open(pathOf(s, "d"))
	require.NoError(t, err)
	defer deeper.Close()
	unlock := storagetest.Lock(t, s, "d/x.jsonl")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = deeper.Lock(ctx, "x.jsonl")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, unlock())
	require.NoError(t, storagetest.Lock(t, deeper, "x.jsonl")())
	assert.Zero(t, fileMutexes.Len(), "no mutex is kept that nobody wants")
}

func TestGateKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g storage.FIFOMutexes[string]
		_, leave, err := g.Lock(t.Context(), "x")
		require.NoError(t, err)
		var order []int // guarded by the FIFO mutex
		for i := range 10 {
			go func() {
				_, leave, err := g.Lock(context.Background(), "x")
				if assert.NoError(t, err) {
					order = append(order, i)
					leave()
				}
			}()
			synctest.Wait() // it is in the queue
		}
		ctx, cancel := storage.WithLimit(t.Context())
		defer cancel()
		start := time.Now()
		_, _, err = g.Lock(ctx, "x")
		assert.ErrorIs(t, err, storage.ErrLocked)
		assert.Equal(t, storage.LockLimit, time.Since(start))
		leave()
		synctest.Wait()
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
		assert.Zero(t, g.Len())
	})
}

// TestWaitErrorIsTheCallers: the caller's own deadline or cause is not reported as ErrLocked.
func TestWaitErrorIsTheCallers(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the reader went away"))
	ctx, done := storage.WithLimit(cancelled)
	defer done()
	assert.ErrorIs(t, storage.WaitError(ctx), context.Canceled)
	assert.NotErrorIs(t, storage.WaitError(ctx), storage.ErrLocked)
}
