package every

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/secrets"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	archive "sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// Store is a store under test, and what other programs do to its files.
type Store struct {
	storage.Files
	storage.Journal                                       // nil if it is only read
	Link            func(t *testing.T, name, to string)   // creates a symbolic link; nil if there are none
	WriteFile       func(t *testing.T, name, data string) // replaces name by a new object
	Remove          func(t *testing.T, name string)       // nil if what is only read cannot be removed
}

// Files runs a test that only reads with every store, also with those that cannot be written. All files that it makes are
// called like sessions.
func Files(t *testing.T, test func(t *testing.T, s Store)) {
	Journals(t, test)
	t.Run("gzip", func(t *testing.T) {
		disk := sessiontest.OpenDir(t, t.TempDir())
		packed := onDisk(disk)
		test(t, Store{
			Files: archive.New(disk, nil, t.TempDir()),
			Link:  packed.Link,
			WriteFile: func(t *testing.T, name, data string) {
				packed.WriteFile(t, name+archive.Ending, pack(t, data))
			},
			Remove: func(t *testing.T, name string) { packed.Remove(t, name+archive.Ending) },
		})
	})
	t.Run("redact", func(t *testing.T) {
		disk := sessiontest.OpenDir(t, t.TempDir())
		rules, err := secrets.Read("")
		require.NoError(t, err)
		s := onDisk(disk)
		s.Files = secrets.Mask(disk, rules)
		s.Journal = nil
		s.Link = nil
		test(t, s)
	})
}

// pack compresses a text by gzip.
func pack(t *testing.T, text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	require.NoError(t, errors.Join(err, w.Close()))
	return packed.String()
}

// Journals runs test with every store that can be written.
func Journals(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("dir", func(t *testing.T) {
		disk := sessiontest.OpenDir(t, t.TempDir())
		test(t, onDisk(disk))
		require.Empty(t, storagetest.Leftovers(t, disk.Path()), "left behind")
	})
	t.Run("memory", func(t *testing.T) {
		m := memory.New()
		test(t, Store{
			Files:     m,
			Journal:   m,
			WriteFile: func(t *testing.T, name, data string) { require.NoError(t, m.WriteFile(name, []byte(data))) },
			Remove:    func(t *testing.T, name string) { require.NoError(t, m.Remove(name)) },
		})
	})
	t.Run("postgres", func(t *testing.T) { test(t, inTable(t)) })
}

// inTable returns a new table of PostgreSQL as a Store.
func inTable(t *testing.T) Store {
	const prefix = "/home/me/sessions/"
	table := postgrestest.Shared(t).NewTable(t)
	source, err := postgres.ParseSource(table.Source("&prefix=" + prefix))
	require.NoError(t, err)
	rows, err := postgres.Open(t.Context(), source, postgres.Options{})
	require.NoError(t, err)
	t.Cleanup(rows.Close)
	return Store{
		Files:   rows,
		Journal: rows,
		WriteFile: func(t *testing.T, name, data string) {
			table.Remove(t, prefix+name) // as another object
			_, err := rows.Stat(name)
			require.ErrorIs(t, err, fs.ErrNotExist)
			table.Write(t, prefix+name, data)
		},
		Remove: func(t *testing.T, name string) { table.Remove(t, prefix+name) },
	}
}

// onDisk returns a directory as a Store.
func onDisk(disk *dir.Storage) Store {
	return Store{
		Files:   disk,
		Journal: disk,
		Link: func(t *testing.T, name, to string) {
			require.NoError(t, os.Symlink(to, filepath.Join(disk.Path(), name)))
		},
		WriteFile: func(t *testing.T, name, data string) {
			path := filepath.Join(disk.Path(), name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path+".new", []byte(data), 0o600))
			require.NoError(t, os.Rename(path+".new", path))
		},
		Remove: func(t *testing.T, name string) { require.NoError(t, os.Remove(filepath.Join(disk.Path(), name))) },
	}
}
