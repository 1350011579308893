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

// A shared directory is one that other machines may write to (docs/design.md section 4, Shared directories). There the
// kernel answers from what it knew of a file some time ago, writes stay in its cache until the file is closed, and
// O_APPEND means the end of the file as it was then. So on a shared directory, and there alone, files are asked for
// anew under the lock, the lock and what is appended are sent to the server at once, and an append is read back.

// Sharing says whether directories count as shared.
type Sharing uint8

// The values of Sharing.
const (
	SharingDetected Sharing = iota // if the type of their file system may be that of one with several machines
	SharingAlways
	SharingNever
)

// SetSharing sets whether the directory counts as shared, as it does for those that Sub returns after that. It is called
// before s is used.
func (s *Storage) SetSharing(how Sharing) { s.sharing = how }

// Shared reports whether the directory that is there now counts as shared. A missing one does not.
func (s *Storage) Shared() bool {
	d, _, err := s.hold("")
	if err != nil {
		return false
	}
	defer d.release()
	return nameAt{storage: s, dir: d}.shared()
}

// shared reports whether the directory of the name counts as shared.
func (p nameAt) shared() bool {
	how := p.storage.sharing
	return how == SharingAlways || how == SharingDetected && p.dir.remote
}

// askAgain is for how long the state of a file in a shared directory is known: a crawler asks for it thousands of times a
// second, and each answer of the server takes a fraction of a millisecond.
const askAgain = 500 * time.Millisecond

// asked is the name whose state the server was asked for last.
type asked struct {
	mu   sync.Mutex // guards the fields below
	name string
	at   time.Time
}

// due reports whether the server is to be asked for the state of a name.
func (a *asked) due(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.name == name && time.Since(a.at) < askAgain {
		return false
	}
	a.name, a.at = name, time.Now()
	return true
}

// look is stat, of a server that was not asked for this name a moment ago: what it says.
func (p nameAt) look() (storage.Stat, error) {
	if p.shared() && p.storage.asked.due(p.name) {
		if st, err := statNow(p.dir.fd, p.base); err != unix.ENOSYS {
			if err != nil {
				return storage.Stat{}, p.fail("stat", err)
			}
			return st, nil
		}
	}
	return p.stat()
}

// refresh makes the kernel forget what it knows of a file in a shared directory, which a file system does when the file is
// opened, or when it is asked for its state now. Callers must hold the lock. What fails here fails again where
// it matters.
func (p nameAt) refresh() {
	fd, _, err := p.open(unix.O_RDONLY)
	if err != nil {
		return
	}
	_, _ = statNow(fd, "")
	_ = unix.Close(fd)
}

// flush sends what was written through a descriptor to the server, as close(2) does, and returns the error of that. It is no
// fsync: the server may have it in memory.
func flush(fd int) error {
	second, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err = unix.Close(second); err == unix.EINTR {
		return nil // the descriptor is closed, and what could not be sent is missed below
	}
	return err
}

// arrived looks whether data was appended to the file was, which had its size before, as the server has it now. If
// another machine wrote to the same place it fails with ErrStale, and lines of ours behind the first one that is damaged
// are gone, so that the append can be tried again.
func (p nameAt) arrived(fd int, was storage.Stat, data []byte) error {
	if err := flush(fd); err != nil {
		return err
	}
	again, st, err := p.open(unix.O_RDWR)
	if err != nil {
		return err
	}
	defer unix.Close(again)
	if !st.SameObject(was.Token) {
		return storage.ErrStale
	}
	dropCache(again)
	if st, err = statNow(again, ""); err == unix.ENOSYS {
		st, err = fstat(again)
	}
	if err != nil {
		return err
	}
	if ours, err := endIs(again, was.Size, was.Size+int64(len(data)), data); err != nil || ours {
		return err
	}
	there := make([]byte, max(0, min(st.Size-was.Size, int64(2*len(data)+farOn))))
	n, err := preadFull(again, there, was.Size)
	if err != nil {
		return err
	}
	if there = there[:n]; isFurtherOn(there, data) {
		return nil
	}
	slog.Warn("another machine wrote to the same place of a session; a part of a line may be left there", "session", p.name)
	if err := clearRest(again, was.Size, there, data); err != nil {
		return err
	}
	return fmt.Errorf("%w: another machine wrote to the same place of %s at the same time, and a part of a line may be left there",
		storage.ErrStale, p.name)
}

// farOn is how much others are expected to append in the time of one append.
const farOn = 1 << 20

// isFurtherOn reports whether all of data, which begins a line, is in what is there now: the server appends at the true
// end of the file.
func isFurtherOn(there, data []byte) bool {
	at := bytes.Index(there, data)
	return at == 0 || at > 0 && (there[at-1] == '\n' || data[0] == '\n')
}

// clearRest writes blanks over those lines of data that are whole behind the first one that is not. They are the children
// of that one, which comes behind them when it is written again. there is what the file has at the offset.
func clearRest(fd int, at int64, there, data []byte) error {
	damaged := false
	for from := 0; from < len(data); {
		line := data[from:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		to := from + len(line)
		whole := to <= len(there) && bytes.Equal(there[from:to], line)
		if whole && damaged {
			blanks := bytes.Repeat([]byte{' '}, len(line)-1)
			if err := pwriteAll(fd, blanks, at+int64(from)); err != nil {
				return err
			}
		}
		damaged = damaged || !whole
		from = to
	}
	return flush(fd)
}
