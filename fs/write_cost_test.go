package fs_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What a write costs, and what reaches the disk.

// TestSync: with -o sync each line reaches the disk; otherwise fsync of any control file brings there what was written to the
// session, through whichever file.
func TestSync(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		missing(t, "strace is not installed")
	}
	const durable, replaced = "fsync s.jsonl, fsync .", "write tmp, fsync tmp, rename tmp, fsync ."
	w := newWriting(t)
	for _, c := range []struct{ file, line, writes, syncs string }{
		{"append", message("x"), "write s.jsonl", durable},
		{"labels", "e1 x", "write s.jsonl", durable},
		{"title", "A title", replaced, durable},
		{"fork", "e1", replaced, durable},
		{"new-session", anywhere("/home/dev/project"), replaced, ""},
		{"cwd", "/home/dev/project", "", durable},
	} {
		path := w.in(c.file)
		if c.file == "new-session" {
			path = w.m.path(c.file)
		}
		require.Equal(t, c.writes, w.changes(func() { require.NoError(t, put(path, c.line+"\n")) }), c.file)
		require.Equal(t, c.syncs, w.changes(func() { run(t, "sync", path) }), c.file)
	}
	// A session that has to go to p, with nothing to change in it, and the directory beside it, which goes first.
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "sessions/q/m"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "sessions/q/m.jsonl"), []byte(header("m")), 0o600))
	require.Equal(t, "fsync new, fsync ., rename new, fsync ., rename new, fsync .",
		w.changes(func() { require.NoError(t, put(w.m.path("sessions/q/m/cwd"), "/home/dev/project\n")) }))

	w.remount(func(c *mountConfig) { c.options.Sync = true })
	for file, line := range map[string]string{"append": message("x"), "labels": "e2 x"} {
		require.Equal(t, "write s.jsonl, "+durable, w.changes(func() { require.NoError(t, put(w.in(file), line+"\n")) }), file)
	}
	require.Contains(t, w.changes(func() { run(t, "ln", "-sfn", "e1", w.in("leaf")) }), durable)
}

// change matches a call in a trace that changes a file of a session's directory, or makes it durable.
var change = regexp.MustCompile(`(write|fsync|rename)[a-z0-9]*\((?:\d+|AT_FDCWD)<[^>]*/sessions/[pq](?:/([^>]*))?>(?:, "([^"]*))?`)

// changes is what changed on disk meanwhile, in order.
func (w *writing) changes(meanwhile func()) string {
	var all []string
	for _, call := range change.FindAllStringSubmatch(w.traced(w.t, "write,pwrite64,fsync,fdatasync,renameat,renameat2", meanwhile), -1) {
		what, file := call[1], call[2]
		if what == "rename" {
			file = call[3]
		}
		switch {
		case strings.HasSuffix(file, ".lock"):
			continue
		case strings.HasSuffix(file, ".tmp"):
			file = "tmp"
		case file == "":
			file = "."
		case file != "s.jsonl":
			file = "new"
		}
		all = append(all, what+" "+file)
	}
	return strings.Join(slices.Compact(all), ", ") // the old file is put aside before it is replaced
}

// traced is what strace saw of the daemon's calls meanwhile.
func (w *writing) traced(t testing.TB, calls string, meanwhile func()) string {
	out := filepath.Join(t.TempDir(), "trace")
	strace := exec.Command("strace", "-f", "-y", "-p", fmt.Sprint(w.m.cmd.Process.Pid), "-e", "trace="+calls, "-e", "signal=none", "-o", out)
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
