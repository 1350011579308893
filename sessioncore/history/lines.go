package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// maxRendering is the longest answer in bytes: an open file keeps it in memory. 20,000 prompts of 270 bytes are a
// twelfth of it.
const maxRendering = 64 << 20

// lines collects JSON lines, or counts their bytes.
type lines struct {
	keep bool
	text bytes.Buffer
	size int64

	line bytes.Buffer // being made
}

func (l *lines) reset() {
	l.text.Reset()
	l.size = 0
}

// line is a row of the table; keys are its columns.
type line struct {
	ID        any  `json:"id"`
	Prompt    any  `json:"prompt"`
	CreatedAt any  `json:"created_at"`
	Cwd       any  `json:"cwd"`
	SessionID *any `json:"session_id,omitempty"` // nil: there is no such column
}

// add adds the row at which a statement stands: id, prompt, created_at, cwd and perhaps session_id.
func (l *lines) add(row *sqlite3.Stmt) error {
	v := line{value(row, 0), value(row, 1), created(value(row, 2)), value(row, 3), nil}
	if row.ColumnCount() > 4 {
		id := value(row, 4)
		v.SessionID = &id
	}
	l.line.Reset()
	enc := json.NewEncoder(&l.line)
	enc.SetEscapeHTML(false) // as JSON.stringify writes it, and as one greps for it
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("%w: %v", ErrUnreadable, err)
	}
	l.size += int64(l.line.Len())
	if l.size > maxRendering {
		return fmt.Errorf("%w: more than %d bytes", ErrTooBig, maxRendering)
	}
	if l.keep {
		l.text.Write(l.line.Bytes())
	}
	return nil
}

// value returns a column as what JSON has for it. Columns of SQLite hold values of any type; bytes that are no
// UTF-8 become U+FFFD.
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

// created turns seconds since the epoch, which the client stores, into the form that times have in sessions. What is
// no time stays as it is.
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
