package dir

import (
	"os"
	"sync"

	"sessionfs/sessioncore/storage"
)

// A directory that is copied while a session in it is written to is copied with the lock, and no one gives the copy
// back: it names a process that lives, us. So it is remembered which locks this process made.

// maxLocksMade bounds that memory, at about 150 bytes a file. The copy of a lock that was forgotten is held until
// this process ends.
const maxLocksMade = 10_000

// locksMade are the locks that this process made last, by the name of the lock file.
type locksMade struct {
	mu sync.Mutex // guards at
	at map[string]lockMade
}

type lockMade struct {
	millis int64 // what the lock says of the time
	dir    storage.Token
}

var ourLocks locksMade

// add notes a lock that was just made.
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

// isCopy reports whether a lock in a directory is the copy of one that this process made and gave back. The caller
// is the only one in this process who wants the lock. A process in another container may have our number: its
// lock, too, is one that names us, but one that was made after our last one, for otherwise we would have met it.
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
