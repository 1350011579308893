package postgrestest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCloseGivesBackMemory: a server that was closed has no System V shared memory any more, also one that was killed and
// started again.
func TestCloseGivesBackMemory(t *testing.T) {
	s := New(t)
	s.Kill()
	require.NoError(t, s.Start())
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	require.Greater(t, len(lines), 6)
	key := strings.Fields(lines[6])[0] // its key, and its id
	require.True(t, isShared(t, key))
	s.Close()
	require.False(t, isShared(t, key))
	require.NoDirExists(t, s.dir)
}

// isShared reports whether there is shared memory with a key.
func isShared(t *testing.T, key string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/sysvipc/shm")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == key {
			return true
		}
	}
	return false
}
