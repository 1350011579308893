package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"sessionfs/sessioncore/storage"
)

const (
	// headSize is how much of a row is read when it is opened: what a list of sessions needs of each of them.
	headSize = 4 << 10
	// unpackedWhole is how long rows are at most of which the server unpacks all for that.
	unpackedWhole = 64 << 10
	// windowSize is how much is read at once of a row that cannot be kept. PostgreSQL unpacks all of it each time.
	windowSize = 8 << 20
	// contentTries is how often a row is read that others write to meanwhile.
	contentTries = 3
)

// content is what is kept of a row's content: its beginning.
type content struct {
	s   *Storage
	row *row

	length   atomic.Int64 // of data; changed under mu
	fetching sync.Mutex   // held while the database is asked for more

	mu      sync.Mutex // guards the fields below
	data    []byte     // as it is in the row; only appended to, so readers may keep a slice of it
	version string     // the last state of the row that was found to begin with data
	whole   bool       // data was all of the row in that state
	dropped string     // the last state of data that was taken away; "" if none was
	window  window
	slot    slotOf
}

// window is a part of a row that cannot be kept.
type window struct {
	data    []byte
	at      int64
	version string
}

// slotOf is the title slot that is laid over the content of one state of the row, nil if none is.
type slotOf struct {
	version string
	line    []byte
}

// object is an open row. It stays readable when its name stands for another one, as far as it is kept.
type object struct {
	storage.UnsupportedObject

	row    *row
	closed atomic.Bool
}

// Open implements storage.Storage. It reads the beginning of the row, or all of a small one.
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
		if err = r.content.open(); err == nil {
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
	if err := s.refresh(); err != nil {
		return storage.Stat{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return o.row.stat(), nil
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
	n := 0
	for off+int64(n) < want {
		part, err := c.readAt(p[n:want-off], off+int64(n))
		if n += part; err != nil {
			return n, err
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

// readAt reads a part of what there is at off; callers ask for the rest again.
func (c *content) readAt(p []byte, off int64) (int, error) {
	if n := c.copy(p, off); n > 0 {
		c.s.kept.use(c)
		return n, nil
	}
	if err := c.fetch(off + int64(len(p))); err == nil {
		if n := c.copy(p, off); n > 0 {
			return n, nil
		}
	} else if !errors.Is(err, errNoRoom) {
		return 0, err
	}
	return c.readWindow(p, off)
}

// copy reads what is kept.
func (c *content) copy(p []byte, off int64) int {
	f, _ := c.facts()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	switch w := c.window; {
	case off < int64(len(c.data)):
		n = copy(p, c.data[off:])
	case off >= w.at && off < w.at+int64(len(w.data)) && w.version == f.version:
		n = copy(p, w.data[off-w.at:])
	default:
		return 0
	}
	if off < slotSize {
		if line := c.slotLine(f); line != nil {
			copy(p[:n], line[off:])
		}
	}
	return n
}

// slotLine returns the title slot that is laid over the content. Callers must hold c.mu.
func (c *content) slotLine(f facts) []byte {
	if c.slot.version == f.version && c.slot.version != "" {
		return c.slot.line
	}
	if len(c.data) < slotSize {
		return nil
	}
	c.slot = slotOf{version: f.version}
	line := f.title.line()
	if _, has := parseSlot(c.data); has {
		c.slot.line = line
	} else if line != nil {
		c.s.opts.Log.Warn("a row has a title and its content no place for it: a client would damage the session when it reads it", "path", f.path)
	}
	return c.slot.line
}

// open makes sure that the beginning of the row is kept, as it is now.
func (c *content) open() error {
	f, gone := c.facts()
	c.mu.Lock()
	have, version, never := int64(len(c.data)), c.version, c.dropped == ""
	c.mu.Unlock()
	if have == 0 && never && !gone && f.size > 0 {
		c.s.readAhead(f.path)
		c.mu.Lock()
		have, version = int64(len(c.data)), c.version
		c.mu.Unlock()
		f, gone = c.facts()
	}
	switch {
	case gone || version == f.version && have >= min(headSize, f.size):
		return nil
	case have > headSize || f.size <= headSize:
		if err := c.fetch(f.size); !errors.Is(err, errNoRoom) {
			return err
		}
	}
	return c.fetchHead()
}

// errNoRoom means that a row cannot be kept: it is read in windows.
var errNoRoom = errors.New("no room to keep it")

// fetch reads the row up to its end, unless that much of it is kept in its current state. The error wraps ErrStale if it
// is another object now.
func (c *content) fetch(want int64) error {
	c.fetching.Lock()
	defer c.fetching.Unlock()
	s := c.s
	asked := s.now()
	f, gone := c.facts()
	c.mu.Lock()
	data, version := c.data, c.version
	c.mu.Unlock()
	have := int64(len(data))
	switch {
	case have >= want && (gone || version == f.version):
		return nil
	case gone:
		return fmt.Errorf("%w: %s was replaced", storage.ErrStale, c.row.name)
	case !s.kept.reserve(c, f.size):
		return errNoRoom
	}
	answer, known, now, err := c.readOn(data, version)
	if err != nil {
		s.kept.set(c, have)
		return err
	}
	c.mu.Lock()
	if len(c.data) == len(data) { // it was not taken away, nor added to by a write
		if known == 0 {
			c.data = answer
		} else {
			c.data = append(c.data, answer...)
		}
		c.version, c.whole = now.version, true
		c.length.Store(int64(len(c.data)))
	}
	have = int64(len(c.data))
	c.mu.Unlock()
	s.kept.set(c, have)
	s.mu.Lock()
	s.put(now, asked)
	s.mu.Unlock()
	return nil
}

// readOn reads what follows data in a row that was found to begin with it in one of its states; known says how much of data
// is not in the answer. The error wraps ErrStale if it is another object now.
func (c *content) readOn(data []byte, version string) (answer []byte, known int, now facts, err error) {
	same := false
	if len(data) <= headSize { // a server that has to cut the content takes longer for it
		now, err = c.ask(&answer, nil, c.s.sql.all)
		same = bytes.HasPrefix(answer, data)
	} else {
		var sum []byte
		known = len(data)
		now, err = c.ask(&answer, &sum, c.s.sql.rest, known, version)
		ours := sha256.Sum256(data)
		same = sum == nil || bytes.Equal(sum, ours[:])
	}
	if err == nil && (!same || c.cannotTell(now)) {
		err = c.isAnother(now)
	}
	return answer, known, now, err
}

// fetchHead is fetch for the beginning of a row of which no more is kept.
func (c *content) fetchHead() error {
	c.fetching.Lock()
	defer c.fetching.Unlock()
	asked := c.s.now()
	if _, gone := c.facts(); gone {
		return nil
	}
	var head []byte
	now, err := c.ask(&head, nil, c.s.sql.head, headSize)
	if err != nil {
		return err
	}
	other := c.cannotTell(now)
	c.mu.Lock()
	same := !other && bytes.HasPrefix(head, c.data)
	if same {
		c.data, c.version, c.whole = head, now.version, int64(len(head)) == now.size
		c.length.Store(int64(len(head)))
	}
	c.mu.Unlock()
	if !same {
		return c.isAnother(now)
	}
	if n := int64(len(head)); !c.s.kept.reserve(c, n) {
		c.s.kept.set(c, n)
	}
	c.s.mu.Lock()
	c.s.put(now, asked)
	c.s.mu.Unlock()
	return nil
}

// cannotTell reports whether the row has changed since what was kept of it was taken away: then it may be another object.
func (c *content) cannotTell(now facts) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.data) == 0 && c.dropped != "" && c.dropped != now.version
}

// ask reads something of the row. The error wraps ErrStale if it is gone.
func (c *content) ask(text, sum *[]byte, sql string, args ...any) (facts, error) {
	var f maybeFacts
	into := append(f.targets(), text)
	if sum != nil {
		into = append(into, sum)
	}
	err := c.s.try(func(ctx context.Context, conn conn) error {
		return conn.QueryRow(ctx, sql, append([]any{c.row.path}, args...)...).Scan(into...)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		c.s.mu.Lock()
		if c.s.rows[c.row.path] == c.row {
			c.s.remove(c.row.path)
		}
		c.s.mu.Unlock()
		return facts{}, fmt.Errorf("%w: %s is gone", storage.ErrStale, c.row.name)
	}
	if err != nil {
		return facts{}, err
	}
	return f.facts(), nil
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
		c.row.size = int64(len(c.data))
	}
	return fmt.Errorf("%w: %s was replaced", storage.ErrStale, c.row.name)
}

// readWindow reads from a row that cannot be kept, in the state in which its size was told.
func (c *content) readWindow(p []byte, off int64) (int, error) {
	c.fetching.Lock()
	defer c.fetching.Unlock()
	if n := c.copy(p, off); n > 0 {
		return n, nil
	}
	f, gone := c.facts()
	if gone {
		return 0, fmt.Errorf("%w: %s was replaced", storage.ErrStale, c.row.name)
	}
	var text []byte
	at := off / windowSize * windowSize
	now, err := c.ask(&text, nil, c.s.sql.window, at, windowSize)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	seen := cmp.Or(c.version, c.dropped)
	c.mu.Unlock()
	if now.version != f.version || seen != "" && seen != now.version { // nobody can tell whether it only grew
		return 0, c.isAnother(now)
	}
	c.mu.Lock()
	c.window = window{text, at, now.version}
	c.mu.Unlock()
	n := c.copy(p, off)
	if n == 0 {
		return 0, fmt.Errorf("%w: %s ends at %d", storage.ErrStale, c.row.name, at+int64(len(text)))
	}
	return n, nil
}

// wrote adds what was appended to what is kept, if that is all of the row as it was before.
func (c *content) wrote(before facts, data []byte, after facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != before.version || int64(len(c.data)) != before.size || after.size != before.size+int64(len(data)) {
		return
	}
	if !c.s.kept.reserve(c, after.size) {
		return
	}
	c.data, c.version = append(c.data, data...), after.version
	c.length.Store(int64(len(c.data)))
}
