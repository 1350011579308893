//go:build linux

package dir

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func openTemp(t *testing.T) *Storage {
	t.Helper()
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// pathOf returns the path of a name.
func pathOf(s *Storage, name string) string { return filepath.Join(s.Path(), name) }
