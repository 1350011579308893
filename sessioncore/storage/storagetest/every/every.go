package every

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/dir/dirtest"
	archive "sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/storage/memory"
	"sessionfs/sessioncore/storage/pending"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// Storage is a storage under test, what it does not support, and what other programs do to its files.
type Storage struct {
	storage.Storage
	Cannot    []string                              // methods that return storage.ErrUnsupported
	Link      func(t *testing.T, name, to string)   // creates a symbolic link; nil if unsupported
	WriteFile func(t *testing.T, name, data string) // replaces name by a new object
	Remove    func(t *testing.T, name string)
}

// Readable runs a test that only reads with every implementation, also with those that cannot be written.
func Readable(t *testing.T, test func(t *testing.T, s Storage)) {
	Each(t, test)
	t.Run("gzip", func(t *testing.T) {
		disk := dirtest.New(t)
		s := onDisk(disk)
		packed := archive.New(disk, nil, t.TempDir())
		t.Cleanup(packed.Close)
		s.Storage = packed
		s.Cannot = []string{
			"Append", "CheckWritable", "CreatePending", "HardLink", "Keep", "Lock", "MkdirAll", "Move", "Overwrite",
			"Replace", "ReplaceIf", "Sync", "Writers",
		}
		plain := s.WriteFile
		s.WriteFile = func(t *testing.T, name, data string) {
			if filepath.Ext(name) != ".jsonl" {
				plain(t, name, data)
				return
			}
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, err := w.Write([]byte(data))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			plain(t, name+archive.Ending, b.String())
		}
		s.Remove = nil
		test(t, s)
		requireClean(t, disk)
	})
}

// Each runs test with every implementation that can be written.
func Each(t *testing.T, test func(t *testing.T, s Storage)) {
	t.Run("dir", func(t *testing.T) {
		disk := dirtest.New(t)
		s := onDisk(disk)
		s.Storage, s.Cannot = disk, []string{"CreatePending", "Keep"}
		test(t, s)
		requireClean(t, disk)
	})
	t.Run("pending", func(t *testing.T) {
		disk := dirtest.New(t)
		s := onDisk(disk)
		s.Storage = pending.New(disk, nil)
		test(t, s)
		requireClean(t, disk)
	})
	t.Run("memory", func(t *testing.T) {
		m := memory.New()
		test(t, Storage{
			Storage: m,
			Cannot: []string{
				"CheckWritable", "CreatePending", "HardLink", "Keep", "ListStat", "Move", "Object.Fd", "Object.Writers", "Readlink",
				"ReplaceIf", "StatNames",
			},
			WriteFile: func(t *testing.T, name, data string) { require.NoError(t, m.WriteFile(name, []byte(data))) },
			Remove:    func(t *testing.T, name string) { require.NoError(t, m.Remove(name)) },
		})
	})
	t.Run("postgres", func(t *testing.T) {
		table := postgrestest.Shared(t).NewTable(t)
		const prefix = "/home/me/sessions/"
		source, err := postgres.ParseSource(table.Source("&prefix=" + prefix))
		require.NoError(t, err)
		rows, err := postgres.Open(t.Context(), source, postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(rows.Close)
		test(t, Storage{
			Storage: rows,
			Cannot: []string{
				"CheckWritable", "CreatePending", "HardLink", "Keep", "Move", "Object.Fd", "Object.Writers", "Readlink",
				"ReplaceIf",
			},
			WriteFile: func(t *testing.T, name, data string) {
				table.Remove(t, prefix+name) // as another object
				_, err := rows.Stat(name)
				require.ErrorIs(t, err, fs.ErrNotExist)
				table.Write(t, prefix+name, data)
			},
			Remove: func(t *testing.T, name string) { table.Remove(t, prefix+name) },
		})
	})
}

// onDisk returns a Storage with the functions that other programs would perform on the directory of disk.
func onDisk(disk *dir.Storage) Storage {
	return Storage{
		Link: func(t *testing.T, name, to string) { require.NoError(t, os.Symlink(to, dirtest.Path(disk, name))) },
		WriteFile: func(t *testing.T, name, data string) {
			path := dirtest.Path(disk, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path+".new", []byte(data), 0o600))
			require.NoError(t, os.Rename(path+".new", path))
		},
		Remove: func(t *testing.T, name string) { require.NoError(t, os.Remove(dirtest.Path(disk, name))) },
	}
}

// requireClean fails the test if a temporary or lock file is left.
func requireClean(t *testing.T, disk *dir.Storage) {
	t.Helper()
	require.Empty(t, storagetest.Leftovers(t, disk.Path()), "left behind")
}
