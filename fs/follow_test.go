package fs_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What was opened goes on where the session does (docs/design.md section 6): tail -f follows.

// tailing is a program that follows a file, and says what it reads to another.
type tailing struct {
	t   *testing.T
	out string
}

// tailers are programs that follow a file; $1 is the file.
var tailers = map[string]string{
	"tail -f": `exec tail -n +1 -s 0.1 -f "$1"`,
	"tail -F": `exec tail -n +1 -s 0.1 -F "$1"`,
	"python": `exec python3 -c '
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
while True:
    b = os.read(fd, 65536)
    if b: os.write(1, b)
    else: time.sleep(0.05)' "$1"`,
}

// follow starts such a program. Whatever it complains of is among what it says.
func follow(t *testing.T, how, file string) *tailing {
	t.Helper()
	f := &tailing{t, filepath.Join(t.TempDir(), "out")}
	cmd := exec.Command("bash", "-c", tailers[how]+` > "$2" 2>&1`, "bash", file, f.out)
	cmd.Dir = "/"
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool { _, err := os.Stat(f.out); return err == nil }, patience, time.Millisecond)
	return f
}

func (f *tailing) output() string { return string(read(f.t, f.out)) }

// prints waits until the program has printed just that.
func (f *tailing) prints(want string) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); f.output() != want && time.Now().Before(deadline); {
		time.Sleep(2 * time.Millisecond)
	}
	require.Equal(f.t, want, f.output())
}

// foreign is a line that a client beside us appends under an entry.
func foreign(n int, parent string) string {
	return entry(n, entryID(n), parent, fmt.Sprint("foreign ", n))
}

// TestTailFollows: what a client and what we ourselves append is printed, to the byte what is read then. Where the session
// takes another turn, a reader keeps what he has, and goes on when the session comes back to it; the names show the new branch
// at once.
func TestTailFollows(t *testing.T) {
	for _, how := range []string{"tail -f", "python"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWriting(t)
			start := func(file string) *tailing {
				f := follow(t, how, w.in(file))
				f.prints(w.read(file))
				return f
			}
			transcript, branch, toHere := start("transcript.md"), start("branches/current/entries.jsonl"), start("branches/e3/transcript.md")
			other := start("branches/e2/entries.jsonl")
			fixed := w.read("branches/e3/entries.jsonl")
			check := func() {
				t.Helper()
				for _, f := range []*tailing{transcript, toHere} {
					f.prints(w.read("transcript.md"))
				}
				branch.prints(w.read("branches/current/entries.jsonl"))
			}
			w.add("s", foreign(4, "e3"))
			check()
			require.NoError(t, put(w.in("append"), message("ours")+"\n"))
			check()
			for n := range 3 {
				require.NoError(t, put(w.in("append"), message(fmt.Sprint("ours ", n))+"\n"+message(strings.Repeat("long ", 20_000))+"\n"))
			}
			check()
			require.Contains(t, transcript.output(), "ours 2")
			other.prints(writtenEntries[0] + writtenEntries[1] + writtenEntries[2])
			require.Equal(t, fixed, w.read("branches/e3/entries.jsonl"), "a branch to an entry ends there")
			require.Equal(t, fmt.Sprintln(len(fixed)), run(t, "stat", "-c", "%s", w.in("branches/e3/entries.jsonl")))

			text, lines, tip := transcript.output(), branch.output(), w.leaf()
			run(t, "ln", "-sfn", "e0", w.in("leaf"))
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
			run(t, "ln", "-sfn", tip, w.in("leaf"))
			require.NoError(t, put(w.in("append"), message("back")+"\n"))
			check()
			second.prints(elsewhere)
		})
	}
}

// TestTailOfLists: labels and problems.jsonl follow where there are more of them, and stay where one changes. The raw file
// follows what is written. tail -F opens what the name leads to when that is another file; the transcript stays one.
func TestTailOfLists(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	labels, problems := follow(t, "tail -f", w.in("labels")), follow(t, "tail -f", w.in("problems.jsonl"))
	raw, transcript := follow(t, "tail -f", w.m.path("sessions/p/s.jsonl")), follow(t, "tail -F", w.in("transcript.md"))
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
	for n := range 2 {
		require.NoError(t, put(w.in("append"), message(fmt.Sprint(n))+"\n"))
		transcript.prints(w.read("transcript.md"))
		time.Sleep(time.Second) // it looks at the name where nothing happens for a while
	}
	transcript.prints(w.read("transcript.md"))
	raw.prints(w.raw("s"))
}

// TestOpenFileGoesOnExactly: what a descriptor shows never changes, only grows; its size is that of what it
// shows, and that of the name is that of what the name shows.
func TestOpenFileGoesOnExactly(t *testing.T) {
	w := newWriting(t)
	for _, file := range []string{"transcript.md", "branches/current/entries.jsonl"} {
		f, err := os.Open(w.in(file))
		require.NoError(t, err)
		defer f.Close()
		shows := func(want, why string) {
			t.Helper()
			time.Sleep(50 * time.Millisecond) // for ten or so the kernel remembers the size of what is open
			info, err := f.Stat()
			require.NoError(t, err)
			require.EqualValues(t, len(want), info.Size(), why)
			all, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
			require.NoError(t, err)
			require.Equal(t, want, string(all), why)
		}
		was := w.read(file)
		for n := range 3 {
			require.NoError(t, put(w.in("append"), message(fmt.Sprint(file, n))+"\n"))
			require.True(t, strings.HasPrefix(w.read(file), was))
			was = w.read(file)
			shows(was, "it grows")
		}
		// A rewrite of the header changes the title in the transcript, and no entry.
		require.NoError(t, put(w.in("title"), "Title of "+strings.ReplaceAll(file, "/", " ")+"\n"))
		require.NoError(t, put(w.in("append"), message("after the title")+"\n"))
		if strings.HasSuffix(file, ".md") {
			require.NotContains(t, w.read(file), was)
		} else {
			was = w.read(file)
		}
		shows(was, "after the title")
		w.replace("s", header("s"), entry(0, "e0", "", "another session"))
		shows(was, "pinned")
		require.Contains(t, w.read(file), "another session")
		w.replace("s", header("s"), entry(0, "e0", "", "a new session_1"))
		require.Contains(t, w.read(file), "a new session_1", "of the same size")
		w.replace("s", header("s"), strings.Join(writtenEntries, ""))
	}
}
