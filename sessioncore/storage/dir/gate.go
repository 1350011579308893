package dir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

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
