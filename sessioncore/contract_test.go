package sessioncore

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// generous bounds what a test waits for on a machine under load.
const generous = 30 * time.Second

// storageUnderTest is a Storage and what programs beside it do.
type storageUnderTest struct {
	Storage
	writeFile func(t *testing.T, name, data string) // a new object in the place of name
	remove    func(t *testing.T, name string)
}

func newFileStorage(t *testing.T) *FileStorage {
	t.Helper()
	s, err := OpenFileStorage(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// onDisk is the path of a name.
func onDisk(s *FileStorage, name string) string { return filepath.Join(s.Path(), name) }

// forEachStorage runs the contract against every implementation.
func forEachStorage(t *testing.T, test func(t *testing.T, s storageUnderTest)) {
	t.Run("file", func(t *testing.T) {
		s := newFileStorage(t)
		test(t, storageUnderTest{
			Storage: s,
			writeFile: func(t *testing.T, name, data string) {
				path := onDisk(s, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path+".new", []byte(data), 0o600))
				require.NoError(t, os.Rename(path+".new", path))
			},
			remove: func(t *testing.T, name string) { require.NoError(t, os.Remove(onDisk(s, name))) },
		})
		for _, item := range leftovers(t, s.Path()) {
			t.Errorf("left behind: %s", item)
		}
	})
	t.Run("memory", func(t *testing.T) {
		m := NewMemoryStorage()
		test(t, storageUnderTest{
			Storage:   m,
			writeFile: func(t *testing.T, name, data string) { require.NoError(t, m.WriteFile(name, []byte(data))) },
			remove:    func(t *testing.T, name string) { require.NoError(t, m.Remove(name)) },
		})
	})
}

// leftovers are temporary and lock files.
func leftovers(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".lock") {
			names = append(names, path)
		}
		return err
	}))
	return names
}

func read(t *testing.T, s Storage, name string) string {
	t.Helper()
	o, err := s.Open(name)
	require.NoError(t, err)
	defer o.Close()
	return readObject(t, o)
}

func readObject(t *testing.T, o Object) string {
	t.Helper()
	st, err := o.Stat()
	require.NoError(t, err)
	data, err := io.ReadAll(io.NewSectionReader(o, 0, st.Size))
	require.NoError(t, err)
	return string(data)
}

func stat(t *testing.T, s Storage, name string) Stat {
	t.Helper()
	st, err := s.Stat(name)
	require.NoError(t, err)
	return st
}

// content is a write function for Replace.
func content(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func lock(t *testing.T, s Storage, name string) (unlock func() error) {
	t.Helper()
	unlock, err := s.Lock(t.Context(), name)
	require.NoError(t, err)
	return unlock
}
