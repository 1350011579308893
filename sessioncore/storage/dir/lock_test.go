//go:build linux

package dir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// gateOf is the path of the outer lock of x.jsonl in a directory.
func gateOf(dir string) string { return filepath.Join(dir, ".x.jsonl.lock.os") }

// requireFree requires that nobody holds the lock of x.jsonl.
func requireFree(t *testing.T, s *Storage) {
	t.Helper()
	for _, dir := range s.Paths() {
		l, err := proc.TryLock(gateOf(dir))
		require.NoError(t, err, dir)
		l.Release()
	}
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// requireCancelled requires that the wait for the lock of x.jsonl ends with its context.
func requireCancelled(t *testing.T, s *Storage) {
	t.Helper()
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Lock(soon, "x.jsonl")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestLockIsTheClients: the lock file has the client's name and content, and the outer lock is that of its path.
func TestLockIsTheClients(t *testing.T) {
	s := openTemp(t, "p/q/")
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

// TestLockLeftBehind: a writer that could not remove its lock, in a directory that was read-only for a moment, may write to its
// session.
func TestLockLeftBehind(t *testing.T) {
	for _, sharing := range []Sharing{SharingNever, SharingAlways} {
		s := openPublic(t)
		s.SetSharing(sharing)
		asNobody(t, func() {
			for _, mode := range []os.FileMode{0o500, 0} {
				unlock, err := s.Lock(t.Context(), "x.jsonl")
				require.NoError(t, err)
				require.NoError(t, os.Chmod(s.Path(), mode))
				require.ErrorIs(t, unlock(), os.ErrPermission)
				require.NoError(t, os.Chmod(s.Path(), 0o700))
				require.FileExists(t, pathOf(s, ".x.jsonl.lock"))
				unlock, err = s.Lock(t.Context(), "x.jsonl")
				require.NoError(t, err)
				require.NoError(t, unlock())
			}
		}, s.Path())
	}
}

// TestLockHolder: a lock whose holder lives is kept; one that nobody will ever remove, though it names a process or a time that is
// there, is broken by the first waiter.
func TestLockHolder(t *testing.T) {
	now := time.Now()
	old := now.Add(-time.Hour)
	future := now.Add(time.Hour)
	past := now.Add(-lockForeign)
	dead := deadPid(t)
	live := os.Getppid()
	own := os.Getpid()
	started, ok := startOf(live)
	require.True(t, ok)
	require.WithinDuration(t, now, started, time.Hour)
	before := started.Add(-time.Hour)
	gone := holderGone
	goneLater := holderGone
	if !isOrphan(dead) { // in a container
		gone = holderLives
		goneLater = holderUnclear
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
		{fmt.Sprintf("%d:%d\n", own, past.UnixMilli()), past, holderUnclear},
		{"1:1\n", now, holderLives}, // for a plain user: EPERM, which is a living process
		{fmt.Sprintf("%d:1", dead), now, holderLives},
		{fmt.Sprintf("%d:1", dead), old, holderGone},
		{fmt.Sprintf("%d:%d", live, now.UnixMilli()), old, holderLives},
		{"", now, holderLives},
		{"", old, holderGone},
		{"", future, holderUnclear},
		{"garbage\n", now, holderLives},
		{"garbage\n", old, holderGone},
		{"\x00\xff", old, holderGone},
		{"0:1\n", now, holderLives}, // kill(0) would be our own group
		{"0:1\n", old, holderGone},
	} {
		if test.modified == now {
			test.modified = time.Now() // what has no process is trusted for a moment only
		}
		s := openTemp(t)
		require.Equal(t, test.want, lockFileOf(t, s).holderOf(test.text, test.modified), "%q %s", test.text, test.modified)
		if test.want != holderLives {
			writeDisk(t, s, ".x.jsonl.lock", test.text)
			require.NoError(t, os.Chtimes(pathOf(s, ".x.jsonl.lock"), time.Time{}, test.modified))
			require.NoError(t, storagetest.Lock(t, s, "x.jsonl")(), "%q", test.text)
			assert.Empty(t, storagetest.Leftovers(t, s.Path()))
		}
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

// TestLockOfAnotherNamespace: a PID that is nobody's here may be that of a process that lives in a container.
func TestLockOfAnotherNamespace(t *testing.T) {
	needRoot(t)
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
	require.NoError(t, storagetest.Lock(t, s, "x.jsonl")())
}

// TestLockOfALivingProcessIsRespected: a lock of a living process stays however old it is; the error names the process and the file.
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
	requireCancelled(t, s)
	end()
	require.NoError(t, storagetest.Lock(t, s, "x.jsonl")())
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

// TestUnlockLeavesAnothersLock: an unlock tells that the lock was broken meanwhile, and does not remove another process's lock.
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

// TestGateKeepsTheOrder: waiters for a FIFO mutex get it in the order of their calls, and none waits longer than its limit.
func TestGateKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g storage.FIFOMutexes
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

// TestGates: a client's outer lock is respected at each path under which clients know the directory, and each lock of ours takes
// all of them or none.
func TestGates(t *testing.T) {
	s := openTemp(t)
	top := t.TempDir()
	link := filepath.Join(top, "link")
	missing := filepath.Join(top, "missing")
	require.NoError(t, os.Symlink(s.Path(), link))
	s.AlsoAt(link, s.Path(), link+"/", top, missing)
	require.Equal(t, []string{s.Path(), link}, s.Paths())
	for _, dir := range s.Paths() {
		pid, end := childtest.Start(t, "gate", gateOf(dir))
		_, err := s.Lock(t.Context(), "x.jsonl")
		require.ErrorIs(t, err, storage.ErrLocked)
		require.ErrorContains(t, err, fmt.Sprintf("held by process %d)", pid))
		requireCancelled(t, s)
		require.NoError(t, storagetest.Lock(t, s, "y.jsonl")(), "another session's")
		end()
		requireFree(t, s)
	}
	unlock := storagetest.Lock(t, s, "x.jsonl")
	for _, dir := range s.Paths() {
		_, err := proc.TryLock(gateOf(dir))
		require.ErrorIs(t, err, proc.ErrHeld)
	}
	require.FileExists(t, pathOf(s, ".x.jsonl.lock"))
	require.NoError(t, unlock())
	requireFree(t, s)
}

// TestGateAndLockFileShareTheWait: waiting for both takes no longer than waiting for one. The clock is synctest's.
func TestGateAndLockFileShareTheWait(t *testing.T) {
	s := openTemp(t)
	_, end := childtest.Start(t, "lockfile", s.Path(), "x.jsonl")
	for _, held := range []time.Duration{0, 300 * time.Millisecond, 2 * storage.LockLimit} {
		l, err := proc.TryLock(gateOf(s.Path()))
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			go func() {
				time.Sleep(held)
				l.Release()
			}()
			start := time.Now()
			_, err := s.Lock(t.Context(), "x.jsonl")
			assert.ErrorIs(t, err, storage.ErrLocked)
			assert.Equal(t, storage.LockLimit, time.Since(start))
			time.Sleep(held)
		})
	}
	end()
	requireFree(t, s)
	file := pathOf(s, ".x.jsonl.lock")
	for name, hold := range map[string]func() (release func() error){
		"outer lock": func() func() error {
			l, err := proc.TryLock(gateOf(s.Path()))
			require.NoError(t, err)
			return func() error { l.Release(); return nil }
		},
		"lock file": func() func() error {
			writeDisk(t, s, ".x.jsonl.lock", fmt.Sprintf("%d:%d\n", os.Getppid(), time.Now().UnixMilli()))
			return func() error { return os.Remove(file) }
		},
	} {
		release := hold()
		synctest.Test(t, func(t *testing.T) {
			time.AfterFunc(storage.LockLimit-lockPoll/2, func() { assert.NoError(t, release()) })
			unlock, err := s.Lock(t.Context(), "x.jsonl")
			require.NoError(t, err, "%s: it is free at the limit, before which we may not have run", name)
			require.NoError(t, unlock())
		})
	}
	requireFree(t, s)
}

// TestGateIsGivenBack: a writer that fails to get the lock file gives back the outer lock.
func TestGateIsGivenBack(t *testing.T) {
	s := openTemp(t)
	file := pathOf(s, ".x.jsonl.lock")
	require.NoError(t, os.Mkdir(file, 0o700))
	requireCancelled(t, s)
	require.NoError(t, os.Remove(file))
	requireFree(t, s)

	_, err := s.Lock(t.Context(), "missing/x.jsonl")
	require.ErrorIs(t, err, os.ErrNotExist)
	l, err := proc.TryLock(gateOf(pathOf(s, "missing")))
	require.NoError(t, err)
	l.Release()
}

// TestOneOfManyBreaksTheLock: several waiters that find a stale lock never hold the lock together. Without the FIFO
// mutex, each goroutine behaves like a process of its own.
func TestOneOfManyBreaksTheLock(t *testing.T) {
	const waiters, rounds = 8, 40
	s := openTemp(t)
	dead := fmt.Sprintf("%d:1\n", deadPid(t))
	var inside, got atomic.Int32
	for round := range rounds {
		if round%2 == 0 {
			writeDisk(t, s, ".x.jsonl.lock", dead)
		} else {
			writeDisk(t, s, ".x.jsonl.lock", "")
			require.NoError(t, os.Chtimes(pathOf(s, ".x.jsonl.lock"), time.Time{}, time.Now().Add(-time.Hour)))
		}
		start := make(chan struct{})
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				<-start
				l := lockFileOf(t, s)
				ctx, cancel := context.WithTimeout(context.Background(), storagetest.Generous)
				defer cancel()
				if !assert.NoError(t, l.take(ctx)) {
					return
				}
				got.Add(1)
				assert.Equal(t, int32(1), inside.Add(1), "two are in")
				time.Sleep(100 * time.Microsecond)
				inside.Add(-1)
				assert.NoError(t, l.remove())
			})
		}
		close(start)
		all.Wait()
	}
	assert.Equal(t, int32(waiters*rounds), got.Load())
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// TestBreakStaleLooksAgain: another process took the lock between the check and the removal.
func TestBreakStaleLooksAgain(t *testing.T) {
	s := openTemp(t)
	l := lockFileOf(t, s)
	assert.False(t, l.breakStale(), "there is none any more")
	writeDisk(t, s, ".x.jsonl.lock", fmt.Sprintf("%d:1\n", os.Getppid()))
	assert.False(t, l.breakStale(), "somebody has it now")
	assert.FileExists(t, pathOf(s, ".x.jsonl.lock"))

	writeDisk(t, s, ".x.jsonl.lock", fmt.Sprintf("%d:1\n", deadPid(t)))
	fd, _, err := l.open(unix.O_RDONLY)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(fd, unix.LOCK_EX))
	assert.False(t, l.breakStale(), "another of us is breaking it")
	assert.FileExists(t, pathOf(s, ".x.jsonl.lock"))
	require.NoError(t, unix.Close(fd))
	assert.True(t, l.breakStale())
	assert.NoFileExists(t, pathOf(s, ".x.jsonl.lock"))
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// TestBreakingPutsBackAnothersLock: a program that does not use flock broke the stale lock first and took the lock.
func TestBreakingPutsBackAnothersLock(t *testing.T) {
	s := openTemp(t)
	l := lockFileOf(t, s)
	writeDisk(t, s, "judged", "1:1\n")
	judged := storagetest.Stat(t, s, "judged").Token
	writeDisk(t, s, ".x.jsonl.lock", "2:2\n")
	theirs := storagetest.Stat(t, s, ".x.jsonl.lock").Token
	assert.False(t, l.moveAway(judged))
	assert.True(t, theirs.SameObject(storagetest.Stat(t, s, ".x.jsonl.lock").Token))
	assert.True(t, l.moveAway(theirs))
	assert.False(t, l.moveAway(theirs), "gone already")
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// FuzzLockContent: an accepted lock names a process and a time, in the form in which locks are written; a lock
// that was cut anywhere names no other process than one whose number begins so.
func FuzzLockContent(f *testing.F) {
	for _, text := range []string{"1:1700000000000\n", "1:1", "0:1\n", "-1:1\n", "2147483648:1\n", "007:08\n", "1:\n", ":1\n", "1:2:3\n", " 1:2\n",
		"1:99999999999999999999\n", "\xd9\xa1:1\n", ""} {
		f.Add(text, uint(3))
	}
	f.Fuzz(func(t *testing.T, text string, cut uint) {
		pid, millis, ok := lockContent(text)
		if !ok {
			return
		}
		require.Positive(t, pid, text)
		require.GreaterOrEqual(t, millis, int64(0), text)
		require.LessOrEqual(t, len(text), lockSize)
		require.Equal(t, 1, strings.Count(text, ":"), text)
		written := fmt.Sprintf("%d:%d\n", pid, millis)
		pidAgain, millisAgain, ok := lockContent(written)
		require.True(t, ok, "%q is written %q", text, written)
		require.Equal(t, pid, pidAgain)
		require.Equal(t, millis, millisAgain)
		short := text[:cut%uint(len(text)+1)]
		shortPID, _, isLock := lockContent(short)
		if isLock {
			require.Equal(t, pid, shortPID, "%q, cut to %q", text, short)
		}
	})
}

// requireWriters requires that Writers says so of a file.
func requireWriters(t *testing.T, want storage.WriterState, s *Storage, name string) {
	t.Helper()
	state, err := s.Writers(name)
	require.NoError(t, err)
	require.Equal(t, want, state)
}

// TestWriters: a program with the file open for writing is found, be it of this process or another, and no reader is; our own writes
// leave none.
func TestWriters(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	requireWriters(t, storage.WritersNone, s, "x.jsonl")
	for flags, want := range map[int]storage.WriterState{
		os.O_RDONLY: storage.WritersNone, os.O_WRONLY | os.O_APPEND: storage.WritersPresent, os.O_RDWR: storage.WritersPresent,
	} {
		f, err := os.OpenFile(pathOf(s, "x.jsonl"), flags, 0)
		require.NoError(t, err)
		requireWriters(t, want, s, "x.jsonl")
		require.NoError(t, f.Close())
		requireWriters(t, storage.WritersNone, s, "x.jsonl")
	}

	pid, end := childtest.Start(t, "hold", pathOf(s, "x.jsonl"))
	requireWriters(t, storage.WritersPresent, s, "x.jsonl")
	require.Equal(t, pid, proc.Writer(storagetest.Stat(t, s, "x.jsonl").Token, 0))
	for _, text := range []string{"another\n", "two\n"} {
		_, err := storagetest.Replace(s, "y.jsonl", text)
		require.NoError(t, err)
		requireWriters(t, storage.WritersNone, s, "y.jsonl") // after our own writes
	}
	_, err := s.Append("y.jsonl", []byte("three\n"))
	require.NoError(t, err)
	require.NoError(t, s.Sync("y.jsonl"))
	requireWriters(t, storage.WritersNone, s, "y.jsonl")
	end()
	requireWriters(t, storage.WritersNone, s, "x.jsonl")
}

// TestWritersByOthers: the owner of a file may take a lease; for other users the state is unknown.
func TestWritersByOthers(t *testing.T) {
	needRoot(t)
	s := openPublic(t, "mine.jsonl", "roots.jsonl")
	asNobody(t, func() {
		requireWriters(t, storage.WritersNone, s, "mine.jsonl")
		requireWriters(t, storage.WritersUnknown, s, "roots.jsonl")
	}, pathOf(s, "mine.jsonl"))
}

// TestWritersHoldsNobodyUp: programs can open and write the file while Writers is called continuously, and the SIGIO that the
// kernel sends for that is survived.
func TestWritersHoldsNobodyUp(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "")
	ctx, cancel := context.WithTimeout(t.Context(), storagetest.Generous)
	defer cancel()
	writer := exec.CommandContext(ctx, "sh", "-c", `i=0; while [ $i -lt 300 ]; do echo x >> "$1" || exit 1; i=$((i+1)); done`,
		"sh", pathOf(s, "x.jsonl"))
	require.NoError(t, writer.Start())
	ended := make(chan error, 1)
	go func() { ended <- writer.Wait() }()
	for len(ended) == 0 {
		_, err := s.Writers("x.jsonl")
		require.NoError(t, err)
	}
	require.NoError(t, <-ended)
	assert.Len(t, readDisk(t, s, "x.jsonl"), 600)
}

// TestForeignLease: writers wait for a program that holds a lease, but only for a limited time.
func TestForeignLease(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	f, err := os.Open(pathOf(s, "x.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	_, err = s.Append("x.jsonl", []byte("two\n"))
	assert.ErrorIs(t, err, storage.ErrLocked)
	fd, released := f.Fd(), make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		released <- err
	}()
	require.Eventually(t, func() bool {
		_, err = s.Append("x.jsonl", []byte("two\n"))
		return !errors.Is(err, storage.ErrLocked)
	}, storagetest.Generous, time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, <-released)
	assert.Equal(t, "one\ntwo\n", readDisk(t, s, "x.jsonl"))
}
