//go:build linux

package main

import (
	iofs "io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestUnpack(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	dir := t.TempDir()
	src := fstest.MapFS{
		"sessions/--a--/x.jsonl": {Data: []byte("x\n{\"timestamp\":\"2026-02-16T10:20:30.005Z\"}\n"), Mode: 0o444},
		"blobs/00":               {Data: []byte{0, 1, 2}, Mode: 0o777},
		"empty":                  {Mode: iofs.ModeDir | 0o777},
	}
	require.NoError(t, unpack(src, dir))
	require.NoError(t, fstest.TestFS(os.DirFS(dir), "sessions/--a--/x.jsonl", "blobs/00", "empty"))
	for name, mode := range map[string]iofs.FileMode{
		"sessions": 0o700 | iofs.ModeDir, "sessions/--a--/x.jsonl": 0o600, "blobs/00": 0o600, "empty": 0o700 | iofs.ModeDir,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
	info, err := os.Stat(filepath.Join(dir, "sessions/--a--/x.jsonl"))
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(time.Date(2026, 2, 16, 10, 20, 30, 5e6, time.UTC)), "the time of its last entry")
	require.Error(t, unpack(src, dir), "nothing is overwritten")
	require.Error(t, unpack(fstest.MapFS{"l": {Mode: iofs.ModeSymlink}}, t.TempDir()))
}

// The sample store is unpacked for this user alone and goes away with the mount, however that ends.
func TestDemo(t *testing.T) {
	demos := func() []string {
		names, err := filepath.Glob(filepath.Join(testRoot, "sessionfs-demo-*"))
		require.NoError(t, err)
		return names
	}
	forEachUser(t, func(t *testing.T, s *store) {
		for name, end := range map[string]func(){
			"unmount": func() { require.Zero(t, s.run("-u", s.mountpoint).code) },
			"signal":  func() { require.NoError(t, unix.Kill(s.pid(), unix.SIGTERM)) },
			"signal while busy": func() {
				cmd := s.command("sleep", "60")
				cmd.Dir = s.mountpoint
				// Chdir happens in the child, as the user.
				require.NoError(t, cmd.Start())
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				require.NoError(t, unix.Kill(s.pid(), unix.SIGTERM))
			},
		} {
			require.Zero(t, s.run("--demo", s.mountpoint).code, name)
			r := s.exec("find", s.mountpoint+"/sessions", "-name", "*.jsonl")
			require.Zero(t, r.code, r)
			require.NotEmpty(t, r.stdout)
			require.Len(t, demos(), 1)
			info, err := os.Stat(demos()[0])
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700)|os.ModeDir, info.Mode())
			e, _ := mountAt(s.mountpoint)
			require.Equal(t, "demo", e.source)
			end()
			s.requireUnmounted()
			require.Empty(t, demos(), name)
		}
	})
}
