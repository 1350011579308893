package dir

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpenFile: an open file is read as an os.File is, and after Close every call says that it is closed.
func TestOpenFile(t *testing.T) {
	at := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(at, "a"), []byte("0123456789"), 0o600))
	s, err := Open(at)
	require.NoError(t, err)
	obj, err := s.Open("a")
	require.NoError(t, err)
	text := make([]byte, 4)
	n, err := obj.ReadAt(text, 3)
	require.NoError(t, err)
	require.Equal(t, "3456", string(text[:n]))
	n, err = obj.ReadAt(text, 8)
	require.Equal(t, io.EOF, err)
	require.Equal(t, "89", string(text[:n]))
	st, err := obj.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 10, st.Size)
	require.NoError(t, obj.Close())
	_, err = obj.ReadAt(text, 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = obj.Stat()
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, obj.Close(), fs.ErrClosed)
	require.Equal(t, ^uintptr(0), obj.(*file).Fd())
}
