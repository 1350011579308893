package writer

import (
	"errors"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/storage"
)

// This file checks for live clients (docs/design.md section 4).

// checkLive fails with a LiveError if a live client has the session open. Where nothing can tell, as on a file system without
// leases, it assumes that there is none: sessions there must stay writable. Where the look itself fails, so does the
// write.
func (w *Writer) checkLive(s *sessioncore.Session, snap *sessioncore.Snapshot) error {
	if w.opts.LiveAllow || w.waits(s) {
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
	disk, ok := w.opts.Journal.(watcher)
	if !ok {
		return nil
	}
	live := clients.Writing(w.store.Storage(), s.Name())
	state, err := disk.Writers(s.Name())
	if err == nil && state == storage.WritersUnknown {
		if pid, _ := live.Process(); pid != 0 {
			state = storage.WritersPresent
		}
	}
	if err == nil && state == storage.WritersPresent {
		err = live
	}
	return err
}

// watcher is a Journal that can tell whether a process has a file open for writing. Callers hold the file's lock, so that a
// writer that takes it is not found in the middle of its work.
type watcher interface {
	Writers(name string) (storage.WriterState, error)
}

// isTransient reports whether the condition may end in a moment: a process has the file open, as those that follow
// the lock do while they write.
func isTransient(err error) bool {
	var live *clients.LiveError
	return errors.As(err, &live) && live.Sign == clients.SignDescriptor
}
