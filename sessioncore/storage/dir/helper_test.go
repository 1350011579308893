//go:build linux

package dir

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
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

// with makes a storage use other system calls until the function that it returns is called.
func (s *Storage) with(sys calls) (back func()) {
	s.sys = sys
	return func() { s.sys = kernel }
}

func (s *Storage) appendWith(sys calls, name string, data []byte) (storage.Stat, error) {
	defer s.with(sys)()
	return s.Append(name, data)
}

func (s *Storage) replaceWith(sys calls, name string, r storage.Replacement) (storage.Stat, error) {
	defer s.with(sys)()
	return s.Replace(name, r)
}

func (s *Storage) syncWith(sys calls, name string) error {
	defer s.with(sys)()
	return s.Sync(name)
}
