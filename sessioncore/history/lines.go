package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/budget"
)

// maxRendering is the maximum size of an answer in bytes; an open file keeps it in memory. 20,000 prompts of 270
// bytes take a twelfth of it.
const maxRendering = 64 << 20

// lines collects JSON lines, or only counts their bytes.
type lines struct {
	keep bool
	text bytes.Buffer
	size int64
	hold *budget.Hold // text
	// full says that there is no memory for text.
	full bool

	line bytes.Buffer // the line being written
}

func (l *lines) reset() {
	l.text.Reset()
	l.size = 0
}

// grow makes room for n more bytes of text.
func (l *lines) grow(n int) error {
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

// line is a row of the table; its keys are the columns.
type line struct {
	ID        any  `json:"id"`
	Prompt    any  `json:"prompt"`
	CreatedAt any  `json:"created_at"`
	Cwd       any  `json:"cwd"`
	SessionID *any `json:"session_id,omitempty"` // nil if there is no such column
	UseCount  *any `json:"use_count,omitempty"`  // the same
}

// add appends the current row of a statement: id, prompt, created_at, cwd and possibly session_id and use_count.
func (l *lines) add(row *sqlite3.Stmt) error {
	v := line{ID: value(row, 0), Prompt: value(row, 1), CreatedAt: created(value(row, 2)), Cwd: value(row, 3)}
	for column := 4; column < row.ColumnCount(); column++ {
		value := value(row, column)
		switch row.ColumnName(column) {
		case "session_id":
			v.SessionID = &value
		case "use_count":
			v.UseCount = &value
		}
	}
	l.line.Reset()
	enc := json.NewEncoder(&l.line)
	enc.SetEscapeHTML(false) // as JSON.stringify writes it, and as users grep for it
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("%w: %v", ErrUnreadable, err)
	}
	l.size += int64(l.line.Len())
	if l.size > maxRendering {
		return fmt.Errorf("%w: more than %d bytes", ErrTooBig, maxRendering)
	}
	if l.keep {
		if err := l.grow(l.line.Len()); err != nil {
			return err
		}
		l.text.Write(l.line.Bytes())
	}
	return nil
}

// value returns a column as a value for package json. SQLite columns hold values of any type; json replaces invalid
// UTF-8 by U+FFFD.
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

// created converts seconds since the epoch, as the client stores them, to the form of times in sessions. It returns
// other values unchanged.
func created(v any) any {
	seconds, ok := v.(int64)
	if !ok {
		return v
	}
	const lastSecond = 253402300799 // of the year 9999
	if seconds < 0 || seconds > lastSecond {
		return v
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}
