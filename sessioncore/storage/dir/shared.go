package dir

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// A shared directory is one that other machines may write to (docs/design.md section 4, Shared
// directories). There the kernel answers from a cache, writes stay in its cache until the file is
// closed, and O_APPEND means a cached end of the file. So on a shared directory, and there alone,
// state is requested from the server under the lock, the lock and appends are sent to it at once,
// and an append is read back.

// Sharing says whether directories count as shared.
type Sharing uint8

// The values of Sharing.
const (
	SharingDetected Sharing = iota // by the type of the file system
	SharingAlways
	SharingNever
)

// SetSharing sets whether the directory, and those that Sub returns later, count as shared. It is
// called before s is used.
func (s *Storage) SetSharing(how Sharing) { s.sharing = how }

// Shared reports whether the current directory counts as shared. A missing one does not.
func (s *Storage) Shared() bool {
	root, err := s.openDir("")
	if err != nil {
		return false
	}
	defer unix.Close(root)
	return nameAt{storage: s, dir: root}.shared()
}

// shared reports whether the directory of the name counts as shared.
func (p nameAt) shared() bool {
	how := p.storage.sharing
	return how == SharingAlways || how == SharingDetected && p.remote()
}

// remote reports whether the directory of the name is on one of sharedFileSystems.
func (p nameAt) remote() bool { return isShared(p.dir) }

// lookupLifetime is how long the server's state of a file is used: a crawler needs it thousands of
// times a second, and each answer of the server takes a fraction of a millisecond.
const lookupLifetime = 500 * time.Millisecond

// serverLookup is the last name with a state that was requested from the server.
type serverLookup struct {
	mu     sync.Mutex // guards name and at
	name   string
	at     time.Time
	shared sync.Map // bool by device: a server may have to answer that, too
}

// isShared is nameAt.shared, but asks once for each device. It is false after an error, which occurs once more where it
// matters.
func (a *serverLookup) isShared(p nameAt) bool {
	dir, err := fstat(p.dir)
	if err != nil {
		return false
	}
	shared, known := a.shared.Load(dir.Device)
	if !known {
		shared = p.shared()
		a.shared.Store(dir.Device, shared)
	}
	return shared.(bool)
}

// expired reports whether the state of a name must be requested.
func (a *serverLookup) expired(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.name == name && time.Since(a.at) < lookupLifetime {
		return false
	}
	a.name = name
	a.at = time.Now()
	return true
}

// statFresh is stat, but requests the state from the server unless it did so a moment ago.
func (p nameAt) statFresh() (storage.Stat, error) {
	lookup := &p.storage.lookup
	if lookup.isShared(p) && lookup.expired(p.name) {
		st, err := statNow(p.dir, p.base)
		if err != unix.ENOSYS {
			return st, p.fail("stat", err)
		}
	}
	return p.stat()
}

// refresh drops the kernel's cached state of a file in a shared directory, which an open or a fresh
// stat does. Callers must hold the lock. An error here would occur once more where it matters.
func (p nameAt) refresh() {
	fd, _, err := p.open(unix.O_RDONLY)
	if err != nil {
		return
	}
	_, _ = statNow(fd, "")
	_ = unix.Close(fd)
}

// flush sends a descriptor's data to the server, as close(2) does. It is no fsync.
func flush(fd int) error {
	second, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = unix.Close(second)
	if err == unix.EINTR {
		return nil // it is closed, and data that did not arrive is missed below
	}
	return err
}

// verifyAppend checks on the server that data was appended to the file was. If another machine
// wrote to the same place it fails with ErrStale, and our lines behind the first damaged one are
// removed, so that the append can be repeated.
func (p nameAt) verifyAppend(fd int, was storage.Stat, data []byte) error {
	err := flush(fd)
	if err != nil {
		return err
	}
	fresh, st, err := p.open(unix.O_RDWR)
	if err != nil {
		return err
	}
	defer unix.Close(fresh)
	if !st.SameObject(was.Token) {
		return storage.ErrStale
	}
	dropCache(fresh)
	size, err := sizeNow(fresh) // before the read, as it renews the kernel's knowledge of the file
	if err != nil {
		return err
	}
	isOurs, err := endIs(fresh, was.Size, was.Size+int64(len(data)), data)
	if err != nil || isOurs {
		return err
	}
	most := int64(2*len(data) + foreignGrowth)
	tail := make([]byte, max(0, min(size-was.Size, most)))
	n, err := preadFull(fresh, tail, was.Size)
	if err != nil {
		return err
	}
	tail = tail[:n]
	if hasAsLines(tail, data) {
		return nil // the server may append elsewhere
	}
	const why = "another machine wrote to the same place of a session; a part of a line may be left there"
	slog.Warn(why, "session", p.name)
	err = clearRest(fresh, was.Size, tail, data)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: another machine wrote to the same place of %s at the same time, "+
		"and a part of a line may be left there", storage.ErrStale, p.name)
}

// foreignGrowth bounds the growth by other machines during an append.
const foreignGrowth = 1 << 20

// sizeNow returns the size of a file on the server, or where the system cannot ask it the size that the kernel knows.
func sizeNow(fd int) (int64, error) {
	st, err := statNow(fd, "")
	if err == unix.ENOSYS {
		st, err = fstat(fd)
	}
	return st.Size, err
}

// hasAsLines reports whether a text, which begins with a line, has the lines of an append in one piece.
func hasAsLines(text, lines []byte) bool {
	start := bytes.Index(text, lines)
	if start <= 0 {
		return start == 0
	}
	return text[start-1] == '\n' || lines[0] == '\n'
}

// clearRest blanks the intact lines of data behind the first damaged one: they are its descendants,
// which come behind it when the append is repeated. tail is the file's text at the offset.
func clearRest(fd int, offset int64, tail, data []byte) error {
	hasDamage := false
	start := 0 // of a line in data
	for line := range bytes.Lines(data) {
		end := start + len(line)
		isIntact := end <= len(tail) && bytes.Equal(tail[start:end], line)
		if isIntact && hasDamage {
			blanks := bytes.Repeat([]byte{' '}, len(line)-1) // the line's end stays
			err := pwriteAll(fd, blanks, offset+int64(start))
			if err != nil {
				return err
			}
		}
		hasDamage = hasDamage || !isIntact
		start = end
	}
	return flush(fd)
}
