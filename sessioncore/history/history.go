package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Names of the database's files.
const (
	databaseName = "history.db"
	walName      = databaseName + "-wal"
	journalName  = databaseName + "-journal"
)

const (
	// maxTime bounds a read with all its attempts. 100,000 prompts take a third of a second.
	maxTime = 10 * time.Second
	// pause is the time between two attempts to copy the files, so that a writer can proceed.
	pause = time.Millisecond
)

var (
	// ErrQuery means that the query contains no word and is not a valid FTS5 query.
	ErrQuery = errors.New("not a search query")
	// ErrTooBig means that a value is longer than maxValue, the answer longer than maxRendering, or
	// the files larger than maxFileBytes.
	ErrTooBig = errors.New("the prompt history is too big")
	// ErrTooSlow means that the answer took more than maxTime.
	ErrTooSlow = errors.New("reading the prompt history takes too long")
	// ErrUnreadable means that the file is not a database, is damaged, or is not the client's.
	ErrUnreadable = errors.New("the prompt history cannot be read")
)

// History is the prompt history of a SOURCE. It is safe for concurrent use.
type History interface {
	// State returns the current state of the files. The error wraps fs.ErrNotExist if there is no
	// history or it is not a regular file.
	State() (State, error)
	// Render returns the prompts with all words of match, else those that match it as an FTS5
	// query, or all prompts for "": one JSON object per line, newest first, as the client lists
	// them. hold accounts for the text; it may be nil, and is closed after an error.
	//
	// Errors wrap fs.ErrNotExist, an error of this package, budget.ErrNoMemory or a storage error.
	Render(ctx context.Context, match string, hold *budget.Hold) (Rendering, error)
}

// PromptDatabase is the history that omp keeps in SQLite.
type PromptDatabase struct {
	files storage.Files
	limit time.Duration // maxTime, or less in tests
	turn  chan struct{} // full during a read of up to maxMemory and maxFileBytes; others wait
}

// New returns the history in the database in files, which need not exist.
func New(files storage.Files) *PromptDatabase {
	return &PromptDatabase{files: files, limit: maxTime, turn: make(chan struct{}, 1)}
}

// State identifies a state of a history: of settled Renderings, equal States mean equal content.
type State struct {
	database storage.Stat  // or of the file of lines
	wal      storage.Token // zero if there is no log
	parts    uint64        // of several histories: a hash of their states
}

// Stat returns the database's Stat with the times of the last change of it or its log.
func (s State) Stat() storage.Stat {
	st := s.database
	st.Modified = max(st.Modified, s.wal.Modified)
	st.Changed = max(st.Changed, s.wal.Changed)
	return st
}

// stateOf returns the state of the history in a file.
func stateOf(files storage.Files, name string) (State, error) {
	st, err := files.Stat(name)
	if err != nil {
		return State{}, err
	}
	if st.Kind != storage.KindFile {
		return State{}, fmt.Errorf("%w: %s is not a file", fs.ErrNotExist, name)
	}
	return State{database: st}, nil
}

// State implements History.
func (h *PromptDatabase) State() (State, error) {
	s, err := stateOf(h.files, databaseName)
	if err != nil {
		return s, err
	}
	if wal, err := h.files.Stat(walName); err == nil && wal.Kind == storage.KindFile {
		s.wal = wal.Token
	}
	return s, nil
}

// Rendering is the result of History.Render.
type Rendering struct {
	Text  []byte
	State State // of the database when it was read
	// Settled reports that any later change of the database changes its State. It is false for some
	// milliseconds after a change if the file system's clock is coarse.
	Settled bool
}

// Render implements History.
func (h *PromptDatabase) Render(ctx context.Context, match string, hold *budget.Hold) (_ Rendering, err error) {
	defer closeAfter(&err, hold)
	out := &jsonLines{hold: hold}
	c, err := h.read(ctx, match, out)
	if err != nil {
		return Rendering{}, err
	}
	return Rendering{out.text.Bytes(), c.state, c.settled}, nil
}

// read copies the files until they are of one committed state, and runs a query on the copies,
// within the limits.
func (h *PromptDatabase) read(request context.Context, match string, out *jsonLines) (c *fileCopies, err error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-request.Done():
		return nil, request.Err()
	}
	ctx, cancel := context.WithTimeout(request, h.limit)
	defer cancel()
	room := out.hold.Another()
	defer room.Close()
	for err = errChanged; errors.Is(err, errChanged) && ctx.Err() == nil; {
		if _, err := h.State(); err != nil {
			return nil, err
		}
		c, err = h.copy(ctx, &room)
		if errors.Is(err, errChanged) {
			time.Sleep(pause)
		}
	}
	if err == nil {
		if err = queryWithin(ctx, c, match, out); err != nil && c.content[journalName] != nil {
			err = fmt.Errorf("%w (%s has a transaction that was cut off or is under way)", err, journalName)
		}
	}
	switch {
	case request.Err() != nil:
		err = request.Err()
	case errors.Is(err, errChanged):
		err = fmt.Errorf("%w: the database changed all the time, for %v", ErrTooSlow, h.limit)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: more than %v", ErrTooSlow, h.limit)
	}
	return c, err
}

// maxRendering bounds an answer in bytes. 20,000 prompts of 270 bytes take a twelfth of it.
const maxRendering = 64 << 20

// jsonLines collects JSON lines.
type jsonLines struct {
	text bytes.Buffer
	hold *budget.Hold // text
	full bool         // there was no memory for text
	line []byte       // the line being written
}

// grow makes room for n more bytes of text.
func (l *jsonLines) grow(n int) error {
	need := l.text.Len() + n
	if need <= l.text.Cap() {
		return nil
	}
	// The buffer at most doubles, or grows by n. Both are there while one is copied to the other.
	if err := l.hold.Resize(int64(3*l.text.Cap() + n)); err != nil {
		l.full = true
		return err
	}
	l.text.Grow(n)
	l.hold.Set(int64(l.text.Cap()))
	return nil
}

// promptRow is a row of the table; its keys are the columns.
type promptRow struct {
	ID        any  `json:"id"`
	Prompt    any  `json:"prompt"`
	CreatedAt any  `json:"created_at"`
	Cwd       any  `json:"cwd"`
	SessionID *any `json:"session_id,omitempty"` // nil if there is no such column
	UseCount  *any `json:"use_count,omitempty"`  // the same
}

// add appends a statement's row: id, prompt, created_at, cwd, perhaps session_id and use_count.
func (l *jsonLines) add(row *sqlite3.Stmt) error {
	v := promptRow{ID: value(row, 0), Prompt: value(row, 1), CreatedAt: created(value(row, 2)), Cwd: value(row, 3)}
	for column := 4; column < row.ColumnCount(); column++ {
		value := value(row, column)
		switch row.ColumnName(column) {
		case "session_id":
			v.SessionID = &value
		case "use_count":
			v.UseCount = &value
		}
	}
	return l.put(&v)
}

// put appends a line.
func (l *jsonLines) put(v *promptRow) error {
	l.line = rawjson.AppendLine(l.line[:0], v)
	return l.end()
}

// end appends the line in l.line to the text.
func (l *jsonLines) end() error {
	if l.text.Len()+len(l.line) > maxRendering {
		return fmt.Errorf("%w: more than %d bytes", ErrTooBig, maxRendering)
	}
	if err := l.grow(len(l.line)); err != nil {
		return err
	}
	l.text.Write(l.line)
	return nil
}

// value returns a column for package json, which replaces invalid UTF-8 by U+FFFD.
func value(row *sqlite3.Stmt, column int) any {
	switch row.ColumnType(column) {
	case sqlite3.INTEGER:
		return row.ColumnInt64(column)
	case sqlite3.FLOAT:
		if f := row.ColumnFloat(column); !math.IsInf(f, 0) {
			return f
		}
	case sqlite3.TEXT:
		return string(row.ColumnRawText(column))
	case sqlite3.BLOB:
		return string(row.ColumnRawBlob(column))
	}
	return nil
}

// created converts seconds since the epoch to the form of times in sessions; other values stay.
func created(v any) any {
	const lastSecond = 253402300799 // of the year 9999
	seconds, ok := v.(int64)
	if !ok || seconds < 0 || seconds > lastSecond {
		return v
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}
