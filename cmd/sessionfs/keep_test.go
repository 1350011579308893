//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/transfer"
)

// lastingProgram puts into a directory links to the program and to a systemctl. They lie in another directory, which it
// returns, as a program in one for temporary files installs no timer.
func lastingProgram(t *testing.T, links string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "my tools")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, text := range map[string]string{
		"sessionfs": string(readFile(t, program)),
		"systemctl": "#!/bin/sh\necho \"$@\" >>\"$HOME/calls\"\nexit $(cat \"$HOME/status\" || echo 0)\n",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o700))
		_ = os.Remove(filepath.Join(links, name))
		require.NoError(t, os.Symlink(file, filepath.Join(links, name)))
	}
	return dir
}

// TestKeepTimer: the units run the command that was given, and are removed again. Without systemd there is a line for cron.
func TestKeepTimer(t *testing.T) {
	s := newStore(t, user{"user", os.Geteuid()})
	tools := lastingProgram(t, s.mkdir("tools"))
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, ".omp/agent/sessions"), 0o700))
	status := func(code string) {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "status"), []byte(code), 0o600))
	}
	keep := func(args ...string) result {
		cmd := s.command(filepath.Join(tools, "sessionfs"), append([]string{"keep"}, args...)...)
		cmd.Env = append(cmd.Env, "TMPDIR="+s.mkdir("tmp"), "XDG_CONFIG_HOME=", "PATH="+tools+":"+os.Getenv("PATH"))
		return s.finish(cmd)
	}
	units := filepath.Join(s.dir, ".config/systemd/user")
	escaped := strings.ReplaceAll(tools, " ", `\x20`)

	status("0")
	keep("--timer").ok(t)
	require.Contains(t, string(readFile(t, filepath.Join(units, transfer.ServiceName))), "\nExecStart="+escaped+"/sessionfs keep\n")
	require.Equal(t, transfer.TimerUnit, string(readFile(t, filepath.Join(units, transfer.TimerName))))
	require.Equal(t, "--user show-environment\n--user enable --now sessionfs-keep.timer\n", string(readFile(t, filepath.Join(s.dir, "calls"))))

	keep("--to", "50% & $x", "--timer").ok(t)
	require.Contains(t, string(readFile(t, filepath.Join(units, transfer.ServiceName))), " keep --to "+s.dir+`/50%%\x20&\x20$$x`+"\n")
	keep("--import", "--timer").ok(t)
	require.Contains(t, string(readFile(t, filepath.Join(units, transfer.ServiceName))), " keep --import\n")
	r := keep("--to", "postgres://me:secret@db.example/team", "--timer")
	requireStatus(t, exitUsage, r, "password")
	require.Contains(t, string(readFile(t, filepath.Join(units, transfer.ServiceName))), " keep --import\n", "the timer stays as it is")
	keep("--no-timer").ok(t)
	require.Empty(t, glob(t, filepath.Join(units, "*")))
	requireStatus(t, exitFailure, keep("--no-timer"), "there is no timer")

	status("1")
	require.Contains(t, keep("--to", "50% off", "--timer").ok(t).stdout, "\n@daily '"+tools+"/sessionfs' 'keep' '--to' '"+s.dir+`/50\% off'`+"\n")
	require.Empty(t, glob(t, filepath.Join(units, "*")))
}
