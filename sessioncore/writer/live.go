package writer

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/storage"
)

// This file detects clients that have a session open (docs/design.md section 4).

// checkLive returns a LiveError if a live client has the session open. Where that cannot be
// determined, as on a file system without leases, it returns nil, so that sessions stay writable.
// Errors of the check are returned.
func (w *Writer) checkLive(s *sessioncore.Session, snap *sessioncore.Snapshot) error {
	if w.opts.LiveAllow {
		return nil
	}
	if w.opts.Clients != nil {
		live := w.opts.Clients.On(w.store.Storage(), s.Name())
		if live != nil {
			return live
		}
	}
	if w.opts.Leases != nil {
		live := w.opts.Leases.On(s.Name(), snap.LeaseName())
		if live != nil {
			return live
		}
	}
	disk, ok := w.opts.Journal.(watcher)
	if !ok {
		return nil
	}
	state, err := disk.Writers(s.Name())
	if err != nil || state == storage.WritersNone {
		return err
	}
	writing := clients.Writing(w.store.Storage(), s.Name())
	if state == storage.WritersUnknown {
		pid, _ := writing.Process() // searches /proc, which takes longer
		if pid == 0 {
			return nil
		}
	}
	return writing
}

// watcher is a Journal that can tell whether a process has a file open for writing. Callers hold
// the file's lock, so that a writer that takes the lock is not reported in the middle of its work.
type watcher interface {
	Writers(name string) (storage.WriterState, error)
}

// Owner describes the client that has a session open.
type Owner struct {
	Seen     string `json:"seen"`          // the sign: lease, descriptor or breadcrumb
	PID      int    `json:"pid,omitempty"` // 0 if the process cannot be seen
	Command  string `json:"command,omitempty"`
	Terminal string `json:"terminal,omitempty"` // file name of the breadcrumb
}

// Owner returns the client that has a session open, nil if none is detected, by the surest sign:
// its lease, a descriptor for writing, the breadcrumb of its terminal. It searches /proc and takes
// neither the lock nor a file lease, so a program that writes for a moment may be reported.
func (w *Writer) Owner(ctx context.Context, s *sessioncore.Session) (*Owner, error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	live := w.detectClient(s, snap)
	if live == nil {
		return nil, ctx.Err()
	}
	o := &Owner{Seen: live.Sign.String(), Terminal: live.Terminal}
	o.PID, o.Command = live.Process()
	return o, ctx.Err()
}

// detectClient is checkLive without the lock, and without the options that permit writes beside a live
// client. It returns nil if no client is detected.
func (w *Writer) detectClient(s *sessioncore.Session, snap *sessioncore.Snapshot) *clients.LiveError {
	if w.opts.Leases != nil {
		live := w.opts.Leases.On(s.Name(), snap.LeaseName())
		if live != nil {
			return live
		}
	}
	live := clients.Writing(w.store.Storage(), s.Name())
	pid, _ := live.Process()
	if pid != 0 {
		return live
	}
	if w.opts.Clients != nil {
		return w.opts.Clients.OnVisible(w.store.Storage(), s.Name())
	}
	return nil
}
