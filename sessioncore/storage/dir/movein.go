package dir

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// moveIn gives the file its name if that still refers to expect, or to no file if expect is zero,
// in the same directory. A new file never replaces another, even one created at this moment.
func (t *temporary) moveIn(expect storage.Token) error {
	err := t.checkDir()
	if err != nil {
		return err
	}
	if (expect == storage.Token{}) {
		return t.moveInNew()
	}
	err = t.awaitClose()
	if err != nil { // before the exchange, so that few are undone
		return err
	}
	err = t.renameAside(expect)
	if err != nil {
		return t.fail("rename the replacement of", err)
	}
	err = t.temp.exchange(t.nameAt)
	if err == nil {
		return t.checkExchanged(expect)
	}
	if err == unix.ENOTSUP { // the file system cannot exchange names: a rename replaces the file unchecked
		err = retry(func() error {
			return t.storage.sys.renameat2(t.dir, t.temp.base, t.dir, t.base, 0)
		})
		if err == nil {
			t.temp.base = ""
			return nil
		}
	}
	return t.fail("rename into", err)
}

// renameAside gives the file the name that the replaced file gets by the exchange. That may then have
// the only copy of another program's lines, so sweep must not take it for a temporary file: it
// compares the replaced file with its size in the name, once this process has no lock on it.
func (t *temporary) renameAside(expect storage.Token) error {
	aside, known := storage.ReplacedName(t.base, expect)
	locked := unix.Flock(t.old, unix.LOCK_EX|unix.LOCK_NB) == nil
	err := error(unix.EEXIST) // as where a killed process left that name
	if known && locked {
		err = t.temp.renameNew(kernel, t.beside(aside))
	}
	if err == unix.EEXIST {
		aside = storage.AsideName(t.base)
		err = t.temp.renameNew(kernel, t.beside(aside))
	}
	if err == nil {
		t.temp = t.beside(aside)
	}
	return err
}

// moveInNew gives the file its name, which must not exist. The error wraps ErrStale and fs.ErrExist if
// it does.
func (t *temporary) moveInNew() error {
	err := t.temp.renameNew(t.storage.sys, t.nameAt)
	if err == unix.EEXIST {
		return fmt.Errorf("%w: %s: %w", storage.ErrStale, t.name, fs.ErrExist)
	}
	if err != nil {
		return t.fail("rename into", err)
	}
	t.temp.base = ""
	err = t.checkDir()
	if err != nil && t.isAt(t.nameAt) {
		t.temp = t.nameAt // so that discard removes it
	}
	return err
}

// isAt reports whether a name refers to this file.
func (t *temporary) isAt(p nameAt) bool {
	st, err := fstat(t.fd)
	return err == nil && p.checkSame(st.Token) == nil
}

// checkExchanged undoes the exchange if the old file is not the expected one, a program keeps it
// open, or the directory was replaced. Lines that others wrote meanwhile stay.
func (t *temporary) checkExchanged(expect storage.Token) error {
	err := t.temp.checkSame(expect)
	if err == nil {
		err = t.checkDir()
	}
	if err == nil {
		err = t.awaitClose()
	}
	if err == nil {
		_ = t.temp.unlink() // before the directory is synced
		t.temp.base = ""
		return nil
	}
	undo := t.temp.exchange(t.nameAt)
	if undo != nil || !t.isAt(t.temp) {
		t.temp.base = "" // another program's file has that name now
	} else {
		undo = t.carryBack()
	}
	return undone(err, undo)
}

// awaitClose waits until no program has the old file open for writing: a client would go on there.
func (t *temporary) awaitClose() error {
	start := time.Now()
	for lease(t.old, t.remote()) == storage.WritersPresent {
		if time.Since(start) > carryLimit {
			return fmt.Errorf("%w: a program has %s open for writing", storage.ErrLocked, t.name)
		}
		time.Sleep(carryPoll)
	}
	return nil
}

// carryBack appends others' lines in this file to the one that has its name again.
func (t *temporary) carryBack() error {
	end, err := unix.Seek(t.fd, 0, io.SeekCurrent) // of our own lines
	if err != nil {
		return err
	}
	fd, _, err := t.open(unix.O_WRONLY | unix.O_APPEND)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for range carryOpen {
		time.Sleep(carryPoll)
	}
	back := temporary{nameAt: t.nameAt, fd: fd, old: t.fd}
	_, err = back.carry(end, true)
	return err
}

// The rest of this file saves lines that programs without the lock append to a file while it is
// replaced: between the last stat and the rename, and later through a descriptor.

const (
	// carryLimit bounds the wait for a program that has the replaced file open. The lock is held
	// meanwhile, so it is shorter than the time that others wait for the lock.
	carryLimit = storage.LockLimit / 2
	// carryPoll is how often the replaced file is checked.
	carryPoll = time.Millisecond
	// carryOpen is the least number of checks: a program may open the old file only now. A busy
	// machine delays both. It suffices for an append too, if open files are unknown.
	carryOpen = 20
)

// carryOver appends to the new file the replaced one's growth beyond offset from. It
// waits for programs that have it open, or open it now.
func (t *temporary) carryOver(from int64) {
	if t.old < 0 {
		return
	}
	start := time.Now()
	checks := 0
	for {
		// The lease comes before the read: a program that has closed the file writes no more.
		state := lease(t.old, t.remote())
		last := checks > carryOpen && (state != storage.WritersPresent || time.Since(start) > carryLimit)
		n, err := t.carry(from, last)
		if err != nil {
			const lost = "what another program wrote to a session while it was replaced is lost"
			slog.Error(lost, "session", t.name, "err", err)
			return
		}
		from += n
		if last {
			if state == storage.WritersPresent {
				slog.Warn("a program still writes to a session's file that was replaced", "session", t.name)
			}
			return
		}
		time.Sleep(carryPoll)
		checks++
	}
}

// carry appends the replaced file's bytes from offset from on, and counts them. Unless all is
// set it appends only complete lines.
func (t *temporary) carry(from int64, all bool) (done int64, err error) {
	st, err := fstat(t.old)
	if err != nil || st.Size <= from {
		return 0, err
	}
	more := make([]byte, st.Size-from)
	n, err := preadFull(t.old, more, from)
	if err != nil {
		return 0, err
	}
	more = more[:n]
	if !all {
		more = more[:bytes.LastIndexByte(more, '\n')+1]
	}
	w := descriptorWriter{t.storage.sys, t.fd}
	written, err := w.Write(more)
	return int64(written), err
}
