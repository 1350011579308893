package writer

import (
	"errors"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/procfs"
	"sessionfs/sessioncore/storage"
)

// This file checks for live clients (docs/design.md section 4).

// checkLive fails with a LiveError if a live client has the session open. Where nothing can tell, as on a file system without
// leases, it assumes that there is none: sessions there must stay writable. Where the look itself fails, so does the
// write. The snapshot must have been acquired under the lock, so that its open file is the one that the
// name refers to.
func (w *Writer) checkLive(s *sessioncore.Session, snap *sessioncore.Snapshot) error {
	if w.opts.LiveAllow || w.pending(s) {
		return nil
	}
	if w.opts.Clients != nil {
		if live := w.opts.Clients.On(w.store.Storage(), s.Name()); live != nil {
			return live
		}
	}
	if w.opts.Leases != nil {
		if live := w.opts.Leases.On(s.Name(), snap.LeaseName()); live != nil {
			return live
		}
	}
	state, err := w.writers(s, snap)
	if err == nil && state == storage.WritersPresent {
		err = &clients.LiveError{Session: s.Name(), Sign: clients.SignDescriptor}
	}
	return err
}

// writers returns whether a process has the file of a snapshot open for writing.
func (w *Writer) writers(s *sessioncore.Session, snap *sessioncore.Snapshot) (storage.WriterState, error) {
	state, err := snap.File().Writers()
	if errors.Is(err, storage.ErrLeaseKept) {
		s.Drop() // closing the descriptor gives up the lease
	}
	if state != storage.WritersUnknown {
		return state, nil
	}
	state, err = w.store.Storage().Writers(s.Name())
	if errors.Is(err, storage.ErrUnsupported) {
		err = nil
	}
	return state, err
}

// isTransient reports whether the condition may end in a moment: a process has the file open, as those that follow
// the lock do while they write.
func isTransient(err error) bool {
	var live *clients.LiveError
	return errors.As(err, &live) && live.Sign == clients.SignDescriptor
}

// namePID adds the process to the error of a write that isTransient. That requires a scan of all processes, so it is
// called only once the wait is over.
func (w *Writer) namePID(s *sessioncore.Session, err error) error {
	if !isTransient(err) {
		return err
	}
	st, statErr := w.store.Storage().Stat(s.Name())
	if statErr != nil {
		return err
	}
	live := &clients.LiveError{Session: s.Name(), Sign: clients.SignDescriptor}
	if _, live.PID = procfs.Find("/proc", st); live.PID != 0 {
		live.Command = clients.CommandOf("/proc", live.PID)
	}
	return live
}
