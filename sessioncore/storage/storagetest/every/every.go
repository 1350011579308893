package every

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/memory"
	"sessionfs/sessioncore/storage/pending"
	"sessionfs/sessioncore/storage/storagetest"
)

// Storage is a Storage, what it cannot do, and what programs beside it do.
type Storage struct {
	storage.Storage
	Cannot    []string                              // the methods that it answers with storage.ErrUnsupported
	Link      func(t *testing.T, name, to string)   // makes a symbolic link; nil: it has none
	WriteFile func(t *testing.T, name, data string) // a new object in the place of name
	Remove    func(t *testing.T, name string)
}

// Each runs the contract against every implementation.
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
		s.Storage = pending.New(disk)
		test(t, s)
		requireClean(t, disk)
	})
	t.Run("memory", func(t *testing.T) {
		m := memory.New()
		test(t, Storage{
			Storage: m,
			Cannot: []string{
				"CheckWritable", "CreatePending", "Keep", "ListStat", "Object.Fd", "Object.Writers", "Readlink", "ReplaceIf", "StatNames",
			},
			WriteFile: func(t *testing.T, name, data string) { require.NoError(t, m.WriteFile(name, []byte(data))) },
			Remove:    func(t *testing.T, name string) { require.NoError(t, m.Remove(name)) },
		})
	})
}

// onDisk is what programs do beside a storage whose files are in a directory.
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

// requireClean fails where a temporary or a lock is left.
func requireClean(t *testing.T, disk *dir.Storage) {
	t.Helper()
	require.Empty(t, storagetest.Leftovers(t, disk.Path()), "left behind")
}
