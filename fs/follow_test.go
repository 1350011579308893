package fs_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What was opened goes on where the session does (docs/design.md section 6): tail -f follows.

// tailing is a program that follows a file.
type tailing struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex // guards said and complained
	said strings.Builder
	err  strings.Builder
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func follow(t *testing.T, name string, args ...string) *tailing {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, "%s is not installed", name)
	}
	f := &tailing{t: t, cmd: exec.Command(name, args...)}
	f.cmd.Env = append(os.Environ(), "LC_ALL=C")
	f.cmd.Dir = "/"
	f.cmd.Stdout, f.cmd.Stderr = lockedWriter{&f.mu, &f.said}, lockedWriter{&f.mu, &f.err}
	require.NoError(t, f.cmd.Start())
	t.Cleanup(f.stop)
	return f
}

func (f *tailing) stop() {
	if f.cmd.ProcessState == nil {
		_ = f.cmd.Process.Kill()
		_ = f.cmd.Wait()
	}
}

func (f *tailing) output() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said.String()
}

// prints waits until the program has printed just that.
func (f *tailing) prints(want string) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); f.output() != want && time.Now().Before(deadline); {
		time.Sleep(2 * time.Millisecond)
	}
	require.Equal(f.t, want, f.output())
}

// isQuiet: it complained of nothing.
func (f *tailing) isQuiet() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Empty(f.t, f.err.String())
}

var tailers = map[string][]string{
	"tail -f": {"tail", "-n", "+1", "-s", "0.1", "-f"},
	"python": {"python3", "-c", `
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
while True:
    b = os.read(fd, 65536)
    if b: os.write(1, b)
    else: time.sleep(0.05)`},
}

// foreign is a line that a client beside us appends under an entry.
func foreign(n int, parent string) string {
	return entry(n, entryID(n), parent, fmt.Sprint("foreign ", n))
}

// TestTailFollowsBranches: what a client and what we ourselves append is printed, to the byte what is read then.
func TestTailFollowsBranches(t *testing.T) {
	for name, args := range tailers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriting(t)
			var tails []*tailing
			files := []string{"transcript.md", "branches/current/entries.jsonl", "branches/e3/transcript.md"}
			for _, file := range files {
				tails = append(tails, follow(t, args[0], append(args[1:len(args):len(args)], w.in(file))...))
				tails[len(tails)-1].prints(w.read(file))
			}
			other := follow(t, args[0], append(args[1:len(args):len(args)], w.in("branches/e2/entries.jsonl"))...)
			fixed := w.read("branches/e3/entries.jsonl")
			check := func() {
				t.Helper()
				for i, file := range files {
					file = strings.Replace(file, "branches/e3/", "branches/current/", 1)
					tails[i].prints(w.read(file))
				}
				require.Equal(t, fixed, w.read("branches/e3/entries.jsonl"), "a branch to an entry ends there")
				require.Equal(t, fmt.Sprintln(len(fixed)), run(t, "stat", "-c", "%s", w.in("branches/e3/entries.jsonl")))
			}
			w.add("s", foreign(4, "e3"))
			check()
			require.NoError(t, put(w.in("append"), message("ours")+"\n"))
			check()
			for n := range 3 {
				require.NoError(t, put(w.in("append"), message(fmt.Sprint("ours ", n))+"\n"+message(strings.Repeat("long ", 20_000))+"\n"))
			}
			check()
			require.Contains(t, tails[0].output(), "ours 2")
			other.prints(writtenEntries[0] + writtenEntries[1] + writtenEntries[2])
			for _, f := range append(tails, other) {
				f.isQuiet()
			}
		})
	}
}

// TestTailStaysOnItsBranch: where the session takes another turn, a reader keeps what he has, and goes on when
// the session comes back to it; the names show the new branch at once.
func TestTailStaysOnItsBranch(t *testing.T) {
	for name, args := range tailers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriting(t)
			start := func(file string) *tailing {
				f := follow(t, args[0], append(args[1:len(args):len(args)], w.in(file))...)
				f.prints(w.read(file))
				return f
			}
			transcript, branch := start("transcript.md"), start("branches/current/entries.jsonl")
			text, lines := transcript.output(), branch.output()
			require.NoError(t, os.Remove(w.in("leaf")))
			require.NoError(t, os.Symlink("entries/e0.json", w.in("leaf")))
			require.Less(t, len(w.read("transcript.md")), len(text))
			require.Equal(t, fmt.Sprintln(len(w.read("transcript.md"))), run(t, "stat", "-c", "%s", w.in("transcript.md")))
			require.Equal(t, writtenEntries[0], w.read("branches/current/entries.jsonl"))
			second := start("transcript.md")
			require.NoError(t, put(w.in("append"), message("elsewhere")+"\n"))
			second.prints(w.read("transcript.md"))
			time.Sleep(1500 * time.Millisecond) // all of them look once a second or more often
			transcript.prints(text)
			branch.prints(lines)
			elsewhere := second.output()
			require.NoError(t, os.Remove(w.in("leaf")))
			require.NoError(t, os.Symlink("entries/e3.json", w.in("leaf")))
			require.NoError(t, put(w.in("append"), message("back")+"\n"))
			transcript.prints(w.read("transcript.md"))
			branch.prints(w.read("branches/current/entries.jsonl"))
			second.prints(elsewhere)
			for _, f := range []*tailing{transcript, branch, second} {
				f.isQuiet()
			}
		})
	}
}

// TestTailByName: tail -F opens what the name leads to when that is another file; the transcript stays one.
func TestTailByName(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	f := follow(t, "tail", "-n", "+1", "-s", "0.1", "-F", w.in("transcript.md"))
	for n := range 2 {
		require.NoError(t, put(w.in("append"), message(fmt.Sprint(n))+"\n"))
		f.prints(w.read("transcript.md"))
		time.Sleep(time.Second) // it looks at the name where nothing happens for a while
	}
	f.prints(w.read("transcript.md"))
	f.isQuiet()
}

// TestTailOfLists: labels and problems.jsonl follow where there are more of them, and stay where one changes. The raw file
// follows what is written.
func TestTailOfLists(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	labels := follow(t, "tail", "-n", "+1", "-s", "0.1", "-f", w.in("labels"))
	problems := follow(t, "tail", "-n", "+1", "-s", "0.1", "-f", w.in("problems.jsonl"))
	raw := follow(t, "tail", "-n", "+1", "-s", "0.1", "-f", w.m.path("sessions/p/s.jsonl"))
	require.NoError(t, put(w.in("labels"), "e1 one\n"))
	labels.prints("e1\tone\n")
	require.NoError(t, put(w.in("labels"), "e2\ttwo\n"))
	labels.prints("e1\tone\ne2\ttwo\n")
	require.NoError(t, put(w.in("labels"), "e1 other\n"))
	require.Equal(t, "e2\ttwo\ne1\tother\n", w.read("labels"))
	w.add("s", "{broken\n", "more\n")
	require.NotEmpty(t, w.read("problems.jsonl"))
	problems.prints(w.read("problems.jsonl"))
	labels.prints("e1\tone\ne2\ttwo\n")
	raw.prints(w.raw("s"))
	labels.isQuiet()
	problems.isQuiet()
}

// TestOpenFileGoesOnExactly: what a descriptor shows never changes, only grows; its size is that of what it
// shows, and that of the name is that of what the name shows.
func TestOpenFileGoesOnExactly(t *testing.T) {
	w := newWriting(t)
	for _, file := range []string{"transcript.md", "branches/current/entries.jsonl", "branches/current/transcript.md"} {
		fd, err := unix.Open(w.in(file), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		defer unix.Close(fd)
		size := func() int64 {
			var st unix.Stat_t
			require.NoError(t, unix.Fstat(fd, &st))
			return st.Size
		}
		all := func() string {
			b := make([]byte, 1<<20)
			n, err := unix.Pread(fd, b, 0)
			require.NoError(t, err)
			return string(b[:n])
		}
		was := w.read(file)
		for n := range 5 {
			require.NoError(t, put(w.in("append"), message(fmt.Sprint(file, n))+"\n"))
			now := w.read(file)
			time.Sleep(50 * time.Millisecond) // for ten or so the kernel remembers the size of what is open
			require.Equal(t, int64(len(now)), size())
			require.Equal(t, now, all())
			require.True(t, strings.HasPrefix(now, was))
			was = now
		}
		// A rewrite of the header changes the title in the transcript, and no entry.
		require.NoError(t, put(w.in("title"), "Title of "+strings.ReplaceAll(file, "/", " ")+"\n"))
		require.NoError(t, put(w.in("append"), message("after the title")+"\n"))
		if strings.HasSuffix(file, ".md") {
			require.Equal(t, int64(len(was)), size())
			require.Equal(t, was, all())
			require.NotEqual(t, was, w.read(file))
		} else {
			time.Sleep(50 * time.Millisecond) // for ten or so the kernel remembers the size of what is open
			require.Equal(t, w.read(file), all())
			require.Equal(t, int64(len(w.read(file))), size())
		}
		was = all()
		w.replace("s", header("s"), entry(0, "e0", "", "another session"))
		require.Equal(t, was, all(), "pinned")
		require.Equal(t, int64(len(was)), size())
		require.Contains(t, w.read(file), "another session")
		w.replace("s", header("s"), strings.Join(writtenEntries, ""))
	}
}
