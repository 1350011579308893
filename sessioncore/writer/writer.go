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

// BlobPutter stores the blobs that lines refer to.
type BlobPutter interface {
	// Put stores data durably under its SHA-256 in lower-case hex, which it returns. A blob that exists already becomes
	// a new one for who sweeps blobs by their age. If ending is not empty, the blob gets a second name with that ending where the file system has
	// links; for the second name there is no error.
	Put(data []byte, ending string) (hash string, err error)
}

// Options configure a Writer. The zero value is the mount's default, without a blob store.
type Options struct {
	// Journal writes the session files; nil makes every write fail with ErrReadOnly.
	Journal storage.Journal
	// ReadOnly makes every write fail with ErrReadOnly.
	ReadOnly bool
	// Sync makes every write durable before it returns.
	Sync bool
	// LiveAllow permits writes to a session that a live client has open (docs/design.md section 4).
	LiveAllow bool
	// LeafMemory keeps moves of the leaf in memory only (docs/design.md, leaf).
	LeafMemory bool
	// Root is the absolute path of the storage's root, for the parentSession of forks; "" if it has none.
	Root string
	// PathOf returns the path of a file instead of Root, and Own the directory below the storage's root for new sessions, where
	// a storage has those of several people.
	PathOf func(name string) string
	Own    func() (dir string, err error)
	// Scope returns the directory that has the sessions of a working directory other than the file except, "" if none
	// has. If it is nil, a new session goes into the directory that Scopes names.
	Scope func(ctx context.Context, cwd, except string) (dir string, err error)
	// Scopes are the names that clients give to directories of sessions.
	Scopes clients.Scopes
	// Blobs stores what the size controls move out of lines; if nil, they leave it there.
	Blobs BlobPutter
	// Flat makes new sessions lie directly in the storage, as where pi was given a directory for them.
	Flat bool
	// Crumbs are the breadcrumbs, which name the sessions that are moved; nil if there are none.
	Crumbs storage.Storage
	// Clients detects live clients that have no session file open; nil to skip that check.
	Clients *clients.Clients
	// Leases detects live clients that hold a lease; nil to skip that check.
	Leases *clients.Leases
	// Now and NewID replace the clock and the source of entry ids in tests.
	Now   func() time.Time
	NewID func() string
}

// Writer writes to the sessions of a store. It is safe for concurrent use.
//
// Every write happens under the storage's lock of the file, after a check for live clients, and on the file as it is
// then. It takes effect completely or leaves the file as it was. Lock order: the storage's lock, Session.mu,
// Store.mu.
//
// Errors wrap ErrReadOnly, ErrBusy, ErrLocked, ErrInvalid (as a FieldError), ErrExists, ErrNotFound, ErrTooBig,
// ErrStale (the file is replaced again and again), ErrNotSession, or an error of the storage or the blob store.
type Writer struct {
	store *sessioncore.Store
	opts  Options
}

// New returns a Writer for the sessions of a store.
func New(store *sessioncore.Store, opts Options) *Writer {
	opts.ReadOnly = opts.ReadOnly || opts.Journal == nil
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.NewID == nil {
		opts.NewID = randomID
	}
	return &Writer{store: store, opts: opts}
}

// randomID returns an entry id like the client's: 8 hex digits.
func randomID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

const (
	// staleTries is how often a write is tried when programs that ignore the lock keep replacing the file.
	staleTries = 5
	// freeTries is how often a rewrite is tried without the lock, while others may change the file, before it is kept.
	freeTries = 3
	// liveLimit is how long to wait in all for a program that has the file open for writing: as long as for the lock.
	// A program that follows the lock closes the file about when it unlocks; a live client keeps it open.
	liveLimit = storage.LockLimit
	// livePoll is how long the lock is free for others between two checks for a live client.
	livePoll = 5 * time.Millisecond
)

// change is one write to a session, under its lock.
type change struct {
	w    *Writer
	s    *sessioncore.Session
	ctx  context.Context
	snap *sessioncore.Snapshot // of the file as it is
	// unlock gives the lock back.
	unlock func()
	// keepLock makes a rewrite keep the lock: others came in between too often.
	keepLock bool
}

// change calls f under the lock. f commits at most once, as its last step; it is called again if the file was
// replaced meanwhile.
func (w *Writer) change(ctx context.Context, s *sessioncore.Session, f func(*change) error) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, s.Name())
	}
	var err error
	for try := range staleTries {
		if err = w.changeOnce(ctx, s, try >= freeTries, f); !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	return err
}

func (w *Writer) changeOnce(ctx context.Context, s *sessioncore.Session, keepLock bool, f func(*change) error) error {
	snap, unlock, err := w.lock(ctx, s)
	if err != nil {
		return err
	}
	c := &change{w: w, s: s, ctx: ctx, snap: snap, unlock: unlock, keepLock: keepLock}
	defer func() { c.unlock() }() // replace takes the lock anew
	defer snap.Release()
	return f(c)
}

// lock takes the lock of a file that no live client has open, and acquires a snapshot under it. The lock is released
// between polls: a writer that has the file open for a moment may need it to finish.
func (w *Writer) lock(ctx context.Context, s *sessioncore.Session) (snap *sessioncore.Snapshot, unlock func(), err error) {
	for start := time.Now(); ; {
		snap, unlock, err := w.lockOnce(ctx, s)
		if err == nil {
			return snap, unlock, nil
		}
		if !isTransient(err) || time.Since(start) > liveLimit || !storage.Sleep(ctx, livePoll) {
			return nil, nil, err
		}
	}
}

// lockOnce takes the lock and looks. If a client has the session open or the look fails, it gives the lock back, also
// after a panic: while it is held, nobody can write to the session, the client included.
func (w *Writer) lockOnce(ctx context.Context, s *sessioncore.Session) (snap *sessioncore.Snapshot, unlock func(), err error) {
	release, err := w.opts.Journal.Lock(ctx, s.Name())
	if err != nil {
		return nil, nil, err
	}
	unlock = func() {
		// The result of a write does not depend on this.
		if err := release(); err != nil {
			slog.Warn("the lock of a session could not be given back", "session", s.Name(), "err", err)
		}
	}
	defer func() {
		if snap == nil {
			unlock()
		}
	}()
	snap, err = w.look(ctx, s)
	return snap, unlock, err
}

// look acquires a snapshot of the session. If a live client has the session open, the error is a LiveError.
func (w *Writer) look(ctx context.Context, s *sessioncore.Session) (*sessioncore.Snapshot, error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.checkLive(s, snap); err != nil {
		snap.Release()
		return nil, err
	}
	return snap, nil
}

// commit adds whole lines to the session by an append, or for a file of an old version by the rewrite that migrates
// it (docs/design.md section 3).
func (c *change) commit(lines []byte) error {
	if c.snap.Version() < sessioncore.CurrentVersion {
		return c.rewrite(c.migration(), lines)
	}
	lines, err := c.afterTorn(lines)
	if err != nil {
		return err
	}
	_, err = c.w.opts.Journal.Append(c.s.Name(), lines)
	return err
}

// Sync makes earlier writes to the session durable.
func (w *Writer) Sync(s *sessioncore.Session) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, s.Name())
	}
	return w.opts.Journal.Sync(s.Name())
}

// synced calls Sync if the option Sync is set and err is nil. It is called after the lock is released: a disk may
// take longer than others wait for the lock.
func (w *Writer) synced(s *sessioncore.Session, err error) error {
	if err != nil || !w.opts.Sync {
		return err
	}
	return w.Sync(s)
}
