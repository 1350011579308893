//go:build linux

package dir

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage/storagetest"
)

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

// FuzzLockContent: what is taken for a lock says which process and when, in the form in which locks are written; a lock
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
		if pid <= 0 || millis < 0 || len(text) > lockSize {
			t.Fatalf("%q: %d, %d", text, pid, millis)
		}
		written := fmt.Sprintf("%d:%d\n", pid, millis)
		if p, m, ok := lockContent(written); !ok || p != pid || m != millis {
			t.Fatalf("%q is written %q, which is %d, %d, %v", text, written, p, m, ok)
		}
		short := text[:cut%uint(len(text)+1)]
		if p, _, ok := lockContent(short); ok && p != pid {
			t.Fatalf("%q: %d, but cut to %q: %d", text, pid, short, p)
		}
		if strings.Count(text, ":") != 1 {
			t.Fatalf("%q", text)
		}
	})
}
