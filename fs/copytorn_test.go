package fs_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// copyPart starts a program that copies what comes from a pipe to a file, and returns once it has written part.
func copyPart(t *testing.T, part string, program ...string) (cmd *exec.Cmd, end func()) {
	t.Helper()
	cmd = exec.Command(program[0], program[1:]...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = in.Write([]byte(part))
	require.NoError(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.Eventually(t, func() bool {
		io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", cmd.Process.Pid))
		_, rest, _ := strings.Cut(string(io), "\nwchar: ")
		var written int
		_, scanErr := fmt.Sscan(rest, &written)
		return err == nil && scanErr == nil && written >= len(part)
	}, patience, time.Millisecond, "%v has not written what came", program)
	return cmd, func() { _ = in.Close() }
}

// copyInThreads copies in a process of several threads.
const copyInThreads = `
import os, sys, threading, time
for _ in range(3): threading.Thread(target=time.sleep, args=(600,)).start()
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
while True:
    b = os.read(0, 1 << 16)
    if not b: break
    os.write(f, b)`

// TestTornCopies: a program that is killed while it copies leaves nothing, also where what has come would be a session by
// itself: it ends with a whole line.
func TestTornCopies(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	copyTargets(t, testTornCopies)
}

func testTornCopies(t *testing.T, to copyTarget) {
	m := to.mount(true)
	times := 12
	if full() {
		times = 100
	}
	whole := header("x") + entry(1, entryID(1), "", "hello")
	before := to.state()
	for n := range times {
		part := whole
		if n%5 == 4 {
			part = whole[:len(whole)*(n+1)/(times+1)]
		}
		file := m.path("sessions/p", []string{"x.jsonl", ".x.jsonl.AbC123"}[n%2])
		how := []os.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGHUP}[n%4]
		program := []string{"cp", "/dev/stdin", file}
		switch {
		case n%3 == 0:
			program = []string{"sh", "-c", `exec cat > "$1"`, "sh", file}
		case n%4 == 1:
			program = []string{"python3", "-c", copyInThreads, file}
		case how == unix.SIGKILL: // at other signals it closes its files
			program = []string{"dd", "bs=64k", "of=" + file}
		}
		cmd, end := copyPart(t, part, program...)
		require.NoError(t, cmd.Process.Signal(how))
		require.Error(t, cmd.Wait())
		end()
		require.NoFileExists(t, m.path("sessions/p/x.jsonl"))
		require.NoFileExists(t, m.path("sessions/p/.x.jsonl.AbC123"))
		require.NoDirExists(t, m.path("sessions/p/x"))
		require.Equal(t, before, to.state())
	}
	require.Empty(t, names(t, m.path("sessions/p")))
	require.Contains(t, shell(t, `cat "$1"`, m.path("last-error")), "killed")
	require.NoError(t, os.WriteFile(m.path("sessions/p/x.jsonl"), []byte(whole), 0o644), "it can be copied again")
	require.Equal(t, whole, to.raw("x"))
}

// TestClosed: what close(2) says is there at once; a shell closes what it has duplicated before anything is written; and a
// program that ends without an error has closed its files.
func TestClosed(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	m := mountForTest(t, a.dir)
	whole := header("x") + entry(1, entryID(1), "", "hello")
	more := entry(2, entryID(2), entryID(1), "more")
	for name, c := range map[string]struct{ script, want string }{
		"cat": {`cat "$1" > "$3"`, whole},
		"builtin": {`printf '%s' "$(cat "$1")
" > "$3"`, whole},
		"descriptor": {`exec 5> "$3"; cat "$1" >&5; exec 5>&-`, whole},
		"in parts":   {`{ cat "$1"; cat "$2"; } > "$3"`, whole + more},
		"a subshell": {`( printf '%s\n' "$(cat "$1")"; exit 0 ) > "$3"`, whole},
		"not closed": {`python3 -c 'import os, sys; f = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT); os.write(f, open(sys.argv[1], "rb").read()); os._exit(0)' "$1" "$3"`, whole},
		"synced":     {`dd if="$1" of="$3" bs=100 oflag=sync conv=fsync status=none`, whole},
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.ReplaceAll(name, " ", "-")
			file := m.path("sessions/p", id+".jsonl")
			shell(t, `set -e; `+c.script+`; [ -d "${3%.jsonl}/entries" ]; [ "$(head -c 20 < "$3")" = "$(head -c 20 < "$1")" ]`, tempFile(t, whole), tempFile(t, more), file)
			require.Eventually(t, func() bool { return a.raw(id) == c.want }, patience, time.Millisecond)
		})
	}
}

// TestExecWhileCopying: a program that becomes another one while it copies does not hold up its process, or any that looks
// at it: execve(2) closes files while it holds a lock of the process.
func TestExecWhileCopying(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	m := mountForTest(t, a.dir)
	whole := header("x") + entry(1, entryID(1), "", "hello")
	out := run(t, "timeout", "30", "python3", "-c", `
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
os.write(f, sys.argv[2].encode())
os.execvp("cat", ["cat", "/proc/self/stat", sys.argv[1]])`, m.path("sessions/p/x.jsonl"), whole)
	require.Contains(t, out, whole, "the new program sees what the old one has copied")
	require.Equal(t, whole, a.raw("x"))
}
