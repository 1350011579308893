//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// client is a process that uses a mount, and what it says.
type client struct {
	s   *store
	cmd *exec.Cmd
	out bytes.Buffer
}

// starts starts a shell script in the session's directory of the mount.
func (s *store) starts(script string) *client {
	s.t.Helper()
	c := &client{s: s, cmd: s.command("sh", "-c", `cd "$0" && `+script, s.in(strings.TrimSuffix(sessionPath, ".jsonl")))}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	require.NoError(s.t, c.cmd.Start())
	s.t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// state is the letter of /proc/PID/stat: T for a process that is stopped.
func (c *client) state() string {
	stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:min(1, len(rest))]
}

// TestStoppedClients: clients that are stopped with files half read and half written, or in a directory, are in nobody's
// way, and go on where they were.
func TestStoppedClients(t *testing.T) {
	t.Parallel()
	forEachUser(t, func(t *testing.T, s *store) {
		s.mount()
		dir := s.in(strings.TrimSuffix(sessionPath, ".jsonl"))
		before := s.exec("cat", dir+"/transcript.md").stdout
		clients := map[string]*client{
			"reader":    s.starts(`exec <transcript.md && dd bs=9 count=1 status=none && kill -STOP $$ && exec cat`),
			"writer":    s.starts(`exec >>append && printf '{"type":"custom",' && kill -STOP $$ && echo '"customType":"late"}'`),
			"directory": s.starts(`cd entries && kill -STOP $$ && exec ls`),
		}
		for name, c := range clients {
			require.True(t, eventually(func() bool { return c.state() == "T" }), name)
		}
		for i := range 3 {
			r := s.exec("sh", "-c", `cd "$0" && echo '{"type":"custom","customType":"meanwhile`+strconv.Itoa(i)+`"}' >append && cat transcript.md context.json && ls -l . entries`, dir)
			require.Zero(t, r.code, r)
		}
		requireStatus(t, exitUnmount, s.run("-u", s.mountpoint), "in use")
		for name, c := range clients {
			require.NoError(t, c.cmd.Process.Signal(unix.SIGCONT))
			require.NoError(t, c.cmd.Wait(), "%s: %s", name, c.out.String())
		}
		require.Equal(t, before, clients["reader"].out.String(), "one version, whole")
		require.Contains(t, clients["directory"].out.String(), "aaaaaaaa.json")
		text := s.onDisk(strings.TrimSuffix(sessionPath, ".jsonl"))
		require.Equal(t, 4, strings.Count(text, `"customType"`), text)
		require.Contains(t, text[strings.Index(text, "meanwhile2"):], `"customType":"late"`)
		require.Zero(t, s.run("-u", s.mountpoint).code)
		s.requireUnmounted()
	})
}
