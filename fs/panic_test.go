package fs_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/storagetest"
)

// mountPanicking mounts sessions/ with a storage with bugs: calls of names that have the call in them panic. Headers still read.
func mountPanicking(o mountopts.Options, log *slog.Logger) (*fs.Server, error) {
	sessions, err := dir.Open(filepath.Join(o.Source, "sessions"))
	if err != nil {
		return nil, err
	}
	bugs := &storagetest.Hooked{
		Storage: sessions,
		Before: func(c storagetest.Call) error {
			headers := c.Op == "ReadAt" && c.Off < 200 && c.Size <= 5<<10
			if strings.Contains(c.Name, "panic-"+c.Op) && !headers {
				panic("a bug in " + c.Op + " of " + c.Name)
			}
			return nil
		},
	}
	name := nodes.SourceName("sessions", bugs, sessioncore.NewStore(bugs))
	root := nodes.NewRootDir(&nodes.View{Log: log}, sessions, func() []nodes.Name { return []nodes.Name{name} })
	return fs.MountRoot(root, o, log)
}

// TestPanics: a panic in a handler, or in a goroutine that reads, is EIO and a line in the log, and the
// mount goes on.
func TestPanics(t *testing.T) {
	a := newAgent(t)
	a.write("healthy", header("healthy"), entry(0, "e0", "", "well"))
	a.write("panic-Stat", header("s"), entry(0, "e0", "", "x"))
	a.write("panic-ReadAt", header("s"), entry(0, "e0", "", strings.Repeat("x", 10_000)))
	a.write("panic-ReadAt-big", header("s"), strings.Repeat(entry(0, "e0", "", strings.Repeat("x", 10_000)), 100))
	require.NoError(t, os.Mkdir(a.path("panic-List"), 0o755))
	require.NoError(t, os.WriteFile(a.path("panic-Open.txt"), nil, 0o644))
	m := mountForTest(t, a.dir, func(o *daemonOptions) { o.Panics = true })
	for range 3 {
		for _, path := range []string{
			"panic-Stat.jsonl", "panic-Open.txt", "panic-ReadAt/context.json", "panic-ReadAt/entries/e0.json", "panic-ReadAt-big/context.json", "panic-ReadAt-big/leaf",
		} {
			_, err := os.ReadFile(m.path("sessions/p", path))
			require.ErrorIs(t, err, syscall.EIO, path)
		}
		_, err := os.ReadDir(m.path("sessions/p/panic-List"))
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, entry(0, "e0", "", "well"), run(t, "cat", m.session("healthy", "leaf")))
	}
	require.Contains(t, m.logged(), "a bug in Stat of p/panic-Stat")
	require.Contains(t, m.logged(), "a bug in ReadAt of p/panic-ReadAt-big")
}
