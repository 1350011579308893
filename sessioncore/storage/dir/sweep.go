package dir

import (
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// A process that is killed leaves the temporary file behind that it was writing. The next replacement in the directory
// removes it: a temporary file is locked (flock) as long as its process lives, wherever that is. It also removes the link
// of a killed Move, where nothing is beside that any more.

const (
	// sweepAge is how old a temporary file must be: far more than the moment between its creation and its lock. A link
	// must be as old, which is far more than a move takes.
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

// sweepIfDue looks through the directory if it has to be looked through now.
func (p nameAt) sweepIfDue() {
	if st, err := p.dirStat(); err == nil && p.storage.swept.due(st.Token) {
		p.sweep()
	}
}

// sweep removes the temporary files and links of dead processes from the directory. An error leaves them there.
func (p nameAt) sweep() {
	fd, err := unix.Openat(p.dirfd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	dir := os.NewFile(uintptr(fd), p.name)
	defer dir.Close()
	items, _ := dir.ReadDir(-1)
	for _, item := range items {
		switch base := item.Name(); {
		case storage.IsTemporaryName(base):
			if p.removeStale(base) {
				slog.Info("a temporary file of a killed process was removed", "file", base, "beside", p.name)
			}
		case item.Type() == fs.ModeSymlink && !hasBeside(items, base):
			if p.removeLeftLink(base) {
				slog.Info("a link of a killed move was removed", "link", base, "beside", p.name)
			}
		}
	}
}

// hasBeside reports whether there is a file that is called like a name with an ending.
func hasBeside(items []fs.DirEntry, name string) bool {
	return slices.ContainsFunc(items, func(item fs.DirEntry) bool { return strings.HasPrefix(item.Name(), name+".") })
}

// removeLeftLink removes a link if it is one of Move's, and old.
func (p nameAt) removeLeftLink(base string) bool {
	at := nameAt{dirfd: p.dirfd, base: base, name: p.name}
	st, err := at.stat()
	if err != nil || st.Kind != storage.KindLink || time.Since(st.ModTime()) < sweepAge {
		return false
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(p.dirfd, base, buf)
	if err != nil {
		return false
	}
	target, isMoves := strings.CutSuffix(string(buf[:n]), linkMark)
	return isMoves && path.Base(target) == base && unix.Unlinkat(p.dirfd, base, 0) == nil
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
	if err := kernel.renameNew(t.dirfd, t.tempBase, t.dirfd, base); err != nil {
		return t.fail("rename the replacement of", err)
	}
	t.tempBase = base
	return nil
}
