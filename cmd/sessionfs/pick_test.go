//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A session of the year has no age of zero.
func TestAge(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Hour: "0m", 59 * time.Minute: "59m", 23 * time.Hour: "23h", 99 * day: "99d", 100 * day: "3mo", 182 * day: "5mo",
		364 * day: "11mo", 365 * day: "12mo", 729 * day: "23mo", 730 * day: "2y", 1000 * day: "2y", 1095 * day: "3y",
	} {
		require.Equal(t, want, age(d), d)
	}
}

// fake puts a program into PATH that is a shell script.
func (s *store) fake(name, script string) {
	s.t.Helper()
	bin := filepath.Join(s.dir, "bin")
	require.NoError(s.t, os.MkdirAll(bin, 0o755))
	require.NoError(s.t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o755))
	if path := os.Getenv("PATH"); !strings.HasPrefix(path, bin+":") {
		s.t.Setenv("PATH", bin+":"+path)
	}
}

// TestResumeCommand: an id becomes a value, or no command.
func TestResumeCommand(t *testing.T) {
	const id = "0198a000-0000-7000-8000-000000000001"
	for agent, want := range map[string]string{
		"omp": "omp --resume=" + id, "xcsh": "xcsh --resume=" + id, "pi": "pi --session " + id,
		"claude": "claude --resume=" + id, "codex": "codex resume -- " + id, "another": "",
	} {
		command, ok := resumeCommand(agent, id)
		require.Equal(t, want, strings.Join(command, " "))
		require.Equal(t, want != "", ok)
		for _, id := range []string{
			"", "-", "--", "-r", "--extension=x.ts", " --extension=x.ts", "a b", "a\n--yolo", "a\x00b",
			"\x1b[2J", "..", ".", "../x", "/x", `a\b`, "x.jsonl", "@x", "~", "$(id)", "`id`", "a;b", "'", "\u202ex", "é", id + "\n", strings.Repeat("a", 129),
		} {
			_, ok := resumeCommand(agent, id)
			require.False(t, ok, "%s with %q", agent, id)
		}
	}
	for _, id := range []string{"6ab2fbe0", "of.my_own-1", "_x", id} {
		_, ok := resumeCommand("pi", id)
		require.True(t, ok, id)
	}
	_, ok := resumeCommand("claude", "6ab2fbe0")
	require.False(t, ok)
}

// terminal is a shell in tmux.
type terminal struct {
	*store
	socket string
}

func newTerminal(s *store, dir string) *terminal {
	s.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		skip(s.t, err.Error())
	}
	term := &terminal{s, filepath.Join(s.dir, "tmux")}
	// Of several words the program is run as it is; of one, by the shell of the user, who may have none.
	start := s.command("tmux", "-S", term.socket, "-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "24", "-c", dir, "env", "ENV=",
		"PS1=$ ", "sh", "-i")
	// fzf makes the text beside the list without the lock of what it reads for that, which is the race detector's to tell them.
	// What is ours runs without a terminal too, where every report counts.
	start.Env = append(start.Env, "PATH="+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "GORACE=exitcode=0 log_path="+filepath.Join(s.dir, "race"))
	require.Zero(s.t, s.finish(start).code)
	s.t.Cleanup(func() { term.tmux("kill-server") })
	return term
}

func (term *terminal) tmux(args ...string) result {
	return term.exec("tmux", append([]string{"-S", term.socket}, args...)...)
}

// see waits until a text is on the screen.
func (term *terminal) see(want string) {
	term.t.Helper()
	shown := ""
	seen := eventually(func() bool {
		shown = term.tmux("capture-pane", "-p", "-J").stdout
		return strings.Contains(shown, want)
	})
	require.True(term.t, seen, "%s is not shown: %s", want, shown)
}

func (term *terminal) keys(keys ...string) {
	term.t.Helper()
	require.Zero(term.t, term.tmux(append([]string{"send-keys"}, keys...)...).code)
}

// The picker in a terminal: built in, and as it is installed.
func TestPickInTerminal(t *testing.T) {
	s := commandStore(t)
	requireFuse(t, s.user)
	pick := program + " pick -s " + s.source
	term := newTerminal(s, s.dir)
	term.keys(pick+"; echo status $?", "Enter")
	term.see("5/5")
	term.see("Tide sheets as a calendar")
	term.keys("too high")
	term.see("1/5")
	term.see("omp, $0.66, in /home/dev/tidetable") // beside it
	term.keys("Enter")
	term.see("\nstatus 0")
	term.keys("clear; "+pick+"; echo status $?", "Enter")
	term.see("5/5")
	term.keys("Escape")
	term.see("status 1")

	require.Zero(t, s.run(s.source, s.mountpoint).code)
	term.keys("clear; cd \"$("+pick+" hour late)\" && pwd", "Enter")
	term.see(filepath.Join(s.mountpoint, filepath.Dir(hourFile)))
	term.keys("clear; "+pick+" --branch 019d3d9", "Enter")
	term.see("While it is fresh")
	term.keys("fresh")
	term.see("1/3")
	term.keys("Enter")
	term.see("/branches/6ab2fbe0")

	s.fake("fzf", `cat >`+s.dir+`/list; sed -n 2p `+s.dir+`/list`)
	term.keys("clear; PATH="+s.dir+"/bin:$PATH "+pick+" | sed 's,^,by fzf: ,'", "Enter")
	term.see("by fzf: " + s.mountpoint + "/sessions/")
	list := readFile(t, filepath.Join(s.dir, "list"))
	require.Equal(t, 5, strings.Count(string(list), "\n"))
}
