//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
)

// TestSourceThroughALink: a client that knows the agent directory by the same link as the user who mounts has the lock of
// that path, and writes respect it.
func TestSourceThroughALink(t *testing.T) {
	s := newMountable(t, user{"self", os.Geteuid()})
	link := filepath.Join(s.dir, "link")
	require.NoError(t, os.Symlink(s.source, link))
	s.source = "link"
	s.mount()
	session := filepath.Join(s.mountpoint, strings.TrimSuffix(sessionPath, ".jsonl"))
	line := func() result {
		return s.exec("sh", "-c", `printf '{"type":"custom","customType":"x"}\n' > "$1/append"`, "sh", session)
	}
	require.Zero(t, line().code)

	in, base := filepath.Split(sessionPath)
	lock := filepath.Join(link, in, "."+base+".lock.os")
	hash := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(lock)
		return d.Sum64()
	}
	name := fmt.Sprintf("@omp-file-lock-%016x%016x", hash(0x4f4d502d4c4f434b), hash(0x50492d46494c454c))
	held, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	require.NoError(t, err)
	require.NotZero(t, line().code)
	require.Contains(t, s.exec("cat", session+"/last-error").stdout, fmt.Sprintf("held by process %d", os.Getpid()))
	require.NoError(t, held.Close())
	require.Zero(t, line().code)
}

// The sample store is unpacked for this user alone and goes away with the mount, however that ends.
func TestDemo(t *testing.T) {
	demos := func() []string {
		names := glob(t, filepath.Join(testRoot, "sessionfs-demo-*"))
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
			r := s.exec("find", s.mountpoint+"/sessions", "-name", "*.jsonl").ok(t)
			require.NotEmpty(t, r.stdout)
			require.Len(t, demos(), 1)
			info, err := os.Stat(demos()[0])
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700)|os.ModeDir, info.Mode())
			e, _ := fs.MountAt(s.mountpoint)
			require.Equal(t, "demo", e.Source)
			end()
			s.requireUnmounted()
			require.Empty(t, demos(), name)
		}
	})
}
