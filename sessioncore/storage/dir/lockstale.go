package dir

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// isStale reports whether the existing lock, with this content, is stale. In a shared directory the clocks of two machines may
// differ, and two processes have one PID: there only time that passed here counts.
func (l *lockFile) isStale(text string, st storage.Stat) bool {
	watched := time.Since(l.storage.locks.seenSince(l.name, text, st.Token))
	h := l.holderOf(text, st.ModTime())
	switch {
	case st.Size == 0 && st.Modified == 0: // see giveUp
		return true
	case l.shared():
		return h != holderLives && watched > lockForeign
	case h == holderUnclear:
		return watched > lockWatch
	}
	return h == holderGone
}

// holderOf judges the holder of a lock by its content (docs/format.md, The client's lock). A malformed lock may still
// be being written, and so may one without its newline, whose number may be cut short.
func (l *lockFile) holderOf(text string, modified time.Time) holder {
	pid, millis, ok := lockContent(text)
	if ok {
		made := time.UnixMilli(millis)
		if modified.After(made) {
			made = modified
		}
		h := l.processHolds(pid, made)
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

// processHolds judges whether a process holds a lock that was made at a time. The caller must hold the FIFO mutex of
// the name, so that no lock of this process is held under it.
func (l *lockFile) processHolds(pid int, made time.Time) holder {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		if l.dir.remote || !l.isNobodys(pid) {
			return foreignHolds(made)
		}
		return holderGone
	}
	// A second, since the clock of the time in the lock may have been adjusted.
	if start, ok := startOf(pid); ok && start.After(made.Add(time.Second)) {
		return holderUnclear // the PID was given to another process
	}
	if pid == os.Getpid() {
		return foreignHolds(made) // that of another container, a copy of one of ours, or one that could not be removed
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

// isNobodys is isNobodys with its first answer for good: a lock names one process. Waiters look at a lock every few
// milliseconds, and looking through all processes of a busy machine takes longer than that. A holder that is gone does not come
// back, and one that ends later is judged by the age of its lock.
func (l *lockFile) isNobodys(pid int) bool {
	answer, known := l.nobody[pid]
	if !known {
		answer = isNobodys(pid)
		l.nobody = map[int]bool{pid: answer}
	}
	return answer
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
		who, filepath.Join(l.storage.path, storage.Dir(l.name), l.base))
}
