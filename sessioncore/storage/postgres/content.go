package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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

// content is what is kept of a row's content: its beginning.
type content struct {
	s   *Storage
	row *row

	length   atomic.Int64 // of text; changed under mu
	fetching sync.Mutex   // held while text changes

	mu      sync.Mutex // guards the fields below
	text    text
	version string   // the last state of the row that was found to begin with text
	whole   bool     // text was all of the row in that state
	dropped *dropped // what was taken away last; nil if nothing was

	keeping
}

// dropped is what is known of a text that was taken away, to tell whether the row still begins with it.
type dropped struct {
	version string // the row's then
	n       int64
	sum     uint64 // its hash
	known   bool   // sum is; not where the text was in a file, all of which would have to be read for it
}

// droppedSeed makes the hash of what was taken away one that nobody can make other rows for.
var droppedSeed = maphash.MakeSeed()

// object is an open row. It stays readable when its name stands for another one, as far as it is kept.
type object struct {
	row    *row
	closed atomic.Bool
}

// Open implements storage.Storage. What is kept of the row is made what it is now, and a small one is kept; the rest is read
// when somebody reads it.
func (s *Storage) Open(name string) (storage.Object, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: the root", storage.ErrBadName)
	}
	var err error
	for range contentTries {
		var r *row
		if r, err = s.fileNow("open", name); err != nil {
			return nil, err
		}
		if err = r.content.renew(); err == nil {
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
	c := &o.row.content
	f, _ := c.facts()
	want := min(off+int64(len(p)), f.size)
	if want <= off {
		if len(p) == 0 && off <= f.size {
			return 0, nil
		}
		return 0, io.EOF
	}
	n, err := c.readAt(p[:want-off], off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
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

// readAt reads all of p, which the row was said to have.
func (c *content) readAt(p []byte, off int64) (int, error) {
	for range contentTries {
		if n, err := c.copy(p, off); n == len(p) || err != nil {
			c.s.kept.use(c)
			return n, err
		}
		if err := c.fetch(off + int64(len(p))); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%w: %s is shorter than it was", storage.ErrStale, c.name())
}

// copy reads what is kept, the title of the columns in place of that in the slot.
func (c *content) copy(p []byte, off int64) (int, error) {
	f, _ := c.facts()
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.text.readAt(p, off)
	line := f.title.line()
	if line == nil || off >= slotSize {
		return n, err
	}
	var begin [slotSize]byte
	if all, err := c.text.readAt(begin[:], 0); all == slotSize && err == nil {
		if _, has := parseSlot(begin[:]); has {
			copy(p[:n], line[off:])
		}
	}
	return n, err
}

// renew makes what is kept of the row what it is now.
func (c *content) renew() error {
	f, gone := c.facts()
	c.mu.Lock()
	n, version := c.text.n, c.version
	c.mu.Unlock()
	switch {
	case gone || version == f.version || n == 0 && f.size > headSize:
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
	s, asked := c.s, c.s.now()
	f, gone := c.facts()
	c.mu.Lock()
	known, version := c.text, c.version
	c.mu.Unlock()
	switch {
	case known.n >= want && (gone || version == f.version):
		return nil
	case gone:
		return fmt.Errorf("%w: %s was replaced", storage.ErrStale, c.name())
	case want <= headSize && known.n <= headSize:
		if err := c.fetchHead(); !errors.Is(err, errTooShort) {
			return err
		}
	}
	next := text{n: known.n, file: known.file}
	if known.file != nil || !s.kept.reserve(c, f.size) {
		if err := next.toFile(s.opts.Temporary, known); err != nil {
			return err
		}
	} else if next.file == nil {
		next.data = append(make([]byte, 0, f.size), known.data...) // readers may have the old one
	}
	now, err := c.readOn(&next, known, version)
	switch {
	case err == nil:
		c.keep(next, now, true)
	case known.file != nil:
		_ = known.file.Cut(known.n)
	case next.file != nil:
		next.file.Close()
	}
	s.kept.set(c, c.length.Load(), err == nil && next.file != nil || known.file != nil)
	if err == nil {
		s.mu.Lock()
		s.put(now, asked)
		s.mu.Unlock()
	}
	return err
}

// keep keeps what was read of the row in a state.
func (c *content) keep(t text, now facts, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text, c.version, c.whole = t, now.version, whole
	c.length.Store(t.n)
}

// secondsOfMiB is how much longer a server may take for each MiB of a row.
const secondsOfMiB = 1

// readOn adds what follows what is known of a row that was found to begin with that in one of its states. The error wraps
// ErrStale if it is another object now.
func (c *content) readOn(t *text, known text, version string) (now facts, err error) {
	f, _ := c.facts()
	same := true
	err = c.s.try(readLimit+time.Duration(f.size>>20)*secondsOfMiB*time.Second, func(ctx context.Context, conn conn) error {
		if t.n, t.data = known.n, t.data[:min(known.n, int64(len(t.data)))]; t.file != nil {
			if err := t.file.Cut(known.n); err != nil {
				return err
			}
		}
		rows, err := conn.Query(ctx, c.s.sql.rest, f.path, known.n, version, pieceSize)
		if err != nil {
			return err
		}
		defer rows.Close()
		found := false
		for rows.Next() {
			var row maybeFacts
			var sum []byte
			var piece pgtype.DriverBytes
			if err := rows.Scan(append(row.targets(), &sum, &piece)...); err != nil {
				return err
			}
			if !found && sum != nil {
				ours, err := known.sum()
				if err != nil {
					return err
				}
				same = bytes.Equal(sum, ours)
			}
			now, found = row.facts(), true
			if same {
				if err := t.add(piece); err != nil {
					return err
				}
			}
		}
		if err := rows.Err(); err != nil || found {
			return err
		}
		return pgx.ErrNoRows
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return now, c.isGone()
	case err == nil && same && known.n == 0:
		if same, err = c.beginsAsBefore(now, t); errors.Is(err, errTooShort) {
			same, err = false, nil
		}
	}
	if err == nil && !same {
		return now, c.isAnother(now)
	}
	return now, err
}

// errTooShort means that more of a row has to be read to tell whether it is the one that was taken away.
var errTooShort = errors.New("too short")

// beginsAsBefore reports whether what was read of the row begins with what was taken away of it. Otherwise it may be another
// object.
func (c *content) beginsAsBefore(now facts, t *text) (bool, error) {
	c.mu.Lock()
	d := c.dropped
	c.mu.Unlock()
	switch {
	case d == nil || d.version == now.version:
		return true, nil
	case !d.known || now.size < d.n:
		return false, nil
	case t.n < d.n:
		return false, errTooShort
	}
	before := *t
	before.n = d.n
	var hash maphash.Hash
	hash.SetSeed(droppedSeed)
	err := before.writeTo(&hash)
	return hash.Sum64() == d.sum, err
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
		c.row.size = c.text.n
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
	if c.version != before.version || c.text.n != before.size || after.size != before.size+int64(len(data)) {
		return
	}
	if c.text.file == nil && !c.s.kept.reserve(c, after.size) || c.text.add(data) != nil {
		return
	}
	c.version = after.version
	c.length.Store(c.text.n)
}

// fetchHead is fetch for the beginning of a row of which no more is kept. Callers must hold c.fetching.
func (c *content) fetchHead() error {
	asked := c.s.now()
	known, _ := c.facts()
	found, heads, err := c.s.heads([]string{known.path})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return c.isGone()
	}
	return c.begins(found[0], heads[0], asked)
}

// begins keeps the beginning of the row, which was asked for when the clock was asked. Callers must hold c.fetching.
func (c *content) begins(now facts, head []byte, asked int64) error {
	c.mu.Lock()
	same, known := bytes.HasPrefix(head, c.text.data), c.text.n
	c.mu.Unlock()
	n := int64(len(head))
	if same && known == 0 {
		var err error
		if same, err = c.beginsAsBefore(now, &text{n: n, data: head}); err != nil {
			return err
		}
	}
	if !same {
		return c.isAnother(now)
	}
	c.s.kept.reserve(c, n) // what is so short is kept also where there is no room
	c.keep(text{n: n, data: head}, now, n == now.size)
	c.s.kept.set(c, n, false)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.put(now, asked)
	return nil
}

// heads reads the beginnings of rows.
func (s *Storage) heads(paths []string) (found []facts, heads [][]byte, err error) {
	err = s.try(readLimit, func(ctx context.Context, c conn) error {
		found, heads = found[:0], heads[:0]
		sql, args := s.sql.heads, []any{paths, headSize}
		if s.look.noted.Load() {
			sql, args = s.sql.notedHeads, append(args, s.quoted)
		}
		rows, err := c.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		var f maybeFacts
		var head []byte
		targets := append(f.targets(), &head)
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			found, heads = append(found, f.facts()), append(heads, head)
		}
		return rows.Err()
	})
	return found, heads, err
}

// aheadRows is how many rows' beginnings are read at once at most.
const aheadRows = 1024

// ReadAhead implements storage.Storage: it reads the beginnings of those rows that have never been read.
func (s *Storage) ReadAhead(names []string) {
	if len(names) < 2 {
		return
	}
	s.refresh()
	var paths []string
	of := map[string]*row{}
	s.mu.RLock()
	for _, name := range names {
		path := s.PathOf(name)
		if r := s.rows[path]; r != nil && r.content.length.Load() == 0 {
			paths, of[path] = append(paths, path), r
		}
	}
	s.mu.RUnlock()
	for some := range slices.Chunk(paths, aheadRows) {
		asked := s.now()
		found, heads, err := s.heads(some)
		if err != nil {
			return
		}
		for i, f := range found {
			if c := &of[f.path].content; c.fetching.TryLock() {
				if c.length.Load() == 0 {
					_ = c.begins(f, heads[i], asked)
				}
				c.fetching.Unlock()
			}
		}
	}
}
