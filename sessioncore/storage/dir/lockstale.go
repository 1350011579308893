package dir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
)

// lockWatch is how long a doubtful lock must stay unchanged to be stale: half of the time that
// waiters wait. Locks are held for milliseconds.
const lockWatch = storage.LockLimit / 2

// lockForeign is the minimum age of a stale lock of a process that may be in another PID namespace or
// on another machine: more than the longest rewrite of a session takes.
const lockForeign = 10 * time.Second

// initialPidNamespace is the PID namespace that sees the processes of all others.
const initialPidNamespace = "pid:[4026531836]"

// holder is a judgement of a lock's holder.
type holder int

const (
	holderLives   holder = iota
	holderUnclear        // the lock is stale if it stays unchanged for lockWatch
	holderGone
)

// isStale reports whether a lock with this content is stale. In a shared directory only time that
// passed here counts, as clocks differ and PIDs repeat between machines.
func (l *lockFile) isStale(text string, st storage.Stat) bool {
	watched := time.Since(l.storage.locks.foreignSince(l.name, text, st.Token))
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

// holderOf judges the holder of a lock by its content (docs/format.md, The client's lock). A
// malformed lock, or one without its newline, may still be being written.
func (l *lockFile) holderOf(text string, modified time.Time) holder {
	pid, millis, ok := lockContent(text)
	if ok {
		lockTime := time.UnixMilli(millis)
		if modified.After(lockTime) {
			lockTime = modified
		}
		h := l.processHolds(pid, lockTime)
		if h == holderLives || strings.HasSuffix(text, "\n") {
			return h
		}
	}
	age := time.Since(modified)
	switch {
	case age > lockYoung:
		return holderGone
	case age < 0: // the clocks differ
		return holderUnclear
	}
	return holderLives
}

// processHolds judges whether a process holds a lock of a time. The caller must hold the FIFO mutex
// of the name, so that no lock of this process is meant.
func (l *lockFile) processHolds(pid int, lockTime time.Time) holder {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		if l.remote() || !l.isOrphan(pid) {
			return foreignHolds(lockTime)
		}
		return holderGone
	}
	// A second, as the clock may have been adjusted.
	start, ok := startOf(pid)
	if ok && start.After(lockTime.Add(time.Second)) {
		return holderUnclear // the PID was given to another process
	}
	if pid == os.Getpid() {
		return foreignHolds(lockTime) // another container's, of a copy of ours, or one that could not be removed
	}
	return holderLives
}

// foreignHolds judges a holder that cannot be seen from here by the lock's age.
func foreignHolds(lockTime time.Time) holder {
	if time.Since(lockTime).Abs() < lockForeign {
		return holderLives
	}
	return holderUnclear
}

// isOrphan caches isOrphan's first answer: a lock names one process, waiters inspect it every few
// milliseconds, and the scan of all processes takes longer. A process that ends later is judged by
// age.
func (l *lockFile) isOrphan(pid int) bool {
	answer, known := l.orphan[pid]
	if !known {
		answer = isOrphan(pid)
		l.orphan = map[int]bool{pid: answer}
	}
	return answer
}

// isOrphan reports whether no process of this machine, in any PID namespace, has a PID that is free
// in ours. Only the initial namespace can tell.
func isOrphan(pid int) bool {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || name != initialPidNamespace {
		return false
	}
	all := proc.Processes("/proc")
	wanted := strconv.Itoa(pid)
	for _, process := range all {
		pids := proc.Field(process.Read("status"), "NSpid") // in each of its namespaces
		if slices.Contains(strings.Fields(pids), wanted) {
			return false
		}
	}
	return len(all) > 0
}

// lockContent parses a lock: the process, and the time in milliseconds since the epoch.
func lockContent(text string) (pid int, millis int64, ok bool) {
	if len(text) > lockSize {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ":")
	if !allDigits(first) || !allDigits(second) {
		return 0, 0, false
	}
	millis, _ = strconv.ParseInt(second, 10, 64)
	n, err := strconv.ParseInt(first, 10, 32)
	isPID := err == nil && n > 0 // 0 has another meaning for kill
	return int(n), millis, isPID
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// heldBy describes the holder of the existing lock, with a hint for a lock without one.
func (l *lockFile) heldBy(text string) string {
	holder := "an unknown process"
	pid, _, ok := lockContent(text)
	if ok {
		holder = fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf(" (held by %s; if no client or mount is writing to the session, remove %s)",
		holder, filepath.Join(l.storage.path, storage.Dir(l.name), l.base))
}
