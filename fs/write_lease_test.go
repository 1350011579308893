package fs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// withLease stands for a client from 18.4.9 on: it holds the lease whose socket's name is its argument. Its first line is
// "ready".
const withLease = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0omp-file-lock-" + sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
`

// TestLiveClientWithLease: a session is refused while a client holds its lease, and other sessions are not.
func TestLiveClientWithLease(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	w := newWriting(t)
	w.write("other", header("other"))
	w.write("long", header(strings.Repeat("x", 129)))
	owners := filepath.Join(state, "omp/run/session-owners")
	path := filepath.Join(owners, "s.lock")
	c := accompany(t, withLease, socketOf(path))
	require.ErrorIs(t, put(w.in("append"), message("x")+"\n"), syscall.EBUSY)
	require.Contains(t, w.read("last-error"), fmt.Sprintf("process %d ", c.cmd.Process.Pid))
	require.Contains(t, w.read("last-error"), "holds its lease")
	require.NoError(t, put(w.m.session("other")+"/append", message("x")+"\n"))
	c.end()
	require.NoError(t, put(w.in("append"), message("x")+"\n"))
	require.Empty(t, w.read("last-error"))

	accompany(t, withLease, socketOf(filepath.Join(owners, "h-6bc5ad476ab8a373.lock"))) // the hash of its id
	require.ErrorIs(t, put(w.m.session("long")+"/append", message("x")+"\n"), syscall.EBUSY)
	require.NoError(t, put(w.in("append"), message("x")+"\n"))
}
