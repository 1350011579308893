package dir

import (
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// A killed process leaves its temporary file. A later replacement in the directory removes it, and so
// does a move out of it: a temporary file is locked (flock) as long as its process lives, on any
// machine.

// maxSwept bounds the directories with a remembered last sweep.
const maxSwept = 1000

// sweepAtTimes sweeps the directory of the name, now and then.
func (p nameAt) sweepAtTimes() {
	swept := p.storage.swept
	name := storage.Dir(p.name)
	last, ok := swept.Get(name)
	if ok && time.Since(last) < sweepEvery {
		return
	}
	swept.Add(name, time.Now())
	p.sweep()
}

// sweep removes the temporary files of dead processes from the directory of the name. It ignores
// errors.
func (p nameAt) sweep() {
	dir, err := p.reopenDir()
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, base := range names {
		if storage.IsOwnName(base) && p.beside(base).removeStale() {
			slog.Info("a temporary file of a killed process was removed", "file", base, "beside", p.name)
		}
	}
}

// removeStale removes a temporary file if its process is dead, and nothing in it is missing
// elsewhere.
func (p nameAt) removeStale() bool {
	fd, st, err := p.open(unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	changed := time.Unix(0, max(st.Modified, st.Changed))
	if p.mayLackLock() && time.Since(changed) < sweepAge {
		return false
	}
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	if !storage.IsTemporaryName(p.base) && !p.isSpare(st) {
		return false
	}
	return p.checkSame(st.Token) == nil && p.unlink() == nil
}

// mayLackLock reports whether the living process of a temporary file may have no lock on it that is
// seen here.
func (p nameAt) mayLackLock() bool {
	base, _ := storage.TemporaryOf(p.base)
	return strings.HasSuffix(base, lockEnding) || p.shared() || p.remote()
}

// isSpare reports whether a file with a name of ReplacedName has nothing that the file beside it
// lacks: it is the replaced file as it was when its successor was written, without lines that
// another program added, or the successor that was never put into its place.
func (p nameAt) isSpare(st storage.Stat) bool {
	base, was, ok := storage.ReplacedFile(p.base)
	if !ok {
		return false
	}
	now, err := p.beside(base).stat()
	if err != nil || now.Kind != storage.KindFile || now.SameObject(st.Token) {
		return false
	}
	const namedBits = 0xff // of the replaced file's inode number are in the name
	if st.Inode&namedBits == was.Inode {
		return st.Size == was.Size
	}
	return now.Inode&namedBits == was.Inode
}
