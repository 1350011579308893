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

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// headSize is the number of bytes at the beginning of a row that a list of sessions needs.
	headSize = 4 << 10
	// unpackedWhole is the largest size of a row that the server unpacks as a whole to send its head.
	unpackedWhole = 64 << 10
	// pieceSize is the number of bytes that the server sends at once.
	pieceSize = 1 << 20
	// contentTries bounds the attempts to read a row that others write to, or that has content being
	// evicted.
	contentTries = 3
)

// rowContent is the kept beginning of a row's content.
type rowContent struct {
	s   *Storage
	row *row

	length   atomic.Int64 // of text; changed under mu
	open     atomic.Int32 // objects
	fetching sync.Mutex   // held while the fields below change

	mu      sync.Mutex   // guards the fields below
	text    *budget.Text // nil if nothing is kept
	version string       // the last state of the row that began with text, even if that was evicted
	whole   bool         // text was all of the row in that state
}

// object is an open row. When its name stands for another row, its kept content stays readable.
type object struct {
	row    *row
	closed atomic.Bool
}

// Open implements storage.Storage. It brings the kept content up to date; the rest is read on
// demand.
func (s *Storage) Open(name string) (storage.Object, error) {
	var err error
	for range contentTries {
		r, missing := s.fileNow("open", name)
		if missing != nil {
			return nil, missing
		}
		err = r.content.renew()
		if err == nil {
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
	rest := max(0, f.size-off)
	n := int(min(int64(len(p)), rest))
	if n > 0 {
		err := o.row.content.read(p[:n], off)
		if err != nil {
			return 0, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// facts returns the row's facts, and whether it is gone.
func (c *rowContent) facts() (rowFacts, bool) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.row.rowFacts, c.row.gone
}

// name returns the name of the row.
func (c *rowContent) name() string {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.row.name()
}

// read fills p with the bytes at an offset, which must be within the row's size by its facts. It fetches those
// that are not kept. The error wraps storage.ErrStale if the row has changed.
func (c *rowContent) read(p []byte, off int64) error {
	for range contentTries {
		isKept, err := c.copy(p, off)
		if isKept {
			return err
		}
		err = c.fetch(off + int64(len(p)))
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s is shorter than it was", storage.ErrStale, c.name())
}

// copy fills p if these bytes are kept, with the title of the columns in place of that in the slot.
func (c *rowContent) copy(p []byte, off int64) (isKept bool, err error) {
	f, _ := c.facts()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.length.Load() < off+int64(len(p)) {
		return false, nil
	}
	c.s.kept.use(c, c.text.InFile())
	_, err = c.text.ReadAt(p, off)
	if err != nil {
		return true, err
	}
	line := f.title.line()
	if line == nil || off >= slotSize {
		return true, nil
	}
	head, err := c.head(slotSize)
	_, hasSlot := parseSlot(head)
	if hasSlot {
		copy(p, line[off:])
	}
	return true, err
}

// head returns the first n kept bytes, or fewer; nil if nothing is kept. Callers must hold c.mu or c.fetching.
func (c *rowContent) head(n int64) ([]byte, error) {
	head := make([]byte, min(n, c.length.Load()))
	if len(head) == 0 {
		return nil, nil
	}
	_, err := c.text.ReadAt(head, 0)
	return head, err
}

// renew brings the kept content up to date: all of the row if more than its head is kept. It does nothing
// without kept content, or for a row that is gone.
func (c *rowContent) renew() error {
	f, isGone := c.facts()
	n := c.length.Load()
	switch {
	case isGone || n == 0:
		return nil
	case n > headSize:
		return c.fetch(f.size)
	}
	return c.fetch(min(f.size, headSize))
}

// fetch reads the row to its end, or its head if that has want bytes, unless these are kept in the
// row's current state. The error wraps ErrStale if it is another object now.
func (c *rowContent) fetch(want int64) error {
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
		return c.removeRow()
	}
	return c.keepHead(found[0], asked)
}

// fetchRest adds the bytes behind the kept ones. f are the row's facts at time asked. After an error the kept
// bytes are as before; it wraps storage.ErrStale if the row is gone or another object now. Callers must hold
// c.fetching.
func (c *rowContent) fetchRest(f rowFacts, asked int64) error {
	text := c.text
	if text == nil {
		text = c.s.kept.texts.New()
		defer func() {
			if c.text == nil { // it was not kept
				text.Close()
			}
		}()
	}
	c.s.kept.reserve(text, f.size)
	before := text.Size()
	now, isSame, err := c.readRest(text, f)
	switch {
	case err == nil && isSame && !c.isLost(now):
		c.keep(text, now, asked)
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		err = c.removeRow()
	case err == nil:
		err = c.replaceRow(now)
	}
	_ = text.Cut(before)
	return err
}

// secondsOfMiB is the time that a server is granted for each MiB of a row.
const secondsOfMiB = 1

// readRest adds the bytes behind text, the beginning of the row in state c.version, and reports
// whether the row still begins with it. The error is pgx.ErrNoRows if there is no row. Callers must hold
// c.fetching.
func (c *rowContent) readRest(text *budget.Text, f rowFacts) (now rowFacts, same bool, err error) {
	n := text.Size()
	mebibytes := time.Duration(f.size >> 20)
	limit := readLimit + mebibytes*secondsOfMiB*time.Second
	err = c.s.try(limit, func(ctx context.Context, conn conn) error {
		err := text.Cut(n) // an attempt may have added a part
		if err != nil {
			return err
		}
		rows, _ := conn.Query(ctx, c.s.sql.rest, f.path, n, c.version, pieceSize) // rows has the error
		var sum []byte
		var piece pgtype.DriverBytes
		hasRow := false
		addPiece := func() (err error) { // each piece comes in a row with the facts
			if !hasRow {
				hasRow = true
				same, err = hasSum(text, n, sum)
				if err != nil {
					return err
				}
			}
			if same {
				_, err = text.Write(piece)
			}
			return err
		}
		_, err = pgx.ForEachRow(rows, append(now.targets(), &sum, &piece), addPiece)
		if err == nil && !hasRow {
			err = pgx.ErrNoRows
		}
		return err
	})
	return now, same, err
}

// hasSum reports whether a text of n bytes has the hash that the server has made, nil for none.
func hasSum(text *budget.Text, n int64, sum []byte) (bool, error) {
	if sum == nil {
		return true, nil
	}
	hash := sha256.New()
	_, err := io.Copy(hash, io.NewSectionReader(text, 0, n))
	return bytes.Equal(sum, hash.Sum(nil)), err
}

// keepHead keeps the head of the row, which was read at time asked. Callers must hold c.fetching.
func (c *rowContent) keepHead(now beginning, asked int64) error {
	known, err := c.head(headSize)
	if err != nil {
		return err
	}
	if c.isLost(now.rowFacts) || !bytes.HasPrefix(now.head, known) {
		return c.replaceRow(now.rowFacts)
	}
	text := c.text
	if text == nil {
		text = c.s.kept.texts.New()
	}
	c.s.kept.reserve(text, int64(len(now.head)))
	_, err = text.Write(now.head[len(known):])
	if err != nil {
		return err
	}
	c.keep(text, now.rowFacts, asked)
	return nil
}

// keep keeps a text that the row begins with. now are its facts, read at time asked.
func (c *rowContent) keep(text *budget.Text, now rowFacts, asked int64) {
	c.mu.Lock()
	n := text.Size()
	c.text = text
	c.version = now.version
	c.whole = n == now.size
	c.length.Store(n)
	c.s.kept.use(c, text.InFile())
	c.mu.Unlock()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.put(now, asked)
}

// isLost reports whether the text was evicted and the row has changed since: then it may begin with
// another text. Callers must hold c.fetching.
func (c *rowContent) isLost(now rowFacts) bool {
	return c.text == nil && c.version != "" && c.version != now.version
}

// evict frees the kept text. evicted is false, and nothing happens, while a goroutine works with it. With
// inMemory, the text of an open row is moved to a file instead, as long as there are not too many files.
func (c *rowContent) evict(inMemory bool) (evicted, moved bool) {
	if !c.fetching.TryLock() {
		return false, false
	}
	defer c.fetching.Unlock()
	if !c.mu.TryLock() {
		return false, false
	}
	defer c.mu.Unlock()
	if inMemory && c.open.Load() > 0 && !budget.FilesFull() {
		c.text.Spill()
		if c.text.InFile() {
			return true, true
		}
	}
	c.text.Close()
	c.text = nil
	c.whole = false
	c.length.Store(0)
	return true, false
}

// removeRow removes the row from the catalogue, and returns ErrStale.
func (c *rowContent) removeRow() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	row := c.row
	if c.s.rows[row.path] == row {
		c.s.remove(row.path)
	}
	return fmt.Errorf("%w: %s is gone", storage.ErrStale, row.name())
}

// replaceRow makes the name stand for another object, and returns ErrStale.
func (c *rowContent) replaceRow(now rowFacts) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	row := c.row
	if c.s.rows[row.path] == row {
		c.s.replace(row, now)
	}
	if c.whole { // open objects show its last state
		row.size = c.length.Load()
	}
	return fmt.Errorf("%w: %s was replaced", storage.ErrStale, row.name())
}

// keepAppended adds appended data to the text, if that is the whole row of before and is not being
// fetched. Otherwise the data is fetched when it is read.
func (c *rowContent) keepAppended(before rowFacts, data []byte, after rowFacts) {
	if !c.fetching.TryLock() {
		return
	}
	defer c.fetching.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	isWhole := c.text != nil && c.version == before.version && c.text.Size() == before.size
	isAppended := after.size == before.size+int64(len(data))
	if !isWhole || !isAppended {
		return
	}
	c.s.kept.reserve(c.text, after.size)
	_, err := c.text.Write(data)
	if err != nil {
		return
	}
	c.version = after.version
	c.length.Store(after.size)
	c.s.kept.use(c, c.text.InFile())
}

// beginning has a row's facts and its first headSize bytes.
type beginning struct {
	rowFacts
	head []byte
}

// heads reads the beginnings of rows, by their paths, in any order. Rows that are gone have none.
func (s *Storage) heads(paths []string) (found []beginning, err error) {
	err = s.try(readLimit, func(ctx context.Context, c conn) error {
		found = found[:0]
		sql := s.sql.heads
		args := []any{paths, headSize}
		if s.look.noted.Load() {
			sql = s.sql.notedHeads
			args = append(args, s.quoted)
		}
		rows, _ := c.Query(ctx, sql, args...) // rows has the error
		var b beginning
		_, err := pgx.ForEachRow(rows, append(b.targets(), &b.head), func() error {
			found = append(found, b)
			return nil
		})
		return err
	})
	return found, err
}

// aheadRows bounds the heads of rows that are read at once.
const aheadRows = 1024

// ReadAhead implements storage.Storage. It reads the heads of the rows that are not kept.
func (s *Storage) ReadAhead(names []string) {
	if len(names) < 2 {
		return // a read of it takes no longer
	}
	s.refresh()
	var paths []string
	contents := map[string]*rowContent{} // by path
	s.mu.RLock()
	for _, name := range names {
		path := s.PathOf(name)
		r := s.rows[path]
		if r != nil && r.content.length.Load() == 0 {
			paths = append(paths, path)
			contents[path] = &r.content
		}
	}
	s.mu.RUnlock()
	for some := range slices.Chunk(paths, aheadRows) {
		asked := s.now()
		found, err := s.heads(some)
		if err != nil {
			return // reads of these rows report it
		}
		for _, head := range found {
			contents[head.path].keepAhead(head, asked)
		}
	}
}

// keepAhead keeps the head of a row that was read ahead at time asked, unless something is kept or being
// fetched.
func (c *rowContent) keepAhead(head beginning, asked int64) {
	if !c.fetching.TryLock() {
		return
	}
	defer c.fetching.Unlock()
	if c.length.Load() == 0 {
		_ = c.keepHead(head, asked) // a read reports the error
	}
}
