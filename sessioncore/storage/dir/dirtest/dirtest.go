package dirtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/dir"
)

// New returns the storage of a new temporary directory. It is removed at the end of the test.
func New(t *testing.T) *dir.Storage {
	t.Helper()
	s, err := dir.Open(t.TempDir())
	require.NoError(t, err)
	return s
}

// Path returns the path of the file name of the storage.
func Path(s *dir.Storage, name string) string { return filepath.Join(s.Path(), name) }
