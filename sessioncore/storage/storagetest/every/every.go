package every

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/memory"
	"sessionfs/sessioncore/storage/storagetest"
)

// Storage is a Storage and what programs beside it do.
type Storage struct {
	storage.Storage
	WriteFile func(t *testing.T, name, data string) // a new object in the place of name
	Remove    func(t *testing.T, name string)
}

// Each runs the contract against every implementation.
func Each(t *testing.T, test func(t *testing.T, s Storage)) {
	t.Run("file", func(t *testing.T) {
		s := dirtest.New(t)
		test(t, Storage{
			Storage: s,
			WriteFile: func(t *testing.T, name, data string) {
				path := dirtest.Path(s, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path+".new", []byte(data), 0o600))
				require.NoError(t, os.Rename(path+".new", path))
			},
			Remove: func(t *testing.T, name string) { require.NoError(t, os.Remove(dirtest.Path(s, name))) },
		})
		for _, item := range storagetest.Leftovers(t, s.Path()) {
			t.Errorf("left behind: %s", item)
		}
	})
	t.Run("memory", func(t *testing.T) {
		m := memory.New()
		test(t, Storage{
			Storage:   m,
			WriteFile: func(t *testing.T, name, data string) { require.NoError(t, m.WriteFile(name, []byte(data))) },
			Remove:    func(t *testing.T, name string) { require.NoError(t, m.Remove(name)) },
		})
	})
}
