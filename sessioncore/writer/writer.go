package writer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/storage"
)

// MaxLine is the longest line that can be written, in bytes (docs/design.md section 2).
const MaxLine = 64 << 20

// Options say how a Writer writes. The zero value is the mount's default, without a blob store.
type Options struct {
	// ReadOnly makes every write fail with ErrReadOnly.
	ReadOnly bool
	// Sync makes every write durable before it returns.
	Sync bool
	// LiveAllow writes beside a live client too (docs/design.md section 4).
	LiveAllow bool
	// LeafMemory keeps moves of the leaf in memory only (docs/design.md, leaf).
	LeafMemory bool
	// Root is the absolute path of the storage's root, for the parentSession of forks; "" where there
	// is none.
	Root string
	// Blobs takes what the size controls move out of the lines; nil leaves it there.
	Blobs BlobPutter
	// Program tells whose agent directory the storage is in, for ProgramUnknown the sessions tell; it is asked
	// only for lines with images. In sessions of pi nothing goes into Blobs. nil: unknown.
	Program func() Program
	// Clients knows of the live clients that hold no descriptor; nil where nobody does.
	Clients *clients.Clients
	// Leases knows of the sessions that newer clients hold a lease on; nil where nobody does.
	Leases *clients.Leases
	// Now and NewID replace the clock and the source of entry ids in tests.
	Now   func() time.Time
	NewID func() string
}

// Writer writes to the sessions of a store. It is safe for concurrent use.
//
// Every write happens under the storage's lock of the file, after a look for a live client and at the
// file as it then is; it either takes effect as a whole or leaves the file as it was. Lock order: the
// storage's lock, Session.mu, Store.mu.
//
// Errors wrap ErrReadOnly, ErrBusy, ErrLocked, ErrInvalid (as a FieldError), ErrExists, ErrNotFound,
// ErrTooBig, ErrStale (the file is being replaced again and again), ErrNotSession, or an error of
// the storage or the blob store.
type Writer struct {
	store *sessioncore.Store
	opts  Options
}

// New returns a writer to the sessions of a store.
func New(store *sessioncore.Store, opts Options) *Writer {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.NewID == nil {
		opts.NewID = randomID
	}
	return &Writer{store: store, opts: opts}
}

// randomID is an entry id as the client's: 8 hex digits.
func randomID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

const (
	// staleTries: how often a write is begun anew when somebody who does not follow the lock replaces the
	// file under it.
	staleTries = 5
	// liveLimit is how long a program that has the file open for writing is waited for, in all: as long as for
	// the lock. One that follows the lock closes it about when it unlocks; a live client keeps it open.
	liveLimit = storage.LockLimit
	// livePoll is how long others have the lock between two looks for a live client.
	livePoll = 5 * time.Millisecond
)

// change is one write to a session, under its lock.
type change struct {
	w    *Writer
	s    *sessioncore.Session
	ctx  context.Context
	snap *sessioncore.Snapshot // of the file as it is
}

// change calls f under the lock. f commits at most once, as the last thing it does; it is called again
// where the file was replaced meanwhile.
func (w *Writer) change(ctx context.Context, s *sessioncore.Session, f func(*change) error) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, s.Name())
	}
	var err error
	for range staleTries {
		if err = w.changeOnce(ctx, s, f); !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	return err
}

func (w *Writer) changeOnce(ctx context.Context, s *sessioncore.Session, f func(*change) error) error {
	snap, unlock, err := w.lock(ctx, s)
	if err != nil {
		return err
	}
	defer unlock()
	defer snap.Release()
	return f(&change{w: w, s: s, ctx: ctx, snap: snap})
}

// lock takes the lock of a file that no live client is on, and looks at the file under it. The lock is released
// between polls: a writer that has the file open for a moment may need it to finish.
func (w *Writer) lock(ctx context.Context, s *sessioncore.Session) (snap *sessioncore.Snapshot, unlock func(), err error) {
	for start := time.Now(); ; {
		release, err := w.store.Storage().Lock(ctx, s.Name())
		if err != nil {
			return nil, nil, err
		}
		unlock := func() {
			// What was written is written: the caller's answer does not depend on this.
			if err := release(); err != nil {
				slog.Warn("the lock of a session could not be given back", "session", s.Name(), "err", err)
			}
		}
		snap, err := w.look(s)
		if err == nil {
			return snap, unlock, nil
		}
		unlock()
		if !isTransient(err) || time.Since(start) > liveLimit || !storage.Sleep(ctx, livePoll) {
			return nil, nil, w.namePID(s, err)
		}
	}
}

// look returns what the file is, unless a live client is on it: then the error is a LiveError.
func (w *Writer) look(s *sessioncore.Session) (*sessioncore.Snapshot, error) {
	snap, err := s.Acquire()
	if err != nil {
		return nil, err
	}
	if err := w.checkLive(s, snap); err != nil {
		snap.Release()
		return nil, err
	}
	return snap, nil
}

// commit adds whole lines to the session: an append; for a file of an old version the rewrite that
// migrates it (docs/design.md section 3). A session that is in memory goes to disk with the first message of an
// assistant, which answered tells of, with the first line under the option Sync, and where memory may not
// hold more.
func (c *change) commit(lines []byte, answered bool) error {
	if c.snap.Version() < sessioncore.CurrentVersion {
		return c.rewrite(c.migration(), lines)
	}
	lines, err := c.afterTorn(lines)
	if err != nil {
		return err
	}
	files, name := c.w.store.Storage(), c.s.Name()
	if (answered || c.w.opts.Sync) && files.Pending(name) {
		return files.Keep(c.ctx, name, lines)
	}
	_, err = files.Append(name, lines)
	if errors.Is(err, storage.ErrNoRoom) {
		err = files.Keep(c.ctx, name, lines)
	}
	return err
}

// Sync makes what was written to a session durable, and puts one that is in memory on disk.
func (w *Writer) Sync(ctx context.Context, s *sessioncore.Session) error {
	files := w.store.Storage()
	if files.Pending(s.Name()) {
		if err := w.keep(ctx, s); err != nil {
			return err
		}
	}
	return files.Sync(s.Name())
}

// keep puts a session on disk that is in memory, unless somebody was faster.
func (w *Writer) keep(ctx context.Context, s *sessioncore.Session) error {
	files := w.store.Storage()
	unlock, err := files.Lock(ctx, s.Name())
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	if !files.Pending(s.Name()) {
		return nil
	}
	return files.Keep(ctx, s.Name(), nil)
}

// SyncAll puts all sessions on disk that are in memory and that somebody added to. The error is that of the first
// one for which it failed, and says how many others there are.
func (w *Writer) SyncAll(ctx context.Context) error {
	failed := w.store.Storage().KeepAll(ctx)
	switch n := len(failed); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s is not on disk: %w", failed[0].Name, failed[0].Err)
	default:
		return fmt.Errorf("%s and %d more are not on disk: %w", failed[0].Name, n-1, failed[0].Err)
	}
}

// synced does what the option Sync asks for after a write. The lock is free again: a disk may take
// longer than others wait.
func (w *Writer) synced(ctx context.Context, s *sessioncore.Session, err error) error {
	if err != nil || !w.opts.Sync {
		return err
	}
	return w.Sync(ctx, s)
}
