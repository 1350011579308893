package fs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownerLine is the line of owner.
type ownerLine struct {
	Seen, Command, Terminal string
	PID                     int
}

// owner reads owner with tools. Its size is that of what is read.
func (w *writing) owner() (line ownerLine) {
	w.t.Helper()
	text := run(w.t, "cat", w.in("owner"))
	info, err := os.Stat(w.in("owner"))
	require.NoError(w.t, err)
	require.Len(w.t, text, int(info.Size()))
	if text != "" {
		require.NoError(w.t, json.Unmarshal([]byte(text), &line))
	}
	return line
}

// withLease stands for a client from 18.4.9 on: it holds the lease whose socket's name is its argument. Its first line is
// "ready".
const withLease = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0omp-file-lock-" + sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
`

// TestOwner: owner says who has the session open, as long as he has; it is not listed and cannot be written to. Who has a lease
// keeps others from the session.
func TestOwner(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	w := newWriting(t)
	require.Zero(t, w.owner())
	require.NotContains(t, names(t, w.in()), "owner")
	require.ErrorIs(t, put(w.in("owner"), "x"), refusedOpen())

	lease := accompany(t, withLease, socketOf(filepath.Join(state, "omp/run/session-owners/s.lock")))
	require.Equal(t, ownerLine{Seen: "lease", PID: lease.cmd.Process.Pid, Command: "python3"}, w.owner())
	require.ErrorIs(t, put(w.in("append"), message("x")+"\n"), syscall.EBUSY)
	require.Contains(t, w.read("last-error"), "holds its lease")
	lease.end()
	require.Zero(t, w.owner())
	holds := accompany(t, client, w.path("s.jsonl"))
	require.Equal(t, ownerLine{Seen: "descriptor", PID: holds.cmd.Process.Pid, Command: "python3"}, w.owner())
	holds.end()
	crumb, terminal, pid := w.resume("s")
	require.Equal(t, ownerLine{Seen: "breadcrumb", PID: pid, Command: "python3", Terminal: terminal}, w.owner())
	crumb.end()
	require.Zero(t, w.owner())
	require.NoError(t, put(w.in("append"), message("x")+"\n"))

	w.remount(func(c *mountConfig) { c.options.Redact = true })
	require.NoFileExists(t, w.in("owner"))
}
