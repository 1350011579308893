package dir

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/procfs"
	"sessionfs/sessioncore/storage"
)

// lockWatch is how long a lock that may be stale must stay as it is while we look: half of how long waiters wait, so
// that one that is stale is broken in time. Locks are held for milliseconds.
const lockWatch = storage.LockLimit / 2

// lockForeign is how old a lock must be before it can be stale if its PID may be that of a process that cannot be seen
// from here, in another PID namespace or on another machine: longer than the longest rewrite of a session.
const lockForeign = 10 * time.Second

// initialPidNamespace is the name of the PID namespace of a machine, the one that sees the processes of all others.
const initialPidNamespace = "pid:[4026531836]"

// holder is what can be known about the holder of a lock.
type holder int

const (
	holderLives   holder = iota
	holderUnclear        // the lock is stale if it stays as it is for lockWatch
	holderGone
)

// seenLock is a lock as it was when we first saw it like that.
type seenLock struct {
	text    string
	state   storage.Token
	since   time.Time
	nobodys func(pid int) bool // what isNobodys answered the first time
}

func newSeenLock(text string, state storage.Token) seenLock {
	return seenLock{text, state, time.Now(), onceFor(isNobodys)}
}

// onceFor returns f with its first answer for good: a lock names one process. Waiters look at a lock every few milliseconds,
// and looking through all processes of a busy machine takes longer than that. A holder that is gone does not come back, and
// one that ends later is judged by the age of its lock.
func onceFor(f func(pid int) bool) func(pid int) bool {
	var once sync.Once
	var answer bool
	return func(pid int) bool {
		once.Do(func() { answer = f(pid) })
		return answer
	}
}

// isStale reports whether the existing lock, open as fd and with this content, is stale. In a shared directory the clocks
// of two machines may differ, and two processes have one PID: there only time that passed here counts.
func (l *lockFile) isStale(fd int, text string, st storage.Stat) bool {
	shared := l.shared()
	if !shared && ourLocks.isCopy(l.base, text, l.owner.Token) {
		return true
	}
	if shared {
		l.seen = l.storage.locks.sighting(l.of)
	}
	if l.seen.text != text || l.seen.state != st.Token {
		l.seen = newSeenLock(text, st.Token)
		if shared {
			l.storage.locks.see(l.of, l.seen)
		}
	}
	h := holderOf(text, st.ModTime(), fd, l.seen.nobodys)
	if shared {
		return h != holderLives && time.Since(l.seen.since) > lockForeign
	}
	switch h {
	case holderGone:
		return true
	case holderUnclear:
		return time.Since(l.seen.since) > lockWatch
	}
	return false
}

// holderOf judges the holder of a lock by its content (docs/format.md, The client's lock). A malformed lock may still
// be being written, and so may one without its newline, whose number may be cut short. nobodys is isNobodys.
func holderOf(text string, modified time.Time, fd int, nobodys func(pid int) bool) holder {
	pid, millis, ok := lockContent(text)
	if ok {
		h := processHolds(pid, later(time.UnixMilli(millis), modified), fd, nobodys)
		if h == holderLives || strings.HasSuffix(text, "\n") {
			return h
		}
	}
	switch age := time.Since(modified); {
	case age > lockYoung:
		return holderGone
	case age < 0: // the clocks differ
		return holderUnclear
	}
	return holderLives
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// processHolds judges whether a process holds a lock that was made at a time. The caller must hold the FIFO mutex of
// the lock, so that the lock is not one of this process.
func processHolds(pid int, made time.Time, fd int, nobodys func(pid int) bool) holder {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		if isRemote(fd) || !nobodys(pid) {
			return foreignHolds(made)
		}
		return holderGone
	}
	// A second, since the clock of the time in the lock may have been adjusted.
	if start, ok := startOf(pid); ok && start.After(made.Add(time.Second)) {
		return holderUnclear // the PID was given to another process
	}
	if pid == os.Getpid() {
		return foreignHolds(made) // or this process could not remove it
	}
	return holderLives
}

// foreignHolds judges the holder of a lock that was made at a time, if the holder cannot be seen from here.
func foreignHolds(made time.Time) holder {
	if time.Since(made).Abs() < lockForeign {
		return holderLives
	}
	return holderUnclear
}

// isNobodys reports whether no process of this machine, in whatever PID namespace, has a PID that none in ours has.
// Only the initial namespace can tell.
func isNobodys(pid int) bool {
	if name, err := os.Readlink("/proc/self/ns/pid"); err != nil || name != initialPidNamespace {
		return false
	}
	all := procfs.Processes("/proc")
	return len(all) > 0 && !slices.ContainsFunc(all, func(p procfs.Process) bool {
		return slices.Contains(strings.Fields(procfs.Field(p.Read("status"), "NSpid")), strconv.Itoa(pid))
	})
}

// lockContent parses a lock: the process, and when it took the lock, in milliseconds since the epoch. ok is false if
// the lock is malformed.
func lockContent(text string) (pid int, millis int64, ok bool) {
	first, second, found := strings.Cut(strings.TrimSuffix(text, "\n"), ":")
	if !found || len(text) > lockSize || !allDigits(first) || !allDigits(second) {
		return 0, 0, false
	}
	millis, _ = strconv.ParseInt(second, 10, 64)
	// A PID is a positive 32-bit number; 0 has another meaning for kill.
	n, err := strconv.ParseInt(first, 10, 32)
	return int(n), millis, err == nil && n > 0 && n <= math.MaxInt32
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// heldBy says who holds the existing lock, and how to get out if nobody does.
func (l *lockFile) heldBy(text string) string {
	who := "an unknown process"
	if pid, _, ok := lockContent(text); ok {
		who = fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf(" (held by %s; if no client or mount is writing to the session, remove %s)",
		who, filepath.Join(l.root, filepath.FromSlash(path.Dir(l.name)), l.base))
}
