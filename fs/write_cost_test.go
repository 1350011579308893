package fs_test

import (
	"bufio"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What a write costs, and what reaches the disk.

// TestSync: fsync on append, and with -o sync each line, reaches the disk.
func TestSync(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		missing(t, "strace is not installed")
	}
	const lines = 5
	for _, sync := range []bool{false, true} {
		w := newWriting(t, func(c *mountConfig) { c.options.Sync = sync })
		calls := w.traced(t, "fsync,fdatasync,sync_file_range", func() {
			for i := range lines {
				require.NoError(t, put(w.in("append"), message(fmt.Sprint(i))+"\n"))
			}
			require.NoError(t, put(w.in("labels"), "e1 x\n"))
			run(t, "ln", "-sfn", "e1", w.in("leaf"))
		})
		if sync {
			require.GreaterOrEqual(t, strings.Count(calls, "fsync("), lines+2, "%s", calls)
		} else {
			require.NotContains(t, calls, "fsync(")
			calls = w.traced(t, "fsync,fdatasync", func() { run(t, "sync", w.in("append")) })
			require.Contains(t, calls, "fsync(")
		}
	}
}

// traced is what strace saw of the daemon's calls meanwhile.
func (w *writing) traced(t testing.TB, calls string, meanwhile func()) string {
	out := filepath.Join(t.TempDir(), "trace")
	strace := exec.Command("strace", "-f", "-p", fmt.Sprint(w.m.cmd.Process.Pid), "-e", "trace="+calls, "-e", "signal=none", "-o", out)
	problems, err := strace.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, strace.Start())
	if said, _ := bufio.NewReader(problems).ReadString('\n'); !strings.Contains(said, "attached") {
		_ = strace.Wait()
		t.Skipf("strace cannot attach here: %s", said)
	}
	meanwhile()
	_ = strace.Process.Signal(syscall.SIGINT)
	_ = strace.Wait()
	return string(read(t, out))
}

// TestAppendCost: an append reads and writes as much in a long session as in a short one. The least of several rounds
// counts, without what the daemon does besides.
func TestAppendCost(t *testing.T) {
	const rounds, appends = 5, 20
	cost := func(entries int) (read, written int) {
		a := newAgent(t)
		var text strings.Builder
		text.WriteString(header("s"))
		for n := range entries {
			text.WriteString(entry(n, entryID(n), before(n, n-1), "etaoin shrdlu"))
		}
		a.write("s", text.String())
		w := &writing{a, mountForTest(t, a.dir)}
		fd := w.openAppend(unix.O_RDWR)
		defer unix.Close(fd)
		line := []byte(message("etaoin shrdlu") + "\n")
		answer := make([]byte, 100)
		add := func() {
			_, err := unix.Write(fd, line)
			require.NoError(t, err)
			n, err := unix.Read(fd, answer)
			require.NoError(t, err)
			require.Equal(t, 9, n)
		}
		add() // the first one has to read the session
		add()
		read, written = math.MaxInt, math.MaxInt
		for range rounds {
			r, was := w.m.procNumber("io", "rchar"), w.m.procNumber("io", "wchar")
			for range appends {
				add()
			}
			read = min(read, (w.m.procNumber("io", "rchar")-r)/appends)
			written = min(written, (w.m.procNumber("io", "wchar")-was)/appends)
		}
		return read, written
	}
	shortRead, shortWritten := cost(100)
	longRead, longWritten := cost(scaled(150_000))
	t.Logf("bytes for each append: %d read and %d written with 100 entries, %d and %d with %d", shortRead, shortWritten, longRead, longWritten, scaled(150_000))
	require.Less(t, longRead, 2*shortRead+8_000)
	require.Less(t, longRead, 100_000)
	require.InDelta(t, shortWritten, longWritten, 200)
}
