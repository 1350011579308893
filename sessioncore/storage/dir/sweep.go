package dir

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// A process that is killed leaves the temporary file behind that it was writing. The next replacement in the directory
// removes it: a temporary file is locked (flock) as long as its process lives, wherever that is.

const (
	// sweepAge is how old a temporary file must be: far more than the moment between its creation and its lock.
	sweepAge = time.Minute
	// sweepEvery is how often a directory is looked through, as it may be large.
	sweepEvery = time.Hour
)

// sweeps says when directories were looked through last.
type sweeps struct {
	mu sync.Mutex // guards at
	at map[storage.Token]time.Time
}

// due reports whether a directory has to be looked through now.
func (s *sweeps) due(dir storage.Token) bool {
	key := storage.Token{Device: dir.Device, Inode: dir.Inode}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.at[key]; ok && time.Since(at) < sweepEvery {
		return false
	}
	if s.at == nil {
		s.at = map[storage.Token]time.Time{}
	}
	s.at[key] = time.Now()
	return true
}

// sweep removes the temporary files of dead processes from the directory. An error leaves them there.
func (p nameAt) sweep() {
	fd, err := unix.Openat(p.dirfd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	dir := os.NewFile(uintptr(fd), p.name)
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, base := range names {
		if storage.IsTemporaryName(base) && p.removeStale(base) {
			slog.Info("a temporary file of a killed process was removed", "file", base, "beside", p.name)
		}
	}
}

// removeStale removes a temporary file if its process is dead.
func (p nameAt) removeStale(base string) bool {
	// O_NONBLOCK, as the name may be that of a pipe.
	fd, err := unix.Openat(p.dirfd, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	st, err := fstat(fd)
	if err != nil || st.Kind != storage.KindFile || time.Since(st.ModTime()) < sweepAge {
		return false
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return false
	}
	at := nameAt{dirfd: p.dirfd, base: base, name: p.name}
	return at.checkSame(st.Token) == nil && unix.Unlinkat(p.dirfd, base, 0) == nil
}

// setAside gives the file a name by which sweep does not know it. From the exchange of the two names on, it is that of
// the replaced file, in which somebody's lines may be that are nowhere else.
func (t *temporary) setAside() error {
	base := storage.AsideName(t.base)
	if err := kernel.renameNew(t.dirfd, t.tempBase, base); err != nil {
		return t.fail("rename the replacement of", err)
	}
	t.tempBase = base
	return nil
}
