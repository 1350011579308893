package history

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"
	"github.com/stretchr/testify/require"

	sessiondir "sessionfs/sessioncore/storage/dir"
)

// The tables as versions 14.9.9 and 18.2.3 of the client make them.
const (
	schema14 = `CREATE TABLE history (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	prompt TEXT NOT NULL,
	created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER)),
	cwd TEXT
);` + indexes
	schema18 = `CREATE TABLE history (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	prompt TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER)),
	cwd TEXT,
	session_id TEXT
);` + indexes
	indexes = `
CREATE INDEX idx_history_created_at ON history(created_at DESC);` + fullText
	fullText = `
CREATE VIRTUAL TABLE history_fts USING fts5(prompt, content='history', content_rowid='id');
CREATE TRIGGER history_ai AFTER INSERT ON history BEGIN
	INSERT INTO history_fts(rowid, prompt) VALUES (new.id, new.prompt);
END;`
)

// connect opens the database in dir for writing, as the client does, after some SQL.
func connect(t testing.TB, dir string, first ...string) *sqlite3.Conn {
	conn, err := sqlite3.Open(filepath.Join(dir, databaseName))
	require.NoError(t, err)
	run(t, conn, "PRAGMA synchronous=OFF; %s PRAGMA journal_mode=WAL", strings.Join(first, ""))
	require.NoError(t, fts5.Register(conn))
	return conn
}

func run(t testing.TB, conn *sqlite3.Conn, format string, args ...any) {
	sql := fmt.Sprintf(format, args...)
	require.NoError(t, conn.Exec(sql), sql)
}

// database makes a database with SQL, and an hour old.
func database(t testing.TB, sql ...string) string {
	dir := t.TempDir()
	conn := connect(t, dir)
	run(t, conn, "%s", strings.Join(sql, ";"))
	require.NoError(t, conn.Close())
	age(t, dir)
	return dir
}

// age makes the files an hour old: what was written a moment ago is read with more care.
func age(t testing.TB, dir string) {
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	then := time.Now().Add(-time.Hour)
	for _, f := range files {
		require.NoError(t, os.Chtimes(filepath.Join(dir, f.Name()), then, then))
	}
}

// open returns the history in dir.
func open(t testing.TB, dir string) *History {
	files, err := sessiondir.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { files.Close() })
	return New(files)
}

// render returns the answer to a query.
func render(t testing.TB, h *History, match string) string {
	t.Helper()
	got, err := h.Render(context.Background(), match, nil)
	require.NoError(t, err)
	return string(got.Text)
}

// prompts returns the ids in an answer.
func ids(t testing.TB, text string) string {
	var ids []string
	for line := range strings.Lines(text) {
		id, _, ok := strings.Cut(strings.TrimPrefix(line, `{"id":`), ",")
		require.True(t, ok, line)
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

// picture is what there is in a directory, with times.
func picture(t testing.TB, dir string) string {
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		fmt.Fprintln(&b, path, info.Mode().Type(), info.Size(), info.ModTime().UnixNano())
		return nil
	}))
	return b.String()
}

// TestImports: the package is usable without the file system, and nothing in it needs cgo (docs/design.md section 10).
func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.CgoFiles}}", ".")
	var problems strings.Builder
	list.Stderr = &problems
	out, err := list.Output()
	require.NoError(t, err, problems.String())
	require.Contains(t, string(out), "github.com/ncruces/go-sqlite3 []", "the list is not this package's")
	for dep := range strings.Lines(string(out)) {
		name, cgo, _ := strings.Cut(strings.TrimSpace(dep), " ")
		if strings.Contains(strings.ToLower(name), "fuse") || strings.Contains(name, ".") && cgo != "[]" {
			t.Errorf("it depends on %s", dep)
		}
	}
}
