package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"sessionfs/sessioncore/spill"
	"sessionfs/sessioncore/storage"
)

const (
	// headSize is how much of a row is read for who asks for no more: what a list of sessions needs of each of them.
	headSize = 4 << 10
	// unpackedWhole is how long rows are at most of which the server unpacks all for that.
	unpackedWhole = 64 << 10
	// pieceSize is how much of a row comes at once.
	pieceSize = 1 << 20
	// contentTries is how often a row is read that others write to meanwhile, or whose content is taken away.
	contentTries = 3
)

// content is the beginning of a row's content, as far as it is kept.
type content struct {
	s   *Storage
	row *row

	length   atomic.Int64 // of text; changed under mu
	open     atomic.Int32 // objects
	fetching sync.Mutex   // held while the fields below change

	mu      sync.Mutex  // guards the fields below
	text    *spill.Text // nil if nothing is kept
	version string      // the last state of the row that was found to begin with text, also when that was evicted
	whole   bool        // text was all of the row in that state
}

// object is an open row. It stays readable when its name stands for another one, as far as it is kept.
type object struct {
	row    *row
	closed atomic.Bool
}

// Open implements storage.Storage. What is kept of the row is made what it is now; the rest is read when somebody reads it.
func (s *Storage) Open(name string) (storage.Object, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: the root", storage.ErrBadName)
	}
	var err error
	for range contentTries {
		r, missing := s.fileNow("open", name)
		if missing != nil {
			return nil, missing
		}
		if err = r.content.renew(); err == nil {
			r.content.open.Add(1)
			return &object{row: r}, nil
		}
		if !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	return nil, err
}

// Stat implements storage.Object.
func (o *object) Stat() (storage.Stat, error) {
	if o.closed.Load() {
		return storage.Stat{}, fs.ErrClosed
	}
	s := o.row.content.s
	s.refresh()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rowStat(o.row), nil
}

// Close implements storage.Object.
func (o *object) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	o.row.content.open.Add(-1)
	return nil
}

// ReadAt implements storage.Object.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if o.closed.Load() {
		return 0, fs.ErrClosed
	}
	if off < 0 {
		return 0, fmt.Errorf("read at a negative offset: %w", fs.ErrInvalid)
	}
	f, _ := o.row.content.facts()
	n := int(max(0, min(int64(len(p)), f.size-off)))
	if n > 0 {
		if err := o.row.content.read(p[:n], off); err != nil {
			return 0, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// facts returns what the table said of the row, and whether it is gone.
func (c *content) facts() (facts, bool) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.row.facts, c.row.gone
}

// name returns the name of the row.
func (c *content) name() string {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.row.name()
}

// read reads all of p, which the row was said to have.
func (c *content) read(p []byte, off int64) error {
	for range contentTries {
		if isKept, err := c.copy(p, off); isKept {
			return err
		}
		if err := c.fetch(off + int64(len(p))); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s is shorter than it was", storage.ErrStale, c.name())
}

// copy reads all of p if it is kept, the title of the columns in place of that in the slot.
func (c *content) copy(p []byte, off int64) (isKept bool, err error) {
	f, _ := c.facts()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.length.Load() < off+int64(len(p)) {
		return false, nil
	}
	c.s.kept.use(c, c.text.InFile())
	if _, err := c.text.ReadAt(p, off); err != nil {
		return true, err
	}
	line := f.title.line()
	if line == nil || off >= slotSize {
		return true, nil
	}
	head, err := c.head(slotSize)
	if _, has := parseSlot(head); has {
		copy(p, line[off:])
	}
	return true, err
}

// head returns the first n bytes that are kept, or fewer.
func (c *content) head(n int64) ([]byte, error) {
	head := make([]byte, min(n, c.length.Load()))
	if len(head) == 0 {
		return nil, nil
	}
	_, err := c.text.ReadAt(head, 0)
	return head, err
}

// renew makes what is kept of the row what it is now.
func (c *content) renew() error {
	f, gone := c.facts()
	n := c.length.Load()
	switch {
	case gone || n == 0:
		return nil
	case n > headSize:
		return c.fetch(f.size)
	}
	return c.fetch(min(f.size, headSize))
}

// fetch reads the row up to its end, or its beginning if want is in it, unless that much of it is kept in its current state.
// The error wraps ErrStale if it is another object now.
func (c *content) fetch(want int64) error {
	c.fetching.Lock()
	defer c.fetching.Unlock()
	asked := c.s.now()
	f, gone := c.facts()
	n := c.length.Load()
	switch {
	case n >= want && (gone || c.version == f.version):
		return nil
	case gone:
		return fmt.Errorf("%w: %s was replaced", storage.ErrStale, c.name())
	case max(want, n) > headSize:
		return c.fetchRest(f, asked)
	}
	found, err := c.s.heads([]string{f.path})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return c.isGone()
	}
	return c.begins(found[0], asked)
}

// fetchRest adds what follows what is kept of a row of which f was known at the time asked. Callers must hold c.fetching.
func (c *content) fetchRest(f facts, asked int64) error {
	text := c.text
	if text == nil {
		text = c.s.kept.texts.New()
		defer func() {
			if c.text == nil {
				text.Close()
			}
		}()
	}
	c.s.kept.reserve(text, f.size)
	n := text.Size()
	now, same, err := c.readOn(text, f)
	switch {
	case err == nil && same && !c.isLost(now):
		c.keep(text, now, asked)
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		err = c.isGone()
	case err == nil:
		err = c.isAnother(now)
	}
	_ = text.Cut(n)
	return err
}

// secondsOfMiB is how much longer a server may take for each MiB of a row.
const secondsOfMiB = 1

// readOn adds what follows a text, with which the row was found to begin in the state c.version, and reports whether it
// still does. The error is pgx.ErrNoRows if there is no row. Callers must hold c.fetching.
func (c *content) readOn(text *spill.Text, f facts) (now facts, same bool, err error) {
	n := text.Size()
	err = c.s.try(readLimit+time.Duration(f.size>>20)*secondsOfMiB*time.Second, func(ctx context.Context, conn conn) error {
		if err := text.Cut(n); err != nil {
			return err
		}
		rows, _ := conn.Query(ctx, c.s.sql.rest, f.path, n, c.version, pieceSize) // rows has the error
		var row maybeFacts
		var sum []byte
		var piece pgtype.DriverBytes
		found := false
		_, err := pgx.ForEachRow(rows, append(row.targets(), &sum, &piece), func() (err error) {
			if !found {
				now, found = row.facts(), true
				if same, err = hasSum(text, n, sum); err != nil {
					return err
				}
			}
			if same {
				_, err = text.Write(piece)
			}
			return err
		})
		if err == nil && !found {
			err = pgx.ErrNoRows
		}
		return err
	})
	return now, same, err
}

// hasSum reports whether a text of n bytes has the hash that the server has made, nil for none.
func hasSum(text *spill.Text, n int64, sum []byte) (bool, error) {
	if sum == nil {
		return true, nil
	}
	hash := sha256.New()
	_, err := io.Copy(hash, io.NewSectionReader(text, 0, n))
	return bytes.Equal(sum, hash.Sum(nil)), err
}

// begins keeps the beginning of the row, which was read at the time asked. Callers must hold c.fetching.
func (c *content) begins(now beginning, asked int64) error {
	known, err := c.head(headSize)
	if err != nil {
		return err
	}
	if c.isLost(now.facts) || !bytes.HasPrefix(now.head, known) {
		return c.isAnother(now.facts)
	}
	text := c.text
	if text == nil {
		text = c.s.kept.texts.New()
	}
	c.s.kept.reserve(text, int64(len(now.head)))
	if _, err := text.Write(now.head[len(known):]); err != nil {
		return err
	}
	c.keep(text, now.facts, asked)
	return nil
}

// keep keeps a text with which the row begins in a state that was read at the time asked.
func (c *content) keep(text *spill.Text, now facts, asked int64) {
	c.mu.Lock()
	n := text.Size()
	c.text, c.version, c.whole = text, now.version, n == now.size
	c.length.Store(n)
	c.s.kept.use(c, text.InFile())
	c.mu.Unlock()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.put(now, asked)
}

// isLost reports whether the text was evicted, and the row has changed since: nobody can tell whether it still begins with
// that. Callers must hold c.fetching.
func (c *content) isLost(now facts) bool {
	return c.text == nil && c.version != "" && c.version != now.version
}

// evict frees what is kept, unless a goroutine works with it: then it returns false. What is open moves from memory to a file,
// as long as those are not too many.
func (c *content) evict(inMemory bool) (evicted, moved bool) {
	if !c.fetching.TryLock() {
		return false, false
	}
	defer c.fetching.Unlock()
	if !c.mu.TryLock() {
		return false, false
	}
	defer c.mu.Unlock()
	if inMemory && c.open.Load() > 0 && !spill.Full() {
		if c.text.Spill(); c.text.InFile() {
			return true, true
		}
	}
	c.text.Close()
	c.text, c.whole = nil, false
	c.length.Store(0)
	return true, false
}

// isGone takes the row out of the catalogue, and returns ErrStale.
func (c *content) isGone() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.rows[c.row.path] == c.row {
		c.s.remove(c.row.path)
	}
	return fmt.Errorf("%w: %s is gone", storage.ErrStale, c.row.name())
}

// isAnother makes the name stand for another object, and returns ErrStale.
func (c *content) isAnother(now facts) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.rows[c.row.path] == c.row {
		c.s.replace(c.row, now)
	}
	if c.whole { // who has it open reads what it was
		c.row.size = c.length.Load()
	}
	return fmt.Errorf("%w: %s was replaced", storage.ErrStale, c.row.name())
}

// wrote adds what was appended to what is kept, if that is all of the row as it was before, and nobody reads it on.
func (c *content) wrote(before facts, data []byte, after facts) {
	if !c.fetching.TryLock() {
		return
	}
	defer c.fetching.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == nil || c.version != before.version || c.text.Size() != before.size || after.size != before.size+int64(len(data)) {
		return
	}
	c.s.kept.reserve(c.text, after.size)
	if _, err := c.text.Write(data); err != nil {
		return
	}
	c.version = after.version
	c.length.Store(after.size)
	c.s.kept.use(c, c.text.InFile())
}

// beginning is what the table says of a row, with the first headSize bytes of it.
type beginning struct {
	facts
	head []byte
}

// heads reads the beginnings of rows.
func (s *Storage) heads(paths []string) (found []beginning, err error) {
	err = s.try(readLimit, func(ctx context.Context, c conn) error {
		found = found[:0]
		sql, args := s.sql.heads, []any{paths, headSize}
		if s.look.noted.Load() {
			sql, args = s.sql.notedHeads, append(args, s.quoted)
		}
		rows, _ := c.Query(ctx, sql, args...) // rows has the error
		var f maybeFacts
		var head []byte
		_, err := pgx.ForEachRow(rows, append(f.targets(), &head), func() error {
			found = append(found, beginning{f.facts(), head})
			return nil
		})
		return err
	})
	return found, err
}

// aheadRows is how many rows' beginnings are read at once at most.
const aheadRows = 1024

// ReadAhead implements storage.Storage: it reads the beginnings of those rows of which nothing is kept.
func (s *Storage) ReadAhead(names []string) {
	if len(names) < 2 {
		return
	}
	s.refresh()
	var paths []string
	of := map[string]*content{}
	s.mu.RLock()
	for _, name := range names {
		path := s.PathOf(name)
		if r := s.rows[path]; r != nil && r.content.length.Load() == 0 {
			paths, of[path] = append(paths, path), &r.content
		}
	}
	s.mu.RUnlock()
	for some := range slices.Chunk(paths, aheadRows) {
		asked := s.now()
		found, err := s.heads(some)
		if err != nil {
			return
		}
		for _, b := range found {
			if c := of[b.path]; c.fetching.TryLock() {
				if c.length.Load() == 0 {
					_ = c.begins(b, asked)
				}
				c.fetching.Unlock()
			}
		}
	}
}
