package promptdb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/storage/sqlite"
)

const (
	// maxMemory bounds the bytes of a connection: its cache (2 MB), the log's index (8 bytes per
	// frame), and a few copies of the longest value.
	maxMemory = 64 << 20
	// firstMemory is the first limit of a connection. It suffices unless prompts are very long.
	firstMemory = 8 << 20
	// maxValue is the maximum length of a value in bytes. Nobody types that much.
	maxValue = 16 << 20
)

// query writes the result of a query to out, with a connection of that much memory. Errors are of this package, of
// the storage, or of ctx.
func (h *PromptDatabase) query(ctx context.Context, match string, out *history.PromptLines, memory int64) error {
	d := sqlite.Database{
		Files:  h.files,
		Name:   databaseName,
		Limits: sqlite.Limits{Memory: memory, Value: maxValue},
	}
	defer d.Close()
	var failed error // of the last transaction
	err := d.Read(ctx, func(conn *sqlite.Conn) error {
		out.Reset()
		err := fts5.Register(conn.Conn)
		if err != nil {
			return err
		}
		failed = selectPrompts(conn.Conn, match, out)
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return failed
	case errors.Is(err, sqlite.ErrNoMemory):
		return noMemory(memory)
	case errors.Is(err, sqlite.ErrUnreadable):
		return fmt.Errorf("%w: %v", history.ErrUnreadable, err)
	}
	return err
}

// readError wraps an error of the library as text: its errno could be mistaken for one of ours.
func readError(err error) error {
	switch {
	case errors.Is(err, sqlite3.TOOBIG):
		return fmt.Errorf("%w: a value of more than %d bytes", history.ErrTooBig, maxValue)
	case errors.Is(err, sqlite3.NOMEM):
		return noMemory(maxMemory)
	}
	return fmt.Errorf("%w: %v", history.ErrUnreadable, err)
}

// noMemory returns the error for a read that takes more memory than a connection has.
func noMemory(bytes int64) error {
	return fmt.Errorf("%w: reading the prompt history takes more than %d MiB", budget.ErrNoMemory, bytes>>20)
}

// selectPrompts writes the matching prompts, or all, in the order of the client's own searches.
func selectPrompts(conn *sqlite3.Conn, match string, out *history.PromptLines) error {
	found, err := findTables(conn)
	if err != nil || !found.history {
		return err // the client has created the file but nothing in it yet
	}
	columns := strings.Join(append([]string{"id, prompt, created_at, cwd"}, found.columns...), ", ")
	sql := "SELECT " + columns + " FROM history ORDER BY created_at DESC, id DESC"
	if match == "" {
		return readRows(conn, sql, nil, out)
	}
	words := history.WordsOf(match)
	if len(words) > 0 {
		err := selectWords(conn, found, sql, words, out)
		if err != nil || !out.IsEmpty() {
			return err
		}
	}
	var ids map[int64]bool
	err = fmt.Errorf("%w: %q", history.ErrQuery, match)
	if found.index {
		ids, err = matching(conn, match)
	}
	switch {
	case errors.Is(err, history.ErrQuery) && len(words) > 0:
		return nil // match is words, and no prompt has them
	case err != nil:
		return err
	}
	return readRows(conn, sql, func(row *sqlite3.Stmt) bool {
		return ids[row.ColumnInt64(0)]
	}, out)
}

// selectWords writes the prompts with all words, as beginnings of indexed words or anywhere.
func selectWords(conn *sqlite3.Conn, found tables, sql string, words []string, out *history.PromptLines) (err error) {
	var ids map[int64]bool
	if found.index { // which ignores accents
		ids, err = matching(conn, `"`+strings.Join(words, `"* "`)+`"*`)
		if err != nil {
			return err
		}
	}
	return readRows(conn, sql, func(row *sqlite3.Stmt) bool {
		return ids[row.ColumnInt64(0)] || history.HasWords(row.ColumnRawText(1), words)
	}, out)
}

// matching returns the ids of the prompts that match an FTS5 query.
func matching(conn *sqlite3.Conn, match string) (map[int64]bool, error) {
	ids := map[int64]bool{}
	const sql = "SELECT rowid FROM history_fts WHERE history_fts MATCH ?"
	return ids, eachRow(conn, sql, match, func(row *sqlite3.Stmt) error {
		ids[row.ColumnInt64(0)] = true
		return nil
	})
}

// eachRow calls f for each row of a query until f fails. match, unless "", is its parameter.
func eachRow(conn *sqlite3.Conn, sql, match string, f func(row *sqlite3.Stmt) error) error {
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		return readError(err)
	}
	defer stmt.Close()
	if match != "" {
		// The blank keeps FTS5 from taking a match that begins with * for a special query.
		err := stmt.BindText(1, " "+match)
		if err != nil {
			return readError(err)
		}
	}
	for stmt.Step() {
		err := f(stmt)
		if err != nil {
			return err
		}
	}
	err = stmt.Err()
	var code sqlite3.ExtendedErrorCode
	switch {
	case err == nil:
		return nil
	case match != "" && errors.As(err, &code) && code == sqlite3.ExtendedErrorCode(sqlite3.ERROR):
		return fmt.Errorf("%w: %q: %v", history.ErrQuery, match, err) // damage has other codes
	}
	return readError(err)
}

// tables holds the client's tables that the database has, and the columns that older versions lack.
type tables struct {
	history, index bool
	columns        []string
}

// findTables reads the schema. It refuses views and other virtual tables, which could run code.
func findTables(conn *sqlite3.Conn) (found tables, err error) {
	const schema = `SELECT lower(name), sql FROM sqlite_schema
WHERE type IN ('table', 'view') AND lower(name) IN ('history', 'history_fts')`
	err = eachRow(conn, schema, "", func(row *sqlite3.Stmt) error {
		name := row.ColumnText(0)
		sql := strings.ToLower(row.ColumnText(1))
		switch {
		case name == "history" && strings.HasPrefix(sql, "create table "):
			found.history = true
		case name == "history_fts" && strings.HasPrefix(sql, "create virtual table ") &&
			strings.Contains(sql, " using fts5"):
			found.index = true
		default:
			return fmt.Errorf("%w: %s is not what the client makes: %.100q", history.ErrUnreadable, name, sql)
		}
		return nil
	})
	if err != nil || !found.history {
		return found, err
	}
	// The columns of newer clients. Generated columns are refused, as they can take any time.
	const columns = "SELECT lower(name), hidden FROM pragma_table_xinfo('history')"
	err = eachRow(conn, columns, "", func(row *sqlite3.Stmt) error {
		if row.ColumnInt(1) != 0 {
			return fmt.Errorf("%w: history has a generated column", history.ErrUnreadable)
		}
		name := row.ColumnText(0)
		if name == "session_id" || name == "use_count" {
			found.columns = append(found.columns, name)
		}
		return nil
	})
	return found, err
}

// readRows writes the rows that matches reports, or all if it is nil.
func readRows(conn *sqlite3.Conn, sql string, matches func(*sqlite3.Stmt) bool, out *history.PromptLines) error {
	return eachRow(conn, sql, "", func(row *sqlite3.Stmt) error {
		if matches != nil && !matches(row) {
			return nil
		}
		return out.Put(rowOf(row))
	})
}

// rowOf returns a statement's row: id, prompt, created_at, cwd, perhaps session_id and use_count.
func rowOf(row *sqlite3.Stmt) *history.PromptRow {
	v := history.PromptRow{
		ID:        value(row, 0),
		Prompt:    value(row, 1),
		CreatedAt: history.Created(value(row, 2)),
		Cwd:       value(row, 3),
	}
	for column := 4; column < row.ColumnCount(); column++ {
		value := value(row, column)
		switch row.ColumnName(column) {
		case "session_id":
			v.SessionID = &value
		case "use_count":
			v.UseCount = &value
		}
	}
	return &v
}

// value returns a column for package json, which replaces invalid UTF-8 by U+FFFD.
func value(row *sqlite3.Stmt, column int) any {
	switch row.ColumnType(column) {
	case sqlite3.INTEGER:
		return row.ColumnInt64(column)
	case sqlite3.FLOAT:
		f := row.ColumnFloat(column)
		if !math.IsInf(f, 0) {
			return f
		}
	case sqlite3.TEXT:
		return string(row.ColumnRawText(column))
	case sqlite3.BLOB:
		return string(row.ColumnRawBlob(column))
	}
	return nil
}
