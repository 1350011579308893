package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"sessionfs/sessioncore/budget"
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

// queryWithin writes the result of a query on copied files to out. It doubles the connection's
// memory until it suffices.
func queryWithin(ctx context.Context, c *fileCopies, match string, out *jsonLines) error {
	hold := out.hold.Another()
	defer hold.Close()
	size := int64(firstMemory)
	for {
		if err := hold.Resize(size); err != nil {
			return err
		}
		out.text.Reset()
		err := query(ctx, c, match, out, size)
		if size >= maxMemory || out.full || !errors.Is(err, budget.ErrNoMemory) {
			return err
		}
		size *= 2
	}
}

// query writes the result of a query on copied files to out, with a connection of that much memory.
func query(ctx context.Context, c *fileCopies, match string, out *jsonLines, memory int64) error {
	var failed error // already an error of this package
	bounds := sqlite.Limits{Memory: memory, Value: maxValue}
	err := sqlite.With(ctx, copiesVFS{c}, databaseName, bounds, func(conn *sqlite3.Conn) error {
		err := fts5.Register(conn)
		if err != nil {
			return err
		}
		failed = selectPrompts(conn, match, out)
		return nil
	})
	switch {
	case errors.Is(err, sqlite.ErrNoMemory):
		return noMemory(memory)
	case err != nil:
		return readError(err)
	}
	return failed
}

// readError wraps an error of the library as text: its errno could be mistaken for one of ours.
func readError(err error) error {
	switch {
	case errors.Is(err, sqlite3.TOOBIG):
		return fmt.Errorf("%w: a value of more than %d bytes", ErrTooBig, maxValue)
	case errors.Is(err, sqlite3.NOMEM):
		return noMemory(maxMemory)
	}
	return fmt.Errorf("%w: %v", ErrUnreadable, err)
}

// noMemory returns the error for a read that takes more memory than a connection has.
func noMemory(bytes int64) error {
	return fmt.Errorf("%w: reading the prompt history takes more than %d MiB", budget.ErrNoMemory, bytes>>20)
}

// selectPrompts writes the matching prompts, or all, in the order of the client's own searches.
func selectPrompts(conn *sqlite3.Conn, match string, out *jsonLines) error {
	found, err := findTables(conn)
	if err != nil || !found.history {
		return err // the client has created the file but nothing in it yet
	}
	columns := strings.Join(append([]string{"id, prompt, created_at, cwd"}, found.columns...), ", ")
	sql := "SELECT " + columns + " FROM history ORDER BY created_at DESC, id DESC"
	if match == "" {
		return readRows(conn, sql, nil, out)
	}
	words := wordsOf(match)
	if len(words) > 0 {
		if err := selectWords(conn, found, sql, words, out); err != nil || out.text.Len() > 0 {
			return err
		}
	}
	var ids map[int64]bool
	if err = fmt.Errorf("%w: %q", ErrQuery, match); found.index {
		ids, err = matching(conn, match)
	}
	switch {
	case errors.Is(err, ErrQuery) && len(words) > 0:
		return nil // match is words, and no prompt has them
	case err != nil:
		return err
	}
	return readRows(conn, sql, func(row *sqlite3.Stmt) bool { return ids[row.ColumnInt64(0)] }, out)
}

// selectWords writes the prompts with all words, as beginnings of indexed words or anywhere.
func selectWords(conn *sqlite3.Conn, found tables, sql string, words []string, out *jsonLines) (err error) {
	var ids map[int64]bool
	if found.index { // which ignores accents
		ids, err = matching(conn, `"`+strings.Join(words, `"* "`)+`"*`)
		if err != nil {
			return err
		}
	}
	return readRows(conn, sql, func(row *sqlite3.Stmt) bool {
		return ids[row.ColumnInt64(0)] || containsAll(row.ColumnRawText(1), words)
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
		if err := stmt.BindText(1, " "+match); err != nil {
			return readError(err)
		}
	}
	for stmt.Step() {
		if err := f(stmt); err != nil {
			return err
		}
	}
	err = stmt.Err()
	var code sqlite3.ExtendedErrorCode
	switch {
	case err == nil:
		return nil
	case match != "" && errors.As(err, &code) && code == sqlite3.ExtendedErrorCode(sqlite3.ERROR):
		return fmt.Errorf("%w: %q: %v", ErrQuery, match, err) // damage has other codes
	}
	return readError(err)
}

// wordsOf splits a text like the client's search: runs of letters and digits, in lower case.
func wordsOf(text string) []string {
	isSeparator := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	return strings.FieldsFunc(strings.ToLower(text), isSeparator)
}

// containsAll reports whether a prompt contains all words, ignoring ASCII case like SQLite's LIKE.
func containsAll(prompt []byte, words []string) bool {
	lower := bytes.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, prompt)
	return !slices.ContainsFunc(words, func(word string) bool { return !bytes.Contains(lower, []byte(word)) })
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
		name, sql := row.ColumnText(0), strings.ToLower(row.ColumnText(1))
		switch {
		case name == "history" && strings.HasPrefix(sql, "create table "):
			found.history = true
		case name == "history_fts" && strings.HasPrefix(sql, "create virtual table ") &&
			strings.Contains(sql, " using fts5"):
			found.index = true
		default:
			return fmt.Errorf("%w: %s is not what the client makes: %.100q", ErrUnreadable, name, sql)
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
			return fmt.Errorf("%w: history has a generated column", ErrUnreadable)
		}
		if name := row.ColumnText(0); name == "session_id" || name == "use_count" {
			found.columns = append(found.columns, name)
		}
		return nil
	})
	return found, err
}

// readRows writes the rows for which matches returns true, or all if it is nil.
func readRows(conn *sqlite3.Conn, sql string, matches func(*sqlite3.Stmt) bool, out *jsonLines) error {
	return eachRow(conn, sql, "", func(row *sqlite3.Stmt) error {
		if matches != nil && !matches(row) {
			return nil
		}
		return out.add(row)
	})
}
