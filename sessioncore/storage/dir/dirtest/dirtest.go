package dirtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/dir"
)

func New(t *testing.T) *dir.Storage {
	t.Helper()
	s, err := dir.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Path is the path of a name.
func Path(s *dir.Storage, name string) string { return filepath.Join(s.Path(), name) }
