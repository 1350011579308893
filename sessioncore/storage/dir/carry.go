package dir

import (
	"bytes"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// This file saves what programs that do not take the lock append to a file while it is replaced: between the last
// look at it and the rename, and afterwards through a descriptor that they had by then.

const (
	// carryLimit is how long a program that still has the replaced file open is waited for. The lock is held all the
	// while, so it is less than others wait for that.
	carryLimit = storage.LockLimit / 2
	// carryPoll is how often the replaced file is looked at.
	carryPoll = time.Millisecond
	// carryUnseen is how long it is watched where nobody tells whether it is open: programs that append a line are done
	// by then.
	carryUnseen = 20 * time.Millisecond
)

// ReplaceIf implements Storage.
func (s *Storage) ReplaceIf(name string, expect storage.Token, write func(io.Writer) error, ready func() error) (storage.Stat, error) {
	return s.replaceIf(kernel, name, expect, write, ready)
}

// carryOver appends to the file, which has its name now, what was appended to the replaced one behind from, the size
// that was known of it. It waits for who has that open: nobody else can come to it, since it has no name.
func (t *temporary) carryOver(sys calls, from int64) {
	if t.old < 0 {
		return
	}
	for start := time.Now(); ; time.Sleep(carryPoll) {
		// The lease first: who has closed the file by then has written all that it will.
		state, returned := lease(t.old)
		waited := time.Since(start)
		last := state == storage.WritersNone || !returned || state == storage.WritersUnknown && waited > carryUnseen || waited > carryLimit
		n, err := t.carry(sys, from, last)
		if err != nil {
			slog.Error("what another program wrote to a session while it was replaced is lost", "session", t.name, "err", err)
			return
		}
		from += n
		if last {
			if state == storage.WritersPresent {
				slog.Warn("a program still writes to a session's file that was replaced", "session", t.name)
			}
			return
		}
	}
}

// carry appends what the replaced file has behind from: whole lines, at last all. It returns how much that was.
func (t *temporary) carry(sys calls, from int64, all bool) (done int64, err error) {
	st, err := fstat(t.old)
	if err != nil || st.Size <= from {
		return 0, err
	}
	more := make([]byte, st.Size-from)
	n, err := preadFull(t.old, more, from)
	if err != nil {
		return 0, err
	}
	if more = more[:n]; !all {
		more = more[:bytes.LastIndexByte(more, '\n')+1]
	}
	// Others may append to the file already.
	if _, err := unix.FcntlInt(uintptr(t.fd), unix.F_SETFL, unix.O_APPEND); err != nil {
		return 0, err
	}
	w := descriptorWriter{sys: sys, fd: t.fd}
	written, err := w.Write(more)
	return int64(written), err
}

// preadFull fills p from an offset, as far as the file goes.
func preadFull(fd int, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		var got int
		err := retry(func() (err error) {
			got, err = unix.Pread(fd, p[n:], off+int64(n))
			return err
		})
		if err != nil || got == 0 {
			return n, err
		}
		n += got
	}
	return n, nil
}
