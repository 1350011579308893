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
	switch err {
	case nil:
		return t.checkExchanged(expect)
	case unix.ENOTSUP:
		return t.moveOver()
	}
	return t.fail("rename into", err)
}

// moveOver gives the file its name on a file system that cannot exchange names. It replaces the file that has the name,
// unchecked.
func (t *temporary) moveOver() error {
	err := retry(func() error {
		return t.storage.sys.renameat2(t.dir, t.temp.base, t.dir, t.base, 0)
	})
	if err != nil {
		return t.fail("rename into", err)
	}
	t.temp.base = "" // discard must not remove it
	return nil
}

// renameAside gives the file the name that the replaced file gets by the exchange. That may then have
// the only copy of another program's lines, so sweep must not take it for a temporary file: it
// compares the replaced file with its size in the name, once this process has no lock on it.
func (t *temporary) renameAside(expect storage.Token) error {
	aside, hasName := storage.ReplacedName(t.base, expect)
	isLocked := unix.Flock(t.old, unix.LOCK_EX|unix.LOCK_NB) == nil
	err := error(unix.EEXIST) // as where a killed process left that name
	if hasName && isLocked {
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

// oldWriters reports whether a program has the replaced file open for writing.
func (t *temporary) oldWriters() storage.WriterState { return lease(t.old, t.remote()) }

// awaitClose waits until no program has the old file open for writing: a client would go on there. The error wraps
// storage.ErrLocked after carryLimit.
func (t *temporary) awaitClose() error {
	start := time.Now()
	for t.oldWriters() == storage.WritersPresent {
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
	named, _, err := t.open(unix.O_WRONLY | unix.O_APPEND)
	if err != nil {
		return err
	}
	defer unix.Close(named)
	for range carryOpen { // programs that opened this file by its name write their line now
		time.Sleep(carryPoll)
	}
	tail := tailCopy{sys: t.storage.sys, from: t.fd, to: named, offset: end}
	return tail.copyAll()
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

// carryOver appends to the new file the replaced one's growth beyond an offset. It waits for programs that have the replaced
// file open, or open it now. It logs an error: the new file is in its place by then.
func (t *temporary) carryOver(offset int64) {
	if t.old < 0 {
		return
	}
	tail := tailCopy{sys: t.storage.sys, from: t.old, to: t.fd, offset: offset}
	start := time.Now()
	var err error
	// The question for writers comes before each read: a program that has closed the file writes no more.
	writers := t.oldWriters()
	for checks := 0; err == nil && mayGrow(writers, checks, start); checks++ {
		err = tail.copyLines()
		time.Sleep(carryPoll)
		writers = t.oldWriters()
	}
	if err == nil {
		err = tail.copyAll()
	}
	switch {
	case err != nil:
		const lost = "what another program wrote to a session while it was replaced is lost"
		slog.Error(lost, "session", t.name, "err", err)
	case writers == storage.WritersPresent:
		slog.Warn("a program still writes to a session's file that was replaced", "session", t.name)
	}
}

// mayGrow reports whether a replaced file may still grow, after a number of checks since a start: a program may open it, or has
// it open and did not take too long.
func mayGrow(writers storage.WriterState, checks int, start time.Time) bool {
	mayOpen := checks <= carryOpen
	isOpen := writers == storage.WritersPresent
	return mayOpen || (isOpen && time.Since(start) <= carryLimit)
}

// tailCopy copies the bytes behind an offset of one file to the end of another one, by their descriptors.
type tailCopy struct {
	sys    calls
	from   int
	to     int
	offset int64 // of the next byte to copy
}

// copyLines copies the complete lines that are there now.
func (c *tailCopy) copyLines() error {
	text, err := c.read()
	if err != nil {
		return err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	return c.write(text[:end])
}

// copyAll copies all that is there now, a line without its end included.
func (c *tailCopy) copyAll() error {
	text, err := c.read()
	if err != nil {
		return err
	}
	return c.write(text)
}

// read returns the bytes that are not copied yet, none if the file is shorter by now.
func (c *tailCopy) read() ([]byte, error) {
	st, err := fstat(c.from)
	if err != nil || st.Size <= c.offset {
		return nil, err
	}
	text := make([]byte, st.Size-c.offset)
	n, err := preadFull(c.from, text, c.offset)
	return text[:n], err
}

// write appends the next bytes to the other file.
func (c *tailCopy) write(text []byte) error {
	w := descriptorWriter{sys: c.sys, fd: c.to}
	n, err := w.Write(text)
	c.offset += int64(n)
	return err
}
