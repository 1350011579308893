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

// TestDefaultSource: it is refused as one that is given, with what else one can do.
func TestDefaultSource(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	requireStatus(t, exitSource, s.run(s.mountpoint), filepath.Join(s.dir, ".omp/agent"), "--demo")
	s.mkdir("sessions") // an agent directory around the mount point
	cmd := s.command(program, s.mountpoint)
	cmd.Env = append(cmd.Env, "PI_CODING_AGENT_DIR="+s.dir)
	requireStatus(t, exitMountpoint, s.finish(cmd), "lies in SOURCE", s.dir)
	none := s.command(program, "ls")
	none.Env = append(none.Env, "HOME=")
	requireStatus(t, exitUsage, s.finish(none), "SOURCE is not given")
}

// The program says it on stderr: a warning with status 0, a refusal with the status of a wrong SOURCE.
func TestWrongSource(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	for _, source := range []string{"/", "/etc", filepath.Join(s.source, "sessions"), s.dir} {
		for _, front := range []string{"-f", "--foreground=false"} {
			requireStatus(t, exitSource, s.run(front, source, s.mountpoint), source, "sessions/")
		}
	}
	requireStatus(t, exitSource, s.run(s.dir, s.mountpoint), "Probably meant: "+s.source)

	requireFuse(t, s.user)
	empty := s.mkdir("new/agent")
	r := s.run(empty, s.mountpoint)
	requireStatus(t, exitOK, r, "sessionfs: warning: ", empty, "has no sessions/")
	// A client makes its directories later, and then they show.
	session := filepath.Join(empty, sessionPath)
	require.NoError(t, os.MkdirAll(filepath.Dir(session), 0o700))
	require.NoError(t, os.WriteFile(session, []byte(sessionText), 0o600))
	require.True(t, eventually(func() bool { return s.exec("cat", filepath.Join(s.mountpoint, sessionPath)).stdout == sessionText }))
	s.unmount()
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
