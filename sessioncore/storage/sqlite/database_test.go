package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/driver" // its file system
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// writer returns a connection that writes a database in write-ahead mode, as a client has it open.
func writer(t *testing.T, dir string) *sqlite3.Conn {
	conn, err := sqlite3.Open("file:" + filepath.Join(dir, "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
	require.NoError(t, err)
	require.NoError(t, conn.Exec("PRAGMA journal_mode=WAL; CREATE TABLE n (v INTEGER); INSERT INTO n VALUES (1)"))
	return conn
}

// sum reads the numbers and the sum of the rows.
func sum(t *testing.T, files storage.Files) (rows, total int) {
	d := &Database{Files: files, Name: "x.db"}
	const positive = "SELECT count(*), sum(v) FROM n WHERE v > CAST(?1 AS INTEGER)"
	require.NoError(t, d.Read(t.Context(), func(conn *Conn) error {
		return conn.EachRow(positive, []string{"0"}, func(row *sqlite3.Stmt) error {
			rows = row.ColumnInt(0)
			total = row.ColumnInt(1)
			return nil
		})
	}))
	return rows, total
}

// names returns the names in a directory, each with its size and time.
func names(t *testing.T, dir string) (all []string) {
	items, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, item := range items {
		info, err := item.Info()
		require.NoError(t, err)
		all = append(all, fmt.Sprint(item.Name(), info.Size(), info.ModTime()))
	}
	return all
}

// TestRead: rows are read from the log, while a writer has the database open and after its end, without the index of
// the log too, and nothing in the directory changes.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	files := sessiontest.OpenDir(t, dir)
	d := &Database{Files: files, Name: "x.db"}
	_, err := d.State()
	require.ErrorIs(t, err, os.ErrNotExist)
	conn := writer(t, dir)
	before := names(t, dir)
	rows, _ := sum(t, files)
	require.Equal(t, 1, rows)
	state, err := d.State()
	require.NoError(t, err)
	require.Equal(t, before, names(t, dir))
	require.NoError(t, conn.Exec("INSERT INTO n VALUES (2)"))
	rows, total := sum(t, files)
	require.Equal(t, []int{2, 3}, []int{rows, total})
	changed, err := d.State()
	require.NoError(t, err)
	require.NotEqual(t, state, changed)

	require.NoError(t, conn.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "x.db-shm")))
	before = names(t, dir)
	rows, _ = sum(t, files)
	require.Equal(t, 2, rows)
	require.Equal(t, before, names(t, dir))
	require.Len(t, before, 2)
}

// TestReadChanging: a transaction in which the log began anew is done again, up to a bound.
func TestReadChanging(t *testing.T) {
	dir := t.TempDir()
	conn := writer(t, dir)
	changes := 0 // of the log, at most one in each try
	tries := 0
	most := 1 // changes
	files := &storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir), Before: func(c storagetest.Call) error {
		if c.Op == "Open" && c.Name == "x.db" {
			tries++
		}
		isPageRead := c.Op == "ReadAt" && c.Size > headerSize
		if !isPageRead || changes == tries || changes == most {
			return nil
		}
		changes++
		return conn.Exec("INSERT INTO n VALUES (1); PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO n VALUES (1)")
	}}
	rows, _ := sum(t, files)
	require.Equal(t, 3, rows)
	require.Equal(t, 1, changes)
	tries = 0
	changes = 0
	most = maxTries
	d := &Database{Files: files, Name: "x.db"}
	err := d.Read(t.Context(), func(conn *Conn) error { return conn.Exec("SELECT count(*) FROM n") })
	require.ErrorIs(t, err, ErrUnreadable)
	require.Equal(t, maxTries, tries)
}

// TestIdle: transactions at the same time leave their connections to those that follow, in the same state alone.
func TestIdle(t *testing.T) {
	dir := t.TempDir()
	conn := writer(t, dir)
	var opened atomic.Int64
	files := &storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir), Before: func(c storagetest.Call) error {
		if c.Op == "Open" && c.Name == "x.db" {
			opened.Add(1)
		}
		return nil
	}}
	d := &Database{Files: files, Name: "x.db"}
	together := func() {
		var started, running sync.WaitGroup
		started.Add(maxIdle)
		for range maxIdle {
			running.Go(func() {
				isFirst := true
				assert.NoError(t, d.Read(t.Context(), func(*Conn) error {
					if isFirst {
						started.Done()
						started.Wait()
					}
					isFirst = false
					return nil
				}))
			})
		}
		running.Wait()
	}
	require.Eventually(t, func() bool { // a state of this moment is not trusted
		before := opened.Load()
		together()
		return opened.Load() == before
	}, time.Minute, time.Millisecond, "nothing is opened again")
	require.Len(t, d.idle, maxIdle)
	require.NoError(t, conn.Exec("INSERT INTO n VALUES (2)"))
	rows := 0
	require.NoError(t, d.Read(t.Context(), func(conn *Conn) error {
		return conn.EachRow("SELECT count(*) FROM n", nil, func(row *sqlite3.Stmt) error {
			rows = row.ColumnInt(0)
			return nil
		})
	}))
	require.Equal(t, 2, rows)
	require.Len(t, d.idle, 1, "those of an earlier state are closed")
}

// TestPrepared: a statement that is kept has no values of an earlier use, also where a query is used within itself, and one
// that failed is not kept.
func TestPrepared(t *testing.T) {
	dir := t.TempDir()
	writer(t, dir)
	d := &Database{Files: sessiontest.OpenDir(t, dir), Name: "x.db"}
	const query = "SELECT ?1"
	value := func(conn *Conn, arguments ...string) (found []string) {
		require.NoError(t, conn.EachRow(query, arguments, func(row *sqlite3.Stmt) error {
			found = append(found, row.ColumnText(0))
			return nil
		}))
		return found
	}
	require.NoError(t, d.Read(t.Context(), func(conn *Conn) error {
		require.Equal(t, []string{"heron"}, value(conn, "heron"))
		require.Equal(t, []string{""}, value(conn))
		require.NoError(t, conn.EachRow(query, []string{"outer"}, func(row *sqlite3.Stmt) error {
			require.Equal(t, []string{"inner"}, value(conn, "inner"))
			require.Equal(t, "outer", row.ColumnText(0))
			return nil
		}))
		require.Len(t, conn.prepared, 1)
		require.ErrorIs(t, conn.EachRow(query, nil, func(*sqlite3.Stmt) error { return os.ErrInvalid }), os.ErrInvalid)
		require.Empty(t, conn.prepared)
		for i := range 2 * maxPrepared {
			require.NoError(t, conn.EachRow(fmt.Sprint("SELECT ", i), nil, func(*sqlite3.Stmt) error { return nil }))
		}
		require.Len(t, conn.prepared, maxPrepared)
		return nil
	}))
}

// TestReadBeside: each read beside a writer that makes many checkpoints sees whole transactions alone.
func TestReadBeside(t *testing.T) {
	dir := t.TempDir()
	conn := writer(t, dir)
	require.NoError(t, conn.Exec("DELETE FROM n; PRAGMA wal_autocheckpoint=20"))
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				_ = conn.Exec(fmt.Sprintf("BEGIN; INSERT INTO n VALUES (%d); INSERT INTO n VALUES (-%d); COMMIT", n, n))
			}
		}
	})
	d := &Database{Files: sessiontest.OpenDir(t, dir), Name: "x.db"}
	accepted := 0
	for range 20 {
		var total, odd int
		err := d.Read(t.Context(), func(conn *Conn) error {
			return conn.EachRow("SELECT total(v), count(*) % 2 FROM n", nil, func(row *sqlite3.Stmt) error {
				total = row.ColumnInt(0)
				odd = row.ColumnInt(1)
				return nil
			})
		})
		if err != nil {
			require.ErrorIs(t, err, ErrUnreadable)
			continue
		}
		accepted++
		require.Zero(t, total)
		require.Zero(t, odd)
	}
	close(stop)
	running.Wait()
	require.NotZero(t, accepted)
}

// TestExpressions: a database is read that has an index by an expression as deep as the one in Kilo Code 7.7.9, over the texts
// of messages, and by a function of many arguments.
func TestExpressions(t *testing.T) {
	dir := t.TempDir()
	conn := writer(t, dir)
	deep := "v"
	for i := range 40 {
		deep = fmt.Sprintf("CASE WHEN v = %d THEN trim(v || ' ') ELSE %s END", i, deep)
	}
	many := "coalesce(v" + strings.Repeat(", ''", 20) + ")"
	require.NoError(t, conn.Exec("CREATE INDEX i ON n ("+deep+", "+many+") WHERE json_valid(v)"))
	rows, total := sum(t, sessiontest.OpenDir(t, dir))
	require.Equal(t, []int{1, 1}, []int{rows, total})
}

// TestRefused: a database with a transaction that was not ended, a file that is no database, and a link are refused.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	read := func() error {
		d := &Database{Files: sessiontest.OpenDir(t, dir), Name: "x.db"}
		return d.Read(t.Context(), func(conn *Conn) error { return conn.Exec("SELECT * FROM n") })
	}
	require.ErrorIs(t, read(), os.ErrNotExist)
	require.NoError(t, writer(t, dir).Close())
	require.NoError(t, read())
	journal := filepath.Join(dir, "x.db-journal")
	require.NoError(t, os.WriteFile(journal, []byte("journal"), 0o600))
	require.ErrorIs(t, read(), ErrUnreadable)
	require.NoError(t, os.Remove(journal))
	require.NoError(t, os.Remove(filepath.Join(dir, "x.db-wal")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.db"), []byte("this is no database, whatever its name says"), 0o600))
	require.ErrorIs(t, read(), ErrUnreadable)
	require.NoError(t, os.Remove(filepath.Join(dir, "x.db")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "x.db")))
	require.Error(t, read())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := &Database{Files: sessiontest.OpenDir(t, t.TempDir()), Name: "x.db"}
	require.Error(t, d.Read(ctx, func(*Conn) error { return nil }))
}

// TestReads: a transaction knows that it reads the state of an earlier one, if no write can have been missed, and that a
// later one is another.
func TestReads(t *testing.T) {
	dir := t.TempDir()
	conn := writer(t, dir)
	files := sessiontest.OpenDir(t, dir)
	d := &Database{Files: files, Name: "x.db"}
	t.Cleanup(d.Close)
	version := func() (v Version) {
		require.NoError(t, d.Read(t.Context(), func(conn *Conn) error {
			v = conn.Version()
			return nil
		}))
		return v
	}
	reads := func(earlier Version) (is bool) {
		other := &Database{Files: files, Name: "x.db"}
		defer other.Close()
		require.NoError(t, other.Read(t.Context(), func(conn *Conn) error {
			is = conn.Reads(earlier)
			return nil
		}))
		return is
	}
	log, err := files.Stat("x.db-wal")
	require.NoError(t, err)
	early := version()
	early.at = log.Changed
	require.False(t, reads(early), "as a write of the same moment changes no time")
	settled := Version{}
	require.Eventually(t, func() bool {
		settled = version()
		return reads(settled)
	}, time.Minute, time.Millisecond)
	require.NoError(t, conn.Exec("INSERT INTO n VALUES (2)"))
	require.False(t, reads(settled))
}
