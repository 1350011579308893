package history

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
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
	real := database(t, schema18, rows)
	for what, put := range map[string]func() error{
		"nothing":   func() error { return nil },
		"link":      func() error { return os.Symlink(filepath.Join(real, databaseName), name) },
		"directory": func() error { return os.Mkdir(name, 0o755) },
		"pipe":      func() error { return syscall.Mkfifo(name, 0o644) },
	} {
		require.NoError(t, put())
		_, err := h.State()
		require.ErrorIs(t, err, fs.ErrNotExist, what)
		_, err = h.Render(context.Background(), "", nil)
		require.ErrorIs(t, err, fs.ErrNotExist, what)
		require.NoError(t, os.RemoveAll(name))
	}
	// It comes, is replaced, and goes.
	for _, id := range []string{"1", "2"} {
		next := database(t, schema18, "INSERT INTO history(id, prompt) VALUES ("+id+", 'x')")
		require.NoError(t, os.Rename(filepath.Join(next, databaseName), name))
		require.Equal(t, id, ids(t, render(t, h, "")))
	}
	require.NoError(t, os.WriteFile(name, nil, 0o644)) // the client has just made it
	require.Empty(t, render(t, h, ""))
	require.NoError(t, os.Remove(name))
	_, err := h.Render(context.Background(), "", nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestUnreadableFile: the storage's own errors come through.
func TestUnreadableFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := database(t, schema18, rows)
	require.NoError(t, os.Chmod(filepath.Join(dir, databaseName), 0))
	_, err := open(t, dir).Render(context.Background(), "", nil)
	require.ErrorIs(t, err, fs.ErrPermission)
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
	_, err := h.Render(context.Background(), "", nil)
	require.ErrorIs(t, err, ErrUnreadable)
	require.Equal(t, before, picture(t, dir))
	run(t, conn, "ROLLBACK")
	require.Equal(t, "2 5 3 1", ids(t, render(t, h, "")))
}
