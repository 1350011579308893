package writer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/persist"
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
	// Waiting are the sessions that are not on disk yet, which the store shows; if it is nil, none wait.
	Waiting *Waiting
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
	release, err := w.lockFile(ctx, s.Name())
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
// it (docs/design.md section 3). A waiting session goes to disk with the first assistant message (answered), with the
// first line if the option Sync is set, or when memory has no more room.
func (c *change) commit(lines []byte, answered bool) error {
	if c.snap.Version() < sessioncore.CurrentVersion {
		return c.rewrite(c.migration(), lines)
	}
	lines, err := c.afterTorn(lines)
	if err != nil {
		return err
	}
	if c.w.waits(c.s) {
		if !answered && !c.w.opts.Sync && c.w.opts.Waiting.append(c.s.Name(), lines) == nil {
			return nil
		}
		return c.w.keep(c.ctx, c.s.Name(), lines)
	}
	_, err = c.w.opts.Journal.Append(c.s.Name(), lines)
	return err
}

// waits reports whether a session is only in memory.
func (w *Writer) waits(s *sessioncore.Session) bool { return w.opts.Waiting.Has(s.Name()) }

// lockFile takes the lock of a session. If it goes to disk meanwhile, that is the lock there.
func (w *Writer) lockFile(ctx context.Context, name string) (unlock func() error, err error) {
	if w.opts.Waiting.Has(name) {
		unlock, err := w.opts.Waiting.lock(ctx, name)
		if err != nil || w.opts.Waiting.Has(name) {
			return unlock, err
		}
		_ = unlock()
	}
	return w.opts.Journal.Lock(ctx, name)
}

// Sync makes earlier writes to the session durable. It puts a waiting session on disk.
func (w *Writer) Sync(ctx context.Context, s *sessioncore.Session) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, s.Name())
	}
	if w.waits(s) {
		if _, err := w.toDisk(ctx, s.Name(), true); err != nil {
			return err
		}
	}
	return w.opts.Journal.Sync(s.Name())
}

// toDisk puts a session on disk if it waits, and was written to or is to go there anyway. It reports whether it did.
func (w *Writer) toDisk(ctx context.Context, name string, anyway bool) (done bool, err error) {
	unlock, err := w.lockFile(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = unlock() }()
	if f := w.opts.Waiting.find(name); f == nil || !anyway && !f.used {
		return false, nil
	}
	return true, w.keep(ctx, name, nil)
}

// keep puts a waiting session on disk, with more added to its end, and before it the blobs of its lines. Callers must hold
// its lock.
func (w *Writer) keep(ctx context.Context, name string, more []byte) error {
	var rules persist.Rules // if the format cannot be told, images stay where they are: clients read them there too
	if f, err := w.store.Session(name).Format(ctx); err == nil {
		rules = w.rules(f)
	}
	st, err := w.opts.Journal.Replace(name, storage.Replacement{Write: func(out io.Writer) error {
		for _, part := range [][]byte{w.opts.Waiting.find(name).data, more} {
			for line := range bytes.Lines(part) {
				if err := w.keepLine(out, line, rules); err != nil {
					return err
				}
			}
		}
		return nil
	}})
	if err = storage.Replaced(st, err); err == nil {
		w.store.Session(name).SetFile(st.Token)
		w.opts.Waiting.forget(name)
	}
	return err
}

// keepLine writes a line of a waiting session, whose blobs it stores.
func (w *Writer) keepLine(out io.Writer, line []byte, rules persist.Rules) error {
	if text := rawjson.Value(bytes.TrimSuffix(line, []byte("\n"))); rules.Blobs && rawjson.IsValidObject(text) {
		p, err := persist.Line(text, rules)
		if err != nil {
			return err
		}
		for _, b := range p.Blobs {
			if err := w.putBlob(b); err != nil {
				return err
			}
		}
		line = append(p.Text[:len(p.Text):len(p.Text)], line[len(text):]...)
	}
	_, err := out.Write(line)
	return err
}

// Unkept is a waiting session that could not be put on disk, and the reason.
type Unkept struct {
	Name string
	Err  error
}

// keepAll puts every waiting session on disk, durably, to which something was added. It returns those for which that
// failed; they still wait, or may not survive a crash.
func (w *Writer) keepAll(ctx context.Context) (failed []Unkept) {
	for _, name := range w.opts.Waiting.Names() {
		done, err := w.toDisk(ctx, name, false)
		if err == nil && done {
			err = w.opts.Journal.Sync(name)
		}
		if err != nil {
			failed = append(failed, Unkept{name, err})
		}
	}
	return failed
}

// End puts all waiting sessions on disk as SyncAll does, and what is written from now on at once.
func (w *Writer) End(ctx context.Context) (failed []Unkept) {
	// A writer that appended before this holds the lock of its session, which toDisk takes before it looks.
	w.opts.Waiting.end()
	return w.keepAll(ctx)
}

// SyncAll puts all waiting sessions on disk to which something was added. If it fails for some, the error is that of
// the first one and says how many they are.
func (w *Writer) SyncAll(ctx context.Context) error {
	failed := w.keepAll(ctx)
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d new sessions are not on disk, the first is %s: %w", len(failed), failed[0].Name, failed[0].Err)
}

// synced calls Sync if the option Sync is set and err is nil. It is called after the lock is released: a disk may
// take longer than others wait for the lock.
func (w *Writer) synced(ctx context.Context, s *sessioncore.Session, err error) error {
	if err != nil || !w.opts.Sync {
		return err
	}
	return w.Sync(ctx, s)
}
