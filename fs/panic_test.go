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
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// panicking is a storage with bugs: what has their name in it panics.
type panicking struct{ storage.Storage }

func trap(name, op string) {
	if strings.Contains(name, "panic-"+op) {
		panic("a bug in " + op + " of " + name)
	}
}

// Stat implements storage.Storage.
func (p panicking) Stat(name string) (storage.Stat, error) {
	trap(name, "stat")
	return p.Storage.Stat(name)
}

// List implements storage.Storage.
func (p panicking) List(dir string, only []string, f func(storage.Item) bool) error {
	trap(dir, "list")
	return p.Storage.List(dir, only, f)
}

// Open implements storage.Storage.
func (p panicking) Open(name string) (storage.Object, error) {
	trap(name, "open")
	obj, err := p.Storage.Open(name)
	return panickingObject{obj, name}, err
}

type panickingObject struct {
	storage.Object
	name string
}

// ReadAt implements storage.Object: the header still reads.
func (o panickingObject) ReadAt(b []byte, off int64) (int, error) {
	if off >= 200 || len(b) > 5<<10 {
		trap(o.name, "read")
	}
	return o.Object.ReadAt(b, off)
}

// Fd implements storage.Object: what is read goes through ReadAt.
func (o panickingObject) Fd() (uintptr, error) { return 0, storage.ErrUnsupported }

// mountPanicking mounts sessions/ with such a storage.
func mountPanicking(o mountopts.Options, log *slog.Logger) (*fs.Server, error) {
	sessions, err := dir.Open(filepath.Join(o.Source, "sessions"))
	if err != nil {
		return nil, err
	}
	storage := panicking{sessions}
	store := sessioncore.NewStore(storage)
	root := nodes.NewRootDir(&nodes.View{Log: log}, sessions, func() []nodes.Name {
		return []nodes.Name{nodes.SourceName("sessions", storage, store)}
	})
	return fs.MountRoot(root, o, log)
}

// TestPanics: a panic in a handler, or in a goroutine that reads, is EIO and a line in the log, and the
// mount goes on.
func TestPanics(t *testing.T) {
	a := newAgent(t)
	a.write("healthy", header("healthy"), entry(0, "e0", "", "well"))
	a.write("panic-stat", header("s"), entry(0, "e0", "", "x"))
	a.write("panic-read", header("s"), entry(0, "e0", "", strings.Repeat("x", 10_000)))
	a.write("panic-read-big", header("s"), strings.Repeat(entry(0, "e0", "", strings.Repeat("x", 10_000)), 100))
	require.NoError(t, os.Mkdir(a.path("panic-list"), 0o755))
	require.NoError(t, os.WriteFile(a.path("panic-open.txt"), nil, 0o644))
	m := mountForTest(t, a.dir, func(o *daemonOptions) { o.Panics = true })
	for range 3 {
		for _, path := range []string{
			"panic-stat.jsonl", "panic-open.txt", "panic-read/context.json", "panic-read/entries/e0.json", "panic-read-big/context.json", "panic-read-big/leaf",
		} {
			_, err := os.ReadFile(m.path("sessions/p", path))
			require.ErrorIs(t, err, syscall.EIO, path)
		}
		_, err := os.ReadDir(m.path("sessions/p/panic-list"))
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, entry(0, "e0", "", "well"), run(t, "cat", m.session("healthy", "leaf")))
	}
	require.Contains(t, m.logged(), "a bug in stat of p/panic-stat")
	require.Contains(t, m.logged(), "a bug in read of p/panic-read-big")
}
