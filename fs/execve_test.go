package fs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Programs in the middle of execve. While the kernel closes the descriptors of a program that becomes another one, and so
// waits for the answer to FLUSH, it keeps others from looking at that program through most files of /proc. A daemon that
// looks nevertheless would wait for a program that waits for the daemon, and with both all that looks into /proc, such as
// ps (docs/design.md section 4, Live clients).

// becoming opens a file, writes the beginning of a line to it, and becomes another program, which closes the file. It
// waits for a line on stdin before that.
const becoming = `
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY|os.O_APPEND|os.O_CLOEXEC)
os.write(fd, sys.argv[2].encode())
print("ready", flush=True)
sys.stdin.readline()
os.execv("/bin/true", ["true"])
`

// become lets a companion become another program, and waits for the end of that.
func (c *companion) become() {
	c.t.Helper()
	_, err := fmt.Fprintln(c.stdin)
	require.NoError(c.t, err)
	select {
	case <-c.ended:
		require.True(c.t, c.cmd.ProcessState.Success())
	case <-time.After(patience):
		_ = c.cmd.Process.Kill() // which interrupts the request, and so frees both
		c.t.Fatal("the program waits for the daemon, and the daemon for the program")
	}
}

// TestLastLineAtExecve: a line that a program leaves unended takes effect when it becomes another one, also where the
// daemon looks for live clients among the processes.
func TestLastLineAtExecve(t *testing.T) {
	w := newWriting(t)
	w.write("t", header("t"))
	w.resume("t") // some client runs
	writeFile(t, filepath.Join(w.dir, "terminal-sessions/pts-9999"), "/home/dev/project\n"+w.path("s.jsonl")+"\n")
	for file, line := range map[string]string{"append": `{"type":"custom","customType":"late"}`, "labels": "e1 late", "title": "late"} {
		accompany(t, becoming, w.in(file), line).become()
	}
	require.Contains(t, w.raw("s"), `"customType":"late"`)
	require.Contains(t, w.read("labels"), "e1\tlate\n")
	require.Equal(t, "late\n", w.read("title"))
}

// TestLooksAtExecve: a program that stays in the middle of execve, since another file system does not answer, keeps nobody
// waiting: neither what looks among all processes, nor who waits for a lock that the program is said to hold.
func TestLooksAtExecve(t *testing.T) {
	w := newWriting(t)
	w.write("t", header("t"))
	w.resume("t")
	writeFile(t, filepath.Join(w.dir, "terminal-sessions/pts-9999"), "/home/dev/project\n"+w.path("s.jsonl")+"\n")
	other := t.TempDir()
	file := filepath.Join(other, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	l := newLoopback(t, other, plainly)
	c := accompany(t, becoming, filepath.Join(l.dir, "file"), "")
	pid := c.cmd.Process.Pid
	l.hangs()
	_, err := fmt.Fprintln(c.stdin)
	require.NoError(t, err)
	withheld := func() bool {
		err := exec.Command("timeout", "0.2", "cat", fmt.Sprintf("/proc/%d/environ", pid)).Run()
		return err != nil
	}
	require.Eventually(t, withheld, patience, 10*time.Millisecond)

	short := func(script string, args ...string) (string, error) {
		t.Helper()
		out, err := exec.Command("timeout", append([]string{"-s", "KILL", "10", "bash", "-c", script, "bash"}, args...)...).CombinedOutput()
		require.NotContains(t, fmt.Sprint(err), "137", "%s: %s", script, out)
		return string(out), err
	}
	out, err := short(`cat "$1"`, w.in("owner"))
	require.NoError(t, err, out)
	require.Empty(t, out)
	out, err = short(`echo '{"type":"custom","customType":"x"}' > "$1"`, w.in("append"))
	require.NoError(t, err, out)
	lock := w.path(".s.jsonl.lock")
	require.NoError(t, os.WriteFile(lock, fmt.Appendf(nil, "%d:%d\n", pid, time.Now().UnixMilli()), 0o600))
	out, err = short(`echo '{"type":"custom","customType":"x"}' > "$1"`, w.in("append"))
	require.Error(t, err)
	require.Contains(t, out, "busy")
	require.NoError(t, os.Remove(lock))
	require.True(t, withheld(), "all this was while the program could not be looked at")
	l.answers()
	<-c.ended
	require.True(t, c.cmd.ProcessState.Success())
}
