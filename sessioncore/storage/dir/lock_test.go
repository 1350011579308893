//go:build linux

package dir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/proc"
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

// TestLockIsTheClients: the lock file has the client's name and content, and the outer lock is that of its path.
func TestLockIsTheClients(t *testing.T) {
	s := openTemp(t)
	require.NoError(t, s.MkdirAll("p/q"))
	unlock := storagetest.Lock(t, s, "p/q/x.jsonl")
	m := regexp.MustCompile(`^([0-9]+):([0-9]+)\n$`).FindStringSubmatch(readDisk(t, s, "p/q/.x.jsonl.lock"))
	require.NotNil(t, m)
	assert.Equal(t, strconv.Itoa(os.Getpid()), m[1])
	ms, err := strconv.ParseInt(m[2], 10, 64)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), time.UnixMilli(ms), storagetest.Generous)
	assert.Equal(t, uint32(0o600), storagetest.Stat(t, s, "p/q/.x.jsonl.lock").Mode)
	_, err = proc.TryLock(gateOf(pathOf(s, "p/q")))
	require.ErrorIs(t, err, proc.ErrHeld)
	require.NoError(t, unlock())
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// TestLockLeftBehind: who could not remove his lock is not kept from his own session.
func TestLockLeftBehind(t *testing.T) {
	for _, where := range []string{"local", "shared"} {
		if os.Geteuid() == 0 {
			childtest.RunAsNobody(t, "left", where)
		} else {
			require.NoError(t, childLeft([]string{where}))
		}
	}
}

func TestLockHolder(t *testing.T) {
	now := time.Now()
	old, future := now.Add(-time.Hour), now.Add(time.Hour)
	dead, live, own := deadPid(t), os.Getppid(), os.Getpid()
	started, ok := startOf(live)
	require.True(t, ok)
	require.WithinDuration(t, now, started, time.Hour)
	before := started.Add(-time.Hour)
	l := &lockFile{nameAt: nameAt{dir: -1}}
	gone, goneLater := holderGone, holderGone
	if !isOrphan(dead) { // in a container
		gone, goneLater = holderLives, holderUnclear
	}
	for _, test := range []struct {
		text     string
		modified time.Time
		want     holder
	}{
		{fmt.Sprintf("%d:1\n", dead), now, gone},
		{fmt.Sprintf("%d:1\n", dead), future, goneLater},
		{fmt.Sprintf("%d:%d\n", live, started.UnixMilli()), before, holderLives},
		{fmt.Sprintf("%d:1\n", live), now, holderLives},
		{fmt.Sprintf("%d:%d\n", live, before.UnixMilli()), before, holderUnclear},
		{fmt.Sprintf("%d:%d\n", own, now.UnixMilli()), now, holderLives},
		{fmt.Sprintf("%d:%d\n", own, old.UnixMilli()), old, holderUnclear},
		{"1:1\n", now, holderLives}, // for a plain user: EPERM, which is a living process
		{fmt.Sprintf("%d:1", dead), now, holderLives},
		{fmt.Sprintf("%d:1", dead), old, holderGone},
		{fmt.Sprintf("%d:%d", live, now.UnixMilli()), old, holderLives},
		{"", now, holderLives},
		{"", old, holderGone},
		{"", future, holderUnclear},
		{"garbage\n", now, holderLives},
		{"garbage\n", old, holderGone},
		{"0:1\n", now, holderLives}, // kill(0) would be our own group
		{"0:1\n", old, holderGone},
	} {
		if test.modified == now {
			test.modified = time.Now() // what has no process is trusted for a moment only
		}
		assert.Equal(t, test.want, l.holderOf(test.text, test.modified), "%q %s", test.text, test.modified)
	}
}

// lockFileOf is an attempt to take the lock of x.jsonl.
func lockFileOf(t *testing.T, s *Storage) *lockFile {
	t.Helper()
	p, err := s.openParent("x.jsonl")
	require.NoError(t, err)
	t.Cleanup(p.close)
	return &lockFile{nameAt: p.beside(".x.jsonl.lock")}
}

// TestAbandonedLocks: locks that nobody will ever remove, though they name a process or a time that is there, are
// broken by the first who waits for them.
func TestAbandonedLocks(t *testing.T) {
	s := openTemp(t)
	now := time.Now()
	started, ok := startOf(os.Getppid())
	require.True(t, ok)
	before, past := started.Add(-time.Hour), now.Add(-lockForeign)
	for name, lock := range map[string]struct {
		text     string
		modified time.Time
	}{
		"of a PID that another process got": {fmt.Sprintf("%d:%d\n", os.Getppid(), before.UnixMilli()), before},
		"of a process that has ended":       {fmt.Sprintf("%d:%d\n", deadPid(t), now.UnixMilli()), now},
		"of our PID":                        {fmt.Sprintf("%d:%d\n", os.Getpid(), past.UnixMilli()), past},
		"malformed, from the future":        {"garbage", now.Add(time.Hour)},
		"empty, from the future":            {"", now.Add(time.Hour)},
		"empty, which gets old meanwhile":   {"", now},
		"malformed and old":                 {"\x00\xff", now.Add(-time.Hour)},
	} {
		writeDisk(t, s, ".x.jsonl.lock", lock.text)
		require.NoError(t, os.Chtimes(pathOf(s, ".x.jsonl.lock"), time.Time{}, lock.modified))
		unlock, err := storagetest.LockPatiently(s, "x.jsonl")
		require.NoError(t, err, name)
		require.NoError(t, unlock(), name)
	}
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// TestLockOfAnotherNamespace: a PID that is nobody's here may be that of a process that lives in a container.
func TestLockOfAnotherNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes a PID namespace, so root")
	}
	s := openTemp(t)
	pid := 30_000
	for !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		pid++
	}
	lock := pathOf(s, ".x.jsonl.lock")
	cmd := exec.Command("sh", "-c", `mount -t proc proc /proc && echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid &&
		sh -c 'printf "%s:%s\n" $$ $(date +%s%3N) > "$1"; echo $$; read line' sh "$2"; :`, "sh", strconv.Itoa(pid), lock)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	if err := cmd.Start(); err != nil {
		t.Skip("no PID namespace can be made here: ", err)
	}
	defer func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(pid), line)

	before := readDisk(t, s, ".x.jsonl.lock")
	_, err = s.Lock(t.Context(), "x.jsonl")
	assert.ErrorIs(t, err, storage.ErrLocked)
	assert.Equal(t, before, readDisk(t, s, ".x.jsonl.lock"))
	past := time.Now().Add(-lockForeign) // no lock is held for so long
	writeDisk(t, s, ".x.jsonl.lock", fmt.Sprintf("%d:%d\n", pid, past.UnixMilli()))
	require.NoError(t, os.Chtimes(lock, time.Time{}, past))
	unlock, err := storagetest.LockPatiently(s, "x.jsonl")
	require.NoError(t, err)
	require.NoError(t, unlock())
}

func TestLockOfALivingProcessIsRespected(t *testing.T) {
	s := openTemp(t)
	pid, end := childtest.Start(t, "lockfile", s.Path(), "x.jsonl")
	before := readDisk(t, s, ".x.jsonl.lock")
	require.Contains(t, before, strconv.Itoa(pid))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(pathOf(s, ".x.jsonl.lock"), long, long))

	_, err := s.Lock(t.Context(), "x.jsonl")
	assert.ErrorIs(t, err, storage.ErrLocked)
	assert.ErrorContains(t, err, fmt.Sprintf("held by process %d; ", pid))
	assert.ErrorContains(t, err, "remove "+pathOf(s, ".x.jsonl.lock"))
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

// TestStrangeLock: a lock that is not a regular file is kept, and blocks us no longer than any lock.
func TestStrangeLock(t *testing.T) {
	s := openTemp(t)
	path := pathOf(s, ".x.jsonl.lock")
	writeDisk(t, s, "target", "garbage")
	for name, create := range map[string]func() error{
		"link":     func() error { return os.Symlink("target", path) },
		"dangling": func() error { return os.Symlink("nothing", path) },
		"dir":      func() error { return os.Mkdir(path, 0o700) },
		"pipe":     func() error { return unix.Mkfifo(path, 0o600) },
	} {
		require.NoError(t, create(), name)
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

	})
}
