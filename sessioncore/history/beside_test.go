package history

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// TestBesideAWriter: while a writer changes every page in each transaction, and copies its log into the database file
// now and then, each answer is one committed state, and never an older one than the last commit that was over.
func TestBesideAWriter(t *testing.T) {
	const prompts = 100
	dir := database(t, schema18, fill(prompts))
	h := open(t, dir)
	var committed atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		conn := connect(t, dir)
		defer func() { require.NoError(t, conn.Close()) }()
		run(t, conn, "PRAGMA wal_autocheckpoint=500")
		for n := int64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			run(t, conn, "UPDATE history SET cwd = %d", n)
			committed.Store(n)
			if n%500 == 0 {
				run(t, conn, "PRAGMA wal_checkpoint(TRUNCATE)")
			}
		}
	}()
	states := map[int64]bool{}
	const wanted = 20 // states; the writer makes one after the other
	for round := 0; len(states) < wanted; round++ {
		require.Less(t, round, 10_000, "%d states seen", len(states))
		for _, match := range []string{"", "word"} {
			before := committed.Load()
			got, err := h.Render(context.Background(), match, nil)
			require.NoError(t, err)
			require.Equal(t, prompts, strings.Count(string(got.Text), "\n"))
			state := theState(t, string(got.Text))
			require.GreaterOrEqual(t, state, before)
			states[state] = true
		}
	}
	close(stop)
	<-stopped
	t.Logf("%d states of %d seen", len(states), committed.Load())
	conn := connect(t, dir)
	defer conn.Close()
	stmt, _, err := conn.Prepare("PRAGMA integrity_check")
	require.NoError(t, err)
	defer stmt.Close()
	require.True(t, stmt.Step())
	require.Equal(t, "ok", stmt.ColumnText(0))
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
	for name, c := range map[string]struct{ setup, before, during string }{
		"commit":                 {"", "", commit},
		"copy":                   {"", commit, copied},
		"commit and copy":        {"", "", commit + copied},
		"copy more":              {"", little, commit + copied},
		"copy twice":             {"", commit, commit + copied + commit + copied + commit},
		"cut":                    {"", commit, commit + cut},
		"begin anew":             {"", commit, anew + commit},
		"all copied before":      {"", commit + copied, commit + commit},
		"close and open":         {"", little, reopen + commit + copied},
		"replace":                {"", little, replace + commit},
		"no -shm":                {noShm, "", commit + cut},
		"no -shm, copied":        {noShm, commit + copied, commit + commit},
		"no log":                 {noLog, "", commit},
		"leave the log and come": {"", commit, commit + noLog + commit + withLog},
		"shrink":                 {"", commit, "DELETE FROM history WHERE id % 2;" + commit + "VACUUM;" + cut + fill(30)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := database(t, strings.Replace(schema18, fullText, "", 1), "CREATE TABLE other(a); INSERT INTO other VALUES (0)", fill(30))
			conn := connect(t, dir)
			defer func() { conn.Close() }()
			conn = do(t, dir, conn, c.setup)
			meddling := &meddlingFiles{Files: open(t, dir).files}
			h := New(meddling)
			for at := 0; ; at++ {
				conn = do(t, dir, conn, cut+c.before)
				age(t, dir) // nothing to wait for
				done := false
				meddling.left, meddling.meddle = at, func() {
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

// What do can do besides SQL.
const (
	reopen  = "REOPEN;"
	replace = "REPLACE;" // the database file by a copy of it
	noShm   = "NOSHM;"   // reopen without shared memory
)

// do runs a script on a writer, and returns the writer that there is then.
func do(t *testing.T, dir string, conn *sqlite3.Conn, script string) *sqlite3.Conn {
	for step := range strings.SplitAfterSeq(script, ";") {
		first := ""
		switch step {
		case reopen:
		case replace:
			content, err := os.ReadFile(filepath.Join(dir, databaseName))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), content, 0o644))
			require.NoError(t, conn.Close())
			require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, databaseName)))
		case noShm:
			first = "PRAGMA locking_mode=EXCLUSIVE;"
		default:
			run(t, conn, "%s", step)
			continue
		}
		require.NoError(t, conn.Close())
		conn = connect(t, dir, first)
	}
	run(t, conn, "PRAGMA wal_autocheckpoint=0")
	return conn
}

// fill sets the table to as many prompts, in several pages.
func fill(prompts int) string {
	return numbers(prompts) + "INSERT OR IGNORE INTO history(id, prompt, created_at, cwd)" +
		" SELECT i, 'word ' || i || hex(zeroblob(300)), i % 7, (SELECT ifnull(max(cwd), 1000) FROM history) FROM n;"
}

// meddlingFiles does something once, after a number of uses of the files.
type meddlingFiles struct {
	Files
	left   int
	meddle func()
}

func (f *meddlingFiles) use() {
	if f.left--; f.left < 0 && f.meddle != nil {
		meddle := f.meddle
		f.meddle = nil
		meddle()
	}
}

func (f *meddlingFiles) Stat(name string) (storage.Stat, error) {
	f.use()
	return f.Files.Stat(name)
}

func (f *meddlingFiles) Open(name string) (storage.Object, error) {
	f.use()
	obj, err := f.Files.Open(name)
	return meddlingObject{obj, f}, err
}

type meddlingObject struct {
	storage.Object
	files *meddlingFiles
}

func (o meddlingObject) ReadAt(p []byte, off int64) (int, error) {
	o.files.use()
	return o.Object.ReadAt(p, off)
}

func (o meddlingObject) Stat() (storage.Stat, error) {
	o.files.use()
	return o.Object.Stat()
}
