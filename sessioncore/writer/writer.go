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
	// Put stores data durably under its SHA-256 in lower-case hex, which it returns, and refreshes
	// the age of an existing blob. If ending is not empty, the blob gets a second name with that
	// ending where the file system has links; that is not an error otherwise.
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
	// Root is the absolute path of the storage's root, for parentSession; "" if it has none.
	Root string
	// PathOf replaces Root, and Own returns the directory below the storage's root for new
	// sessions, where a storage has the sessions of several people.
	PathOf func(name string) string
	Own    func() (dir string, err error)
	// Scope returns the directory that has the sessions of a cwd other than the file except, "" for
	// none. If it is nil, Scopes names the directory of a new session.
	Scope func(ctx context.Context, cwd, except string) (dir string, err error)
	// Scopes returns the names that clients give to directories of sessions.
	Scopes func() clients.Scopes
	// Blobs stores texts that the size controls move out of lines; if nil, they stay there.
	Blobs BlobPutter
	// Flat puts new sessions directly into the storage, as where pi was given a directory for them.
	Flat bool
	// Crumbs are the breadcrumbs, which are updated when sessions are moved; nil if there are none.
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
// Every write holds the storage's lock of the file, checks for live clients, and applies to the
// current file. It takes effect completely or leaves the file as it was. Lock order: the storage's
// lock, Session.mu, Store.mu.
//
// Errors wrap ErrReadOnly, ErrBusy, ErrLocked, ErrInvalid (as a FieldError), ErrExists,
// ErrNotFound, ErrTooBig, ErrStale (the file is replaced again and again), ErrNotSession, or an
// error of the storage or the blob store.
type Writer struct {
	store *sessioncore.Store
	opts  Options
}

// New returns a Writer for the sessions of a store. Options that are missing get their defaults.
func New(store *sessioncore.Store, opts Options) *Writer {
	opts.ReadOnly = opts.ReadOnly || opts.Journal == nil
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Scopes == nil {
		opts.Scopes = func() clients.Scopes { return clients.Scopes{} }
	}
	if opts.NewID == nil {
		opts.NewID = randomID
	}
	return &Writer{store: store, opts: opts}
}

// writable returns ErrReadOnly with a name if nothing may be written.
func (w *Writer) writable(name string) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, name)
	}
	return nil
}

// randomID returns an entry id like the client's: 8 hex digits.
func randomID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

const (
	// staleTries bounds the attempts at a write while programs without the lock replace the file.
	staleTries = 5
	// freeTries bounds the attempts at a rewrite without the lock. After them it keeps the lock.
	freeTries = 3
	// liveLimit bounds the wait for a program that has the file open for writing: as long as for
	// the lock. A program that follows the lock closes the file about when it unlocks; a live
	// client keeps it open.
	liveLimit = storage.LockLimit
	// livePoll is the time without the lock between two checks for a live client.
	livePoll = 5 * time.Millisecond
)

// change is one write to a session, under its lock.
type change struct {
	w        *Writer
	s        *sessioncore.Session
	ctx      context.Context
	snap     *sessioncore.Snapshot // of the current file
	unlock   func()                // releases the lock
	keepLock bool                  // a rewrite keeps the lock, as others changed the file too often
}

// change calls f under the lock. f commits at most once, as its last step; it is repeated if the
// file was replaced meanwhile.
func (w *Writer) change(ctx context.Context, s *sessioncore.Session, f func(*change) error) error {
	err := w.writable(s.Name())
	if err != nil {
		return err
	}
	return whileStale(func(try int) error {
		return w.changeOnce(ctx, s, try >= freeTries, f)
	})
}

// whileStale calls do with the number of the attempt, and repeats it while it fails with ErrStale,
// but not more than staleTries times.
func whileStale(do func(try int) error) (err error) {
	for try := range staleTries {
		err = do(try)
		if !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	return err
}

// changeOnce calls f with the session under its lock.
func (w *Writer) changeOnce(ctx context.Context, s *sessioncore.Session, keepLock bool, f func(*change) error) error {
	snap, unlock, err := w.lock(ctx, s)
	if err != nil {
		return err
	}
	c := &change{
		w:        w,
		s:        s,
		ctx:      ctx,
		snap:     snap,
		unlock:   unlock,
		keepLock: keepLock,
	}
	defer func() { c.unlock() }() // replace takes the lock anew
	defer snap.Release()
	return f(c)
}

// lock takes the lock of a file that no live client has open, and acquires a snapshot under it. Callers
// must release both. A program that has the file open for writing is waited for, up to liveLimit. The
// lock is released between polls, as such a program may need it to finish.
func (w *Writer) lock(ctx context.Context, s *sessioncore.Session) (*sessioncore.Snapshot, func(), error) {
	start := time.Now()
	for {
		isLast := time.Since(start) > liveLimit // before the check, which may take long
		snap, unlock, err := w.lockOnce(ctx, s)
		if err == nil {
			return snap, unlock, nil
		}
		live, isLive := errors.AsType[*clients.LiveError](err)
		// Clients that follow the lock have the file open for a moment.
		mayPass := isLive && live.Sign == clients.SignDescriptor
		if !mayPass || isLast {
			return nil, nil, err
		}
		isCancelled := !storage.Sleep(ctx, livePoll)
		if isCancelled {
			return nil, nil, err
		}
	}
}

// lockOnce takes the lock and acquires a snapshot. On an error it releases the lock, also after a
// panic: while it is held, nobody can write to the session, the client included.
func (w *Writer) lockOnce(
	ctx context.Context, s *sessioncore.Session,
) (snap *sessioncore.Snapshot, unlock func(), err error) {
	release, err := w.opts.Journal.Lock(ctx, s.Name())
	if err != nil {
		return nil, nil, err
	}
	unlock = func() {
		// The result of a write does not depend on this.
		err := release()
		if err != nil {
			slog.Warn("the lock of a session could not be given back", "session", s.Name(), "err", err)
		}
	}
	defer func() {
		if snap == nil {
			unlock()
		}
	}()
	snap, err = w.acquire(ctx, s)
	return snap, unlock, err
}

// acquire acquires a snapshot of the session, or returns a LiveError if a live client has it open.
func (w *Writer) acquire(ctx context.Context, s *sessioncore.Session) (*sessioncore.Snapshot, error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	err = w.checkLive(s, snap)
	if err != nil {
		snap.Release()
		return nil, err
	}
	return snap, nil
}

// commit adds complete lines by an append, or to a file of an old version by the rewrite that
// migrates it (docs/design.md section 3).
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

// commitLine is commit for the line that makeLine makes.
func (c *change) commitLine(makeLine func(b *batch) []byte) error {
	b, err := c.w.batch(c.snap)
	if err != nil {
		return err
	}
	return c.commit(makeLine(b))
}

// addLineIf appends the line that makeLine makes, if the current file needs it. It checks before it
// takes the lock, too: the lock file gives the directory a new time.
func (w *Writer) addLineIf(
	ctx context.Context, s *sessioncore.Session, needed func(*sessioncore.Snapshot) (bool, error),
	makeLine func(b *batch) []byte,
) error {
	err := w.writable(s.Name())
	if err != nil {
		return err
	}
	if isDone(ctx, s, needed) {
		return nil
	}
	err = w.change(ctx, s, func(c *change) error {
		isNeeded, err := needed(c.snap)
		if err != nil || !isNeeded {
			return err
		}
		return c.commitLine(makeLine)
	})
	return w.syncAfter(s, err)
}

// isDone reports whether the current file certainly needs no line. After an error it is false: the
// caller meets the error again, under the lock.
func isDone(ctx context.Context, s *sessioncore.Session, needed func(*sessioncore.Snapshot) (bool, error)) bool {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return false
	}
	defer snap.Release()
	isNeeded, err := needed(snap)
	return err == nil && !isNeeded
}

// Sync makes earlier writes to the session durable.
func (w *Writer) Sync(s *sessioncore.Session) error {
	err := w.writable(s.Name())
	if err != nil {
		return err
	}
	return w.opts.Journal.Sync(s.Name())
}

// syncAfter calls Sync if the option Sync is set and err is nil. Callers have released the lock, as
// a disk may take longer than others wait for it.
func (w *Writer) syncAfter(s *sessioncore.Session, err error) error {
	if err != nil || !w.opts.Sync {
		return err
	}
	return w.Sync(s)
}
