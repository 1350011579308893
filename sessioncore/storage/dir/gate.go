package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/filelock"
	"sessionfs/sessioncore/storage"
)

// Newer clients append under an outer lock alone, which the operating system keeps (docs/format.md, The client's
// lock). So writers here take both, in the client's order: first the outer one, then the lock file. Both waits together
// end after storage.LockLimit, as long as a client waits for either.

// gateEnding is what the path of the outer lock has behind that of the lock file.
const gateEnding = ".os"

// AlsoAt tells under which other paths clients may know the storage's directory. Clients that go through different
// links have different outer locks, so writers take the one of each path. Paths that lead elsewhere are left out. It
// is called before the storage is used.
func (s *Storage) AlsoAt(paths ...string) {
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil || slices.Contains(s.Paths(), abs) {
			continue
		}
		if real, err := resolvePath(abs); err == nil && real == s.Path() {
			s.links = append(s.links, abs)
		}
	}
}

// Paths returns the absolute paths under which clients may know the directory. The first is Path.
func (s *Storage) Paths() []string { return append([]string{s.Path()}, s.links...) }

// gate is an outer lock: one lock for each path of the directory.
type gate []filelock.Lock

func (g gate) release() {
	for _, l := range g {
		l.Release()
	}
}

// takeGate waits for the outer lock of the lock file name. A path whose lock the system does not let us have is left
// out: the lock file remains, as everywhere before.
func (s *Storage) takeGate(ctx context.Context, name string) (gate, error) {
	paths := s.Paths()
	for i := range paths {
		paths[i] = filepath.Join(paths[i], filepath.FromSlash(name)) + gateEnding
	}
	for {
		g, held, err := tryGate(paths)
		if err != nil || held == "" {
			return g, err
		}
		if !storage.Sleep(ctx, lockPoll) {
			return nil, fmt.Errorf("%w: %s (held by %s)", storage.WaitError(ctx), name, gateHolder(held))
		}
	}
}

// tryGate takes the locks at all paths, or none: then held is the path of one that another has.
func tryGate(paths []string) (g gate, held string, err error) {
	for _, path := range paths {
		l, err := filelock.TryAcquire(path)
		switch {
		case err == nil:
			g = append(g, l)
		case errors.Is(err, filelock.ErrHeld):
			g.release()
			return nil, path, nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
			g.release()
			return nil, "", err // in a moment there may be one again
		}
	}
	return g, "", nil
}

// gateHolder says who holds a lock.
func gateHolder(path string) string {
	if pid := filelock.Holder(path); pid != 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return "a process that cannot be seen from here"
}

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

// Writers reports whether a process has a file open for writing at this moment, as a live client does
// (docs/design.md section 4). Callers must hold Lock(name), so that a writer that takes the lock is not found in the middle
// of its work. It asks for a read lease, which the kernel refuses exactly when the file is open for
// writing anywhere on this machine (docs/format.md, What a running client has open). Without leases, or without the
// permission for one, the state is unknown.
//
// The lease is given up at once. A process that opens the file for writing within these microseconds waits as long
// (with O_NONBLOCK it gets EAGAIN), and we receive SIGIO, which the Go runtime ignores. This process keeps no session
// open for writing except within Append and Replace.
//
// The error is that of Open, or ErrLocked if another program's lease forbids even reading.
func (s *Storage) Writers(name string) (storage.WriterState, error) {
	p, err := s.openParent(name)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer p.close()
	fd, _, err := p.open(unix.O_RDONLY)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer unix.Close(fd)
	return lease(fd), nil
}
