//go:build linux

package main

import (
	"context"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestInterruptIsTold: whatever an interrupt makes of what a command does, it is told as that.
func TestInterruptIsTold(t *testing.T) {
	for _, tells := range []bool{false, true} {
		root := &cobra.Command{Use: "sessionfs", SilenceErrors: true, SilenceUsage: true}
		cmd := &cobra.Command{
			Use: "wait",
			RunE: func(cmd *cobra.Command, _ []string) error {
				require.NoError(t, unix.Kill(unix.Getpid(), unix.SIGINT))
				<-cmd.Context().Done()
				return &iofs.PathError{Op: "read", Path: "index.jsonl", Err: context.Cause(cmd.Context())}
			},
		}
		if tells {
			endsWithTwo(cmd)
		}
		root.AddCommand(cmd)
		var stderr strings.Builder
		require.Equal(t, exitSignal+int(unix.SIGINT), runCommand(root, []string{"wait"}, streams{nil, io.Discard, &stderr}))
		require.Equal(t, "sessionfs: interrupted\n", stderr.String())
	}
}

// TestCommandsAreInterrupted: a command that a signal ends has tidied up, and ends by the signal, as a shell and a service manager want it.
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

// TestWriteInterrupted: lines take effect as they come; an interrupt leaves their effects, and nothing of the line that is being typed.
func TestWriteInterrupted(t *testing.T) {
	s := commandStore(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := s.command(program, "write", "-s", s.source, "by-id/019d3d9/append")
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r.Close()
	defer w.Close()
	_, err = w.WriteString(`{"type":"custom","customType":"first","data":1}` + "\n" + `{"type":"custom","customType":"second","data":1}`)
	require.NoError(t, err)
	id := make([]byte, 8)
	_, err = io.ReadFull(out, id) // the first line has taken effect
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.EqualError(t, cmd.Wait(), "signal: interrupt")
	text := s.here("cat", "sessions/*/*_019d3d9*.jsonl").stdout
	require.Contains(t, text, `"customType":"first"`)
	require.NotContains(t, text, `"customType":"second"`)
}
