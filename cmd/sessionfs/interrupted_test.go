//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A command that a signal ends has tidied up, and ends by the signal, as a shell and a service manager want it.
func TestCommandsAreInterrupted(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	waiting := func(args ...string) (*exec.Cmd, io.Reader) {
		cmd := s.command(args[0], append(args[1:], program, "write", "--demo", "by-id/019d3d9/append")...)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(in, `{"type":"custom","customType":"first","data":1}`+"\n")
		require.NoError(t, err)
		_, err = io.ReadFull(out, make([]byte, 9)) // it is at work, and waits for more
		require.NoError(t, err)
		return cmd, out
	}
	requireTidy := func() {
		left := glob(t, filepath.Join(testRoot, "sessionfs-demo-*"))
		require.Empty(t, left)
	}
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		cmd, _ := waiting("env")
		require.NoError(t, cmd.Process.Signal(signal))
		require.Error(t, cmd.Wait())
		status, ok := cmd.ProcessState.Sys().(interface{ Signal() unix.Signal })
		require.True(t, ok)
		require.Equal(t, signal, status.Signal())
		requireTidy()
	}
	// What a shell shows.
	cmd, out := waiting("sh", "-c", `"$@"; echo $?`, "sh")
	require.NoError(t, unix.Kill(s.pid(), unix.SIGTERM))
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Equal(t, "143\n", string(text))
	require.NoError(t, cmd.Wait())
	requireTidy()

	// nohup means it.
	cmd, _ = waiting("nohup")
	require.NoError(t, unix.Kill(s.pid(), unix.SIGHUP))
	require.NoError(t, unix.Kill(s.pid(), unix.SIGTERM))
	require.EqualError(t, cmd.Wait(), "signal: terminated")
	requireTidy()
}
