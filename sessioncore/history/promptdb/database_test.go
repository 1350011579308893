package promptdb

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

	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/sessiontest"
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
func open(t testing.TB, dir string) *PromptDatabase {
	return New(sessiontest.OpenDir(t, dir))
}

// render returns the answer to a query.
func render(t testing.TB, h history.History, match string) string {
	t.Helper()
	got, err := h.Render(context.Background(), match, nil)
	require.NoError(t, err)
	return string(got.Text)
}

// refuses requires that a query has no answer, for a reason.
func refuses(t testing.TB, h history.History, match string, want error, about ...any) {
	t.Helper()
	_, err := h.Render(context.Background(), match, nil)
	require.ErrorIs(t, err, want, about...)
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

// rows are prompts in no order, with ties in time.
const rows = `INSERT INTO history(id, prompt, created_at, cwd) VALUES
	(1, 'fix the git-commit hook', 1770000000, '/home/dev/a'),
	(2, 'Why is it RED?', 1770000300, NULL),
	(3, 'fix it' || char(10) || 'with "quotes" \ <b>&amp;</b> é 🌙 ' || char(1), 1770000100, '/tmp'),
	(5, 'the same second, later', 1770000100, '')`

func TestPromptsAreListed(t *testing.T) {
	const want = `{"id":2,"prompt":"Why is it RED?","created_at":"2026-02-02T02:45:00Z","cwd":null}
{"id":5,"prompt":"the same second, later","created_at":"2026-02-02T02:41:40Z","cwd":""}
{"id":3,"prompt":"fix it\nwith \"quotes\" \\ <b>&amp;</b> é 🌙 \u0001","created_at":"2026-02-02T02:41:40Z","cwd":"/tmp"}
{"id":1,"prompt":"fix the git-commit hook","created_at":"2026-02-02T02:40:00Z","cwd":"/home/dev/a"}
`
	require.Equal(t, want, render(t, open(t, database(t, schema14, rows)), ""))

	h := open(t, database(t, schema18, rows, "UPDATE history SET session_id = 's1' WHERE id = 3"))
	want18 := strings.ReplaceAll(want, `"}`, `","session_id":null}`)
	want18 = strings.ReplaceAll(want18, `"cwd":null}`, `"cwd":null,"session_id":null}`)
	want18 = strings.Replace(want18, `"/tmp","session_id":null`, `"/tmp","session_id":"s1"`, 1)
	require.Equal(t, want18, render(t, h, ""))

	h = open(t, database(t, schema18, rows, "ALTER TABLE history ADD COLUMN use_count INTEGER NOT NULL DEFAULT 1",
		"UPDATE history SET use_count = 7 WHERE id = 2"))
	require.True(t, strings.HasPrefix(render(t, h, ""),
		`{"id":2,"prompt":"Why is it RED?","created_at":"2026-02-02T02:45:00Z","cwd":null,"session_id":null,"use_count":7}`+"\n"))
}

// TestSearch: words are found as beginnings of words or within one. Text without such a prompt is a query of FTS5, and
// text without a word that is none is refused.
func TestSearch(t *testing.T) {
	for _, schema := range []string{schema14, schema18} {
		h := open(t, database(t, schema, rows))
		for match, want := range map[string]string{
			"fix": "3 1", "FIX": "3 1", "it": "2 3 1", "mit": "1", "ommi ix": "1", "e": "2 5 3 1", "é": "3", "nowhere": "", "\xff\xfe": "",
			"re*": "2", "fix AND hook": "1", "fix NOT hook": "3", "fix OR red": "2 3 1", `"git-commit"`: "1", `"fix it"`: "3 1",
			"prompt:later": "5", "NEAR(fix it)": "3", "^fix": "3 1", "the AND later": "5",
			"git-commit": "1", "GIT-COM": "1", "git_commit": "1", "git.commit": "1", "*fix": "3 1", "-fix": "3 1", "fix AND": "", "fix b)": "3",
			"cwd:fix": "", "'fix": "3 1", "' OR 1=1 --": "", "{fix": "3 1", "NEAR(fix hook, x)": "", "fix's": "3", `"fix`: "3 1", "C++": "5 1",
			"fix\x01hook": "1", strings.Repeat("a", 255): "",
		} {
			require.Equal(t, want, ids(t, render(t, h, match)), "%q", match)
		}
		for _, match := range []string{`"`, "*", "(", ":", "'", ";", strings.Repeat("(", 255), " ", "\x01", "^", "++", "--", "\xff\"", "…\""} {
			refuses(t, h, match, history.ErrQuery, "%q", match)
		}
	}
}

// TestOddValues: columns of SQLite hold values of any type.
func TestOddValues(t *testing.T) {
	const anyTypes = "CREATE TABLE history(id, prompt, created_at, cwd);" + fullText
	for values, want := range map[string]string{
		"1, NULL, 0, NULL":           `{"id":1,"prompt":null,"created_at":"1970-01-01T00:00:00Z","cwd":null}`,
		"1, 7, -1, 8":                `{"id":1,"prompt":7,"created_at":-1,"cwd":8}`,
		"'a', x'00ff41', 1.5, 9e999": `{"id":"a","prompt":"\u0000` + `\ufffd` + `A","created_at":1.5,"cwd":null}`,
		"9223372036854775807, '', 'x', CAST(x'610062' AS TEXT)":  `{"id":9223372036854775807,"prompt":"","created_at":"x","cwd":"a\u0000b"}`,
		"1, 2, 9223372036854775807, -9e999":                      `{"id":1,"prompt":2,"created_at":9223372036854775807,"cwd":null}`,
		"1, CAST(x'eda080' AS TEXT), x'31', CAST(x'c3' AS TEXT)": `{"id":1,"prompt":"\ufffd\ufffd\ufffd","created_at":"1","cwd":"\ufffd"}`,
	} {
		h := open(t, database(t, anyTypes, "DROP TRIGGER history_ai", "INSERT INTO history VALUES ("+values+")"))
		require.Equal(t, want+"\n", render(t, h, ""), values)
	}
}

// TestNothingThere: a file that the client has just made has no prompts.
func TestNothingThere(t *testing.T) {
	for name, sql := range map[string]string{"empty": "", "no history": "CREATE TABLE other(a)", "no prompts": schema18} {
		h := open(t, database(t, sql))
		require.Empty(t, render(t, h, ""), name)
		require.Empty(t, render(t, h, "fix"), name)
	}
}
