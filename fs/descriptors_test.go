package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFewDescriptors: a daemon that may have few files open shows every session nevertheless, in however many
// directories they lie.
func TestFewDescriptors(t *testing.T) {
	a := newAgent(t)
	var files []string
	for i := range 120 {
		dir := filepath.Join("sessions", fmt.Sprintf("p%d", i%40))
		require.NoError(t, os.MkdirAll(filepath.Join(a.dir, dir), 0o755))
		name := fmt.Sprintf("s%d", i)
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, dir, name+".jsonl"), []byte(header(name)+entry(0, "e0", "", name)), 0o644))
		files = append(files, filepath.Join(dir, name))
	}
	m := mountForTest(t, a.dir)
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(m.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &limit))
	few := unix.Rlimit{Cur: 48, Max: limit.Max}
	require.NoError(t, unix.Prlimit(m.cmd.Process.Pid, unix.RLIMIT_NOFILE, &few, nil))
	for range 2 {
		for i, f := range files {
			b, err := os.ReadFile(m.path(f, "context.json"))
			require.NoError(t, err)
			require.Contains(t, string(b), fmt.Sprintf("s%d", i))
			_, err = os.ReadDir(m.path(filepath.Dir(f)))
			require.NoError(t, err)
		}
	}
	// To unmount takes more, where that is done by fusermount3.
	require.NoError(t, unix.Prlimit(m.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
}
