package writer

import (
	"context"
	"errors"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/storage"
)

// This file tells whether a client has a session open (docs/design.md section 4).

// checkLive fails with a LiveError if a live client has the session open. Where nothing can tell, as on a file system without
// leases, it assumes that there is none: sessions there must stay writable. Where the look itself fails, so does the
// write.
func (w *Writer) checkLive(s *sessioncore.Session, snap *sessioncore.Snapshot) error {
	if w.opts.LiveAllow {
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

// Owner is what is known of the client that has a session open.
type Owner struct {
	// Seen is by what it was detected: lease, descriptor or breadcrumb.
	Seen string `json:"seen"`
	// PID and Command are its process, if that can be seen.
	PID     int    `json:"pid,omitempty"`
	Command string `json:"command,omitempty"`
	// Terminal is the file name of the breadcrumb.
	Terminal string `json:"terminal,omitempty"`
}

// Owner returns what is known of the client that has a session open; nil if none is seen. The surest sign comes first:
// its lease, a descriptor for writing, the breadcrumb of its terminal. It searches /proc. It takes no lock, and of no
// file a lease, as writers do to look; so a program that writes to the file for a moment may be seen too, and in doubt
// there is no owner.
func (w *Writer) Owner(ctx context.Context, s *sessioncore.Session) (*Owner, error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	live := w.seen(s, snap)
	if live == nil {
		return nil, ctx.Err()
	}
	o := &Owner{Seen: live.Sign.String(), Terminal: live.Terminal}
	o.PID, o.Command = live.Process()
	return o, ctx.Err()
}

// seen is checkLive for somebody who holds no lock.
func (w *Writer) seen(s *sessioncore.Session, snap *sessioncore.Snapshot) *clients.LiveError {
	if w.opts.Leases != nil {
		if live := w.opts.Leases.On(s.Name(), snap.LeaseName()); live != nil {
			return live
		}
	}
	live := clients.Writing(w.store.Storage(), s.Name())
	if pid, _ := live.Process(); pid != 0 {
		return live
	}
	if w.opts.Clients != nil {
		return w.opts.Clients.Seen(w.store.Storage(), s.Name())
	}
	return nil
}
