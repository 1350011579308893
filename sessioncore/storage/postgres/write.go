package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

const (
	// writeLimit bounds the time of a write.
	writeLimit = time.Minute
	// settleLimit bounds the wait for a server that broke the connection during a write: a restart
	// after a crash takes some seconds.
	settleLimit = 15 * time.Second
	// maxContent is the size of the largest value that PostgreSQL stores.
	maxContent = 1<<30 - 1<<20
)

// rowChange is a statement that writes a row, with facts that show its success later.
type rowChange struct {
	path    string
	version string // of the row that it changes, "" if there is none
	sql     string
	args    []any // from $3 on, after the path and the version

	at    int64  // offset of data in the content
	data  string // the written text
	title *title // the written title, nil for none
}

// Append implements storage.Storage. The row must be in the state that it was locked in or,
// without a lock, last read in: otherwise the error wraps ErrStale, and callers read the row anew.
func (s *Storage) Append(name string, data []byte) (storage.Stat, error) {
	r, err := s.fileNow("append", name)
	if err != nil {
		return storage.Stat{}, err
	}
	before, _ := r.content.facts()
	if len(data) == 0 {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.rowStat(r), nil
	}
	return s.extend(name, r, before, rowEnd{data: data})
}

// rowEnd is the text that is appended to a row, with a title for it.
type rowEnd struct {
	data  []byte
	title *title // nil for none
}

// extend appends an end to the row r of a name, and gives it the title. Its facts must still be before; else the
// error wraps storage.ErrStale. As in the client, a title goes into the columns alone.
func (s *Storage) extend(name string, r *row, before rowFacts, end rowEnd) (storage.Stat, error) {
	text := string(end.data)
	t := end.title
	err := checkText(text, before.size)
	if err != nil {
		return storage.Stat{}, err
	}
	c := rowChange{
		path:    before.path,
		version: before.version,
		sql:     s.sql.append,
		args:    []any{nowMs(), text, before.size},
		at:      before.size,
		data:    text,
		title:   t,
	}
	if t != nil {
		c.sql = s.sql.setTitle
		c.args = append(c.args, t.text, t.source, t.updated)
	}
	after, asked, err := s.write(name, c)
	if err != nil {
		return storage.Stat{}, err
	}
	r.content.keepAppended(before, end.data, after)
	return s.written(r, after, asked), nil
}

// withHead returns a function that writes a row anew with another head, and a tail.
func (s *Storage) withHead(name string, o storage.Replacement) func(io.Writer) error {
	return func(w io.Writer) error {
		obj, err := s.Open(name)
		if err != nil {
			return err
		}
		defer obj.Close()
		n := int64(len(o.Head))
		middle := io.NewSectionReader(obj, n, o.Expect.Size-n)
		whole := io.MultiReader(bytes.NewReader(o.Head), middle, bytes.NewReader(o.Tail))
		_, err = io.Copy(w, whole)
		return err
	}
}

// Replace implements storage.Journal.
func (s *Storage) Replace(name string, o storage.Replacement) (storage.Stat, error) {
	if o.Write != nil {
		return s.replaceWhole(name, o)
	}
	return s.overwrite(name, o)
}

// overwrite is Replace with another head and a tail. A title slot that the columns can express goes there, so
// that the content is not written anew.
func (s *Storage) overwrite(name string, o storage.Replacement) (storage.Stat, error) {
	r, err := s.fileNow("overwrite", name)
	if err != nil {
		return storage.Stat{}, err
	}
	if o.Expect.Size < int64(len(o.Head)) {
		return storage.Stat{}, fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	t, isSlot := parseSlot(o.Head)
	isSameLine := isSlot && bytes.Equal(t.line(), o.Head)
	if !isSameLine {
		o.Write = s.withHead(name, o)
		return s.replaceWhole(name, o)
	}
	before, err := s.expected(name, o.Expect)
	if err != nil {
		return storage.Stat{}, err
	}
	return s.extend(name, r, before, rowEnd{data: o.Tail, title: &t})
}

// replaceWhole is Replace with a whole content. For a row that must not exist, the error wraps fs.ErrExist if it
// does.
func (s *Storage) replaceWhole(name string, o storage.Replacement) (storage.Stat, error) {
	err := storage.CheckName(name)
	if err != nil {
		return storage.Stat{}, err
	}
	s.refreshUnlocked(name)
	before, err := s.expected(name, o.Expect)
	if err != nil {
		return storage.Stat{}, err
	}
	var content strings.Builder // the text of a parameter, which is not copied once more
	err = o.Write(&content)
	if err != nil {
		return storage.Stat{}, err
	}
	if o.Ready != nil {
		o.Expect, err = o.Ready(&content)
		if err != nil {
			return storage.Stat{}, err
		}
		before, err = s.expected(name, o.Expect)
		if err != nil {
			return storage.Stat{}, err
		}
	}
	text := content.String()
	err = checkText(text, 0)
	if err != nil {
		return storage.Stat{}, err
	}
	t, _ := parseSlot([]byte(text[:min(len(text), slotSize)]))
	c := rowChange{
		path:    s.PathOf(name),
		version: before.version,
		sql:     s.sql.update,
		args:    []any{mtimeOf(o), text, t.text, t.source, t.updated},
		data:    text,
	}
	if before.version == "" {
		c.sql = s.sql.insert
	}
	after, asked, err := s.write(name, c)
	if errors.Is(err, storage.ErrStale) && before.version == "" {
		err = fmt.Errorf("%w: %w", err, fs.ErrExist)
	}
	if err != nil {
		return storage.Stat{}, err
	}
	return s.writtenAnew(after, asked), nil
}

// expected returns the facts of a row that has a token. For a zero token there must be no row, and
// the facts are zero.
func (s *Storage) expected(name string, token storage.Token) (rowFacts, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if token != (storage.Token{}) {
		err := s.checkParent("replace", name)
		if err != nil {
			return rowFacts{}, err
		}
	}
	n := s.find(name)
	switch {
	case n == nil && token == storage.Token{}:
		err := s.checkPath(name)
		if err != nil {
			return rowFacts{}, err
		}
		return rowFacts{}, s.mayHold(storage.Dir(name))
	case n == nil:
		return rowFacts{}, fmt.Errorf("%w: %s is gone", storage.ErrStale, name)
	case token == storage.Token{}:
		return rowFacts{}, fmt.Errorf("%w: %s: %w", storage.ErrStale, name, fs.ErrExist)
	case n.row == nil:
		return rowFacts{}, fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	case s.rowStat(n.row).Token != token:
		return rowFacts{}, fmt.Errorf("%w: %s", storage.ErrStale, name)
	default:
		return n.row.rowFacts, nil
	}
}

// mayHold returns an error if a row has the name of a directory, or of one above it. Callers must
// hold s.mu.
func (s *Storage) mayHold(dir string) error {
	for dir != "" {
		n := s.find(dir)
		if n != nil && n.row != nil {
			return fmt.Errorf("%w: %s", unix.ENOTDIR, dir)
		}
		dir = storage.Dir(dir)
	}
	return nil
}

// mtimeOf returns the mtime_ms that a row gets.
func mtimeOf(o storage.Replacement) int64 {
	if o.Modified.IsZero() {
		return nowMs()
	}
	return o.Modified.UnixMilli()
}

// nowMs returns the time in milliseconds since the epoch.
func nowMs() int64 { return time.Now().UnixMilli() }

// checkText returns an error for text that PostgreSQL cannot store behind size bytes.
func checkText(data string, size int64) error {
	switch {
	case !utf8.ValidString(data):
		return fmt.Errorf("%w: this is not UTF-8, and a database stores nothing else", unix.EINVAL)
	case strings.IndexByte(data, 0) >= 0:
		return fmt.Errorf("%w: a database stores no NUL byte", unix.EINVAL)
	}
	if size+int64(len(data)) > maxContent {
		return fmt.Errorf("%w: a database stores no more than %d MiB in a row", unix.EFBIG, maxContent>>20)
	}
	return nil
}

// write carries out a change, once. The error wraps ErrStale if the row's state was another one.
// asked is the clock before that.
func (s *Storage) write(name string, c rowChange) (after rowFacts, asked int64, err error) {
	s.mu.RLock()
	l := s.held[name]
	s.mu.RUnlock()
	asked = s.now()
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if l != nil && c.version != "" {
		c.version = l.version // the state of the row when it was locked
	}
	if l != nil && l.conn != nil {
		after, err = s.run(ctx, l.conn, c)
		l.end() // the COMMIT has released the locks of the server
	} else {
		err = s.pool.with(ctx, s.pool.writing, func(conn conn) error {
			after, err = s.run(ctx, conn, c)
			return err
		})
	}
	if err != nil && s.pool.canRetry(err) {
		after, err = s.settle(c, err)
	}
	switch {
	case err == nil:
		if l != nil {
			l.version = after.version
		}
		return after, asked, nil
	case errors.Is(err, pgx.ErrNoRows):
		s.look.invalidate()
		return rowFacts{}, asked, fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	return rowFacts{}, asked, serverError(err)
}

// invalidate makes the next request look at the table and wait for that, as the catalogue is wrong.
func (l *look) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good = time.Time{}
	l.slow = false
}

// run sends the statement with its COMMIT and, unless the row is locked, the beginning of a
// transaction, in one request. The error is pgx.ErrNoRows if the row's state is another one.
func (s *Storage) run(ctx context.Context, conn conn, c rowChange) (rowFacts, error) {
	var f rowFacts
	var batch pgx.Batch
	if isIdle(conn) { // otherwise the row is locked
		s.beginWrite(&batch, c.path)
	}
	arguments := append([]any{c.path, c.version}, c.args...)
	batch.Queue(c.sql, arguments...)
	at := batch.Len()
	batch.Queue(`COMMIT`)
	err := answer(conn.SendBatch(ctx, &batch), at, f.targets()...)
	if err != nil {
		return rowFacts{}, err
	}
	return f, nil
}

// answer scans the row that the nth statement of a batch returns, and waits for those after it. The
// error is pgx.ErrNoRows if it returned none and the others were carried out.
func answer(results pgx.BatchResults, nth int, targets ...any) error {
	var err error
	for n := 1; n < nth && err == nil; n++ {
		_, err = results.Exec()
	}
	if err == nil {
		err = results.QueryRow().Scan(targets...)
	}
	closed := results.Close()
	if closed != nil && (err == nil || errors.Is(err, pgx.ErrNoRows)) {
		return closed
	}
	return err
}

// settle repeats settleOnce until the server answers, for settleLimit. lost is the error of the connection on
// which the change was sent. Without an answer, the error says that the fate of the change is not known.
func (s *Storage) settle(c rowChange, lost error) (after rowFacts, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	pause := firstPause
	for {
		err = s.pool.with(ctx, s.pool.writing, func(conn conn) error {
			after, err = s.settleOnce(ctx, conn, c)
			return err
		})
		if err == nil {
			return after, nil
		}
		isLocked := errors.Is(serverError(err), storage.ErrLocked) // the first attempt may still be at work
		if !isLocked && !s.pool.canRetry(err) {
			return after, err
		}
		if !storage.Sleep(ctx, pause) {
			unknown := fmt.Errorf("%w; whether it was written is not known", unreachable(lost))
			return rowFacts{}, s.checkReachable(unknown)
		}
		pause = min(2*pause, time.Second)
	}
}

// settleOnce carries out a change after its answer was lost, unless the server did so. It cannot happen
// twice, even if the server still works on the first: that changes the state of the row.
func (s *Storage) settleOnce(ctx context.Context, conn conn, c rowChange) (rowFacts, error) {
	var now rowFacts
	var hasData bool
	sum := sha256.Sum256([]byte(c.data))
	var batch pgx.Batch
	s.beginWrite(&batch, c.path) // it waits for a first one under way
	batch.Queue(s.sql.written, c.path, len(c.data), c.at, sum[:])
	targets := append(now.targets(), &hasData)
	err := answer(conn.SendBatch(ctx, &batch), batch.Len(), targets...)
	isMissing := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !isMissing {
		return rowFacts{}, err
	}
	version := now.version // "" for a missing row
	if version == c.version {
		return s.run(ctx, conn, c)
	}
	hasTitle := c.title == nil || reflect.DeepEqual(now.title, *c.title)
	isWritten := !isMissing && hasData && hasTitle
	if !isWritten {
		return rowFacts{}, pgx.ErrNoRows
	}
	return now, nil
}

// written stores the facts of a row after a write, and returns its state. asked is the clock before the write.
func (s *Storage) written(r *row, after rowFacts, asked int64) storage.Stat {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[r.path] == r {
		s.put(after, asked)
		r = s.rows[r.path]
	}
	return s.rowStat(r)
}

// writtenAnew is written for a row that was written as a whole, so that it is another object now. asked is the
// clock before the write.
func (s *Storage) writtenAnew(after rowFacts, asked int64) storage.Stat {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.rows[after.path]
	if old == nil {
		r := s.newRow(after)
		s.add(r)
		return s.rowStat(r)
	}
	if old.stored > asked && old.version != after.version { // another program wrote since
		after = old.rowFacts
	}
	return s.rowStat(s.replace(old, after))
}
