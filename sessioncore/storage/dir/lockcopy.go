package dir

import (
	"os"
	"sync"

	"sessionfs/sessioncore/storage"
)

// A directory that is copied while a session in it is written to is copied with the lock, and nobody removes the
// copy: it names a living process, us. So this process remembers which locks it made.

// maxLocksMade bounds that memory; an entry takes about 150 bytes. The copy of a lock that was forgotten is broken after
// lockWatch.
const maxLocksMade = 10_000

// locksMade are the locks that this process made last, by the name of the lock file.
type locksMade struct {
	mu sync.Mutex // guards at
	at map[string]lockMade
}

type lockMade struct {
	millis int64 // the time in the lock, milliseconds since the epoch
	dir    storage.Token
}

var ourLocks locksMade

// add records a lock that was just made.
func (m *locksMade) add(base string, made lockMade) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at = map[string]lockMade{}
	}
	if _, known := m.at[base]; !known && len(m.at) >= maxLocksMade {
		for other := range m.at {
			delete(m.at, other)
			break
		}
	}
	m.at[base] = made
}

// isCopy reports whether a lock in a directory is the copy of one that this process made and removed. The caller must
// hold the FIFO mutex of the lock. A process in another container may have our PID; its lock names us too, but it was
// made after our last one, since otherwise we would have met it.
func (m *locksMade) isCopy(base, text string, dir storage.Token) bool {
	pid, millis, ok := lockContent(text)
	if !ok || pid != os.Getpid() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.at[base]
	return known && (millis < last.millis || millis == last.millis && !dir.SameObject(last.dir))
}
