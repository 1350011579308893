package promptdb

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestNoFileIsTouched: in whatever state the client has left its files, reading makes, changes and removes none, and
// works where none could be made.
func TestNoFileIsTouched(t *testing.T) {
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				require.NoError(t, os.Remove(filepath.Join(dir, name)))
			}
		}
	}
	for name, c := range map[string]struct {
		live    bool // a writer has the database open, with what is in the log alone
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"closed":     {false, func(*testing.T, string) {}, "1"},
		"live":       {true, func(*testing.T, string) {}, "9 1"},
		"no -shm":    {true, remove("history.db-shm"), "9 1"}, // a copied store, a crash
		"no -wal":    {true, remove("history.db-wal"), "1"},
		"log alone":  {true, remove("history.db-wal", "history.db-shm"), "1"},
		"empty -wal": {true, func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, walName), 0)) }, "1"},
		"cut -wal":   {true, func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, walName), 4000)) }, "1"},
		"link for -wal": {true, func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, walName), filepath.Join(dir, "x")))
			require.NoError(t, os.Symlink("x", filepath.Join(dir, walName)))
		}, "1"},
		"no WAL mode": {false, func(t *testing.T, dir string) {
			conn := connect(t, dir)
			run(t, conn, "PRAGMA journal_mode=DELETE; VACUUM; INSERT INTO history(id, prompt, created_at) VALUES (9, 'new', 9)")
			require.NoError(t, conn.Close())
		}, "9 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := database(t, schema18, "INSERT INTO history(id, prompt, created_at) VALUES (1, 'old', 1)")
			if c.live {
				conn := connect(t, dir)
				_, err := conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true) // its files are pulled from under it
				require.NoError(t, err)
				defer conn.Close()
				run(t, conn, "PRAGMA wal_autocheckpoint=0; INSERT INTO history(id, prompt, created_at) VALUES (9, 'new', 9)")
			}
			c.prepare(t, dir)
			age(t, dir)
			before := picture(t, dir)
			h := open(t, dir)
			defer func() { _ = os.Chmod(dir, 0o700) }() // so that an ordinary user can remove it
			for range 2 {
				require.Equal(t, c.want, ids(t, render(t, h, "")))
				require.Equal(t, c.want, ids(t, render(t, h, "new OR old")))
				require.Equal(t, before, picture(t, dir))
				require.NoError(t, os.Chmod(dir, 0o555)) // and once more
			}
		})
	}
}

func TestOnlyAFileIsADatabase(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, databaseName)
	h := open(t, dir)
	elsewhere := database(t, schema18, rows)
	for what, put := range map[string]func() error{
		"nothing":   func() error { return nil },
		"link":      func() error { return os.Symlink(filepath.Join(elsewhere, databaseName), name) },
		"directory": func() error { return os.Mkdir(name, 0o755) },
		"pipe":      func() error { return syscall.Mkfifo(name, 0o644) },
	} {
		require.NoError(t, put())
		_, err := h.State()
		require.ErrorIs(t, err, fs.ErrNotExist, what)
		refuses(t, h, "", fs.ErrNotExist, what)
		require.NoError(t, os.RemoveAll(name))
	}
}

// TestNothingStaysOpen: after an answer and after a refusal each file is closed that was opened.
func TestNothingStaysOpen(t *testing.T) {
	opened := 0
	count := func(c storagetest.Call, err error) error {
		switch {
		case c.Op == "Open" && err == nil:
			opened++
		case c.Op == "Close":
			opened--
		}
		return err
	}
	dir := database(t, schema18, rows)
	h := New(&storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir), After: count})
	render(t, h, "")
	require.Zero(t, opened)
	refuses(t, h, "*", history.ErrQuery)
	require.Zero(t, opened)
	require.NoError(t, os.Truncate(filepath.Join(dir, databaseName), 5000))
	refuses(t, h, "", history.ErrUnreadable)
	require.Zero(t, opened)
}

// TestState: what a stat shows is of the database file, and the times are of what changed last.
func TestState(t *testing.T) {
	dir := database(t, schema18, rows)
	conn := connect(t, dir)
	defer conn.Close()
	h := open(t, dir)
	before, err := h.State()
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Join(dir, databaseName), 0o600))
	run(t, conn, "INSERT INTO history(prompt) VALUES ('now')")
	after, err := h.State()
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	info, err := os.Stat(filepath.Join(dir, walName))
	require.NoError(t, err)
	require.Equal(t, info.ModTime().UnixNano(), after.Stat().Modified)
	require.EqualValues(t, 0o600, after.Stat().Mode)
	require.Equal(t, storage.KindFile, after.Stat().Kind)
}

// TestHotJournal: a transaction that was cut off could only be taken back by writing.
func TestHotJournal(t *testing.T) {
	dir := database(t, schema18, rows)
	conn := connect(t, dir)
	defer conn.Close()
	run(t, conn, "PRAGMA journal_mode=DELETE; PRAGMA cache_size=1; BEGIN; UPDATE history SET prompt = hex(zeroblob(90000)) || id")
	h := open(t, dir)
	before := picture(t, dir)
	refuses(t, h, "", history.ErrUnreadable)
	require.Equal(t, before, picture(t, dir))
	run(t, conn, "ROLLBACK")
	require.Equal(t, "2 5 3 1", ids(t, render(t, h, "")))
}

// theState returns what all prompts in an answer have as their cwd.
func theState(t *testing.T, text string) int64 {
	states := map[string]bool{}
	var state int64
	for line := range strings.Lines(text) {
		var v struct{ Cwd string }
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		states[v.Cwd] = true
		n, err := strconv.ParseInt(v.Cwd, 10, 64)
		require.NoError(t, err)
		state = n
	}
	require.Len(t, states, 1, "a mixture of states")
	return state
}

// TestChangesWhileReading lets a writer do something before each single use of a file: what is answered is one
// state, the one before or the one after.
func TestChangesWhileReading(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const (
		commit  = "UPDATE history SET cwd = cwd + 1;" // changes all pages
		little  = "UPDATE other SET a = a + 1;"       // so that there is a log
		copied  = "PRAGMA wal_checkpoint(PASSIVE);"
		anew    = "PRAGMA wal_checkpoint(RESTART);"
		cut     = "PRAGMA wal_checkpoint(TRUNCATE);"
		noLog   = "PRAGMA journal_mode=DELETE;"
		withLog = "PRAGMA journal_mode=WAL;"
	)
	for name, c := range map[string]struct{ before, during string }{
		"commit":                 {"", commit},
		"copy":                   {commit, copied},
		"cut":                    {commit, commit + cut},
		"begin anew":             {commit, anew + commit},
		"all copied before":      {commit + copied, commit + commit},
		"replace":                {little, replace + commit},
		"leave the log and come": {commit, commit + noLog + commit + withLog},
		"shrink":                 {commit, "DELETE FROM history WHERE id % 2;" + commit + "VACUUM;" + cut + fill(30)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := database(t, strings.Replace(schema18, fullText, "", 1), "CREATE TABLE other(a); INSERT INTO other VALUES (0)", fill(30))
			conn := connect(t, dir)
			defer func() { conn.Close() }()
			run(t, conn, "PRAGMA wal_autocheckpoint=0")
			left, meddle := 0, func() {}
			h := New(&storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir), Before: func(c storagetest.Call) error {
				if c.Op == "Close" {
					return nil
				}
				if left--; left == -1 {
					meddle()
				}
				return nil
			}})
			for at := 0; ; at++ {
				conn = do(t, dir, conn, cut+c.before)
				age(t, dir) // nothing to wait for
				done := false
				left, meddle = at, func() {
					done = true
					conn = do(t, dir, conn, c.during)
				}
				text := render(t, h, "")
				theState(t, text)
				require.Zero(t, strings.Count(text, "\n")%15)
				if !done {
					require.Greater(t, at, 10, "uses of files")
					break
				}
			}
		})
	}
}

// replace is what do can do besides SQL: to replace the database file by a copy of it.
const replace = "REPLACE;"

// do runs a script on a writer, and returns the writer that there is then.
func do(t *testing.T, dir string, conn *sqlite3.Conn, script string) *sqlite3.Conn {
	for step := range strings.SplitAfterSeq(script, ";") {
		if step != replace {
			run(t, conn, "%s", step)
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, databaseName))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), content, 0o644))
		require.NoError(t, conn.Close())
		require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, databaseName)))
		conn = connect(t, dir)
	}
	run(t, conn, "PRAGMA wal_autocheckpoint=0")
	return conn
}

// fill sets the table to as many prompts, in several pages.
func fill(prompts int) string {
	return numbers(prompts) + "INSERT OR IGNORE INTO history(id, prompt, created_at, cwd)" +
		" SELECT i, 'word ' || i || hex(zeroblob(300)), i % 7, (SELECT ifnull(max(cwd), 1000) FROM history) FROM n;"
}
