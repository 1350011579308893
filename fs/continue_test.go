package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Links that a client's own words make: continue/ from breadcrumbs, parent from headers. Neither leads out
// of SOURCE.

// crumb writes a breadcrumb.
func (a agent) crumb(terminal, text string) {
	dir := filepath.Join(a.dir, "terminal-sessions")
	require.NoError(a.t, os.MkdirAll(dir, 0o755))
	require.NoError(a.t, os.WriteFile(filepath.Join(dir, terminal), []byte(text), 0o644))
}

// TestContinue: a breadcrumb that leads to a session of this store is a link; any other is not there.
func TestContinue(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"))
	a.write("not", "no session\n")
	a.write(".h", header("h"))
	require.NoError(t, os.MkdirAll(a.path("s"), 0o755))
	require.NoError(t, os.WriteFile(a.path("s/Task.jsonl"), []byte(header("task")), 0o644))
	require.NoError(t, os.Symlink("s.jsonl", a.path("link.jsonl")))
	outside := filepath.Join(t.TempDir(), "sessions", "p")
	require.NoError(t, os.MkdirAll(outside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "out.jsonl"), []byte(header("out")), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(a.dir, "sessions", "linked")))
	here := filepath.Join(a.dir, "sessions", "p")
	valid := map[string]string{
		"pts-3": "/w\n" + here + "/s.jsonl\n", "kitty-7": "/w\n/home/dev/.omp/agent/sessions/p/s.jsonl\nfresh\n",
		"tmux-%3": "/w\n" + here + "/s/Task.jsonl", "a b": "\x00\n/sessions/p/s.jsonl", "-rf": "/w\n" + here + "/../p//s.jsonl\n",
	}
	invalid := map[string]string{
		"empty": "", "gone": "/w\n" + here + "/gone.jsonl\n", "not": "/w\n" + here + "/not.jsonl\n",
		"hidden": "/w\n" + here + "/.h.jsonl\n", "link": "/w\n" + here + "/link.jsonl\n", "linked": "/w\n" + a.dir + "/sessions/linked/out.jsonl\n",
		"outside": "/w\n" + outside + "/out.jsonl\n", "up": "/w\n/x/sessions/../../../etc/passwd.jsonl\n", ".dot": "/w\n" + here + "/s.jsonl\n",
		"binary": "\xff\xfe\x00\n\x00\xff\n", "long": "/w\n/sessions/" + strings.Repeat("n", 5000) + ".jsonl",
	}
	for terminal, text := range valid {
		a.crumb(terminal, text)
	}
	for terminal, text := range invalid {
		a.crumb(terminal, text)
	}
	crumbs := filepath.Join(a.dir, "terminal-sessions")
	require.NoError(t, os.Symlink("pts-3", filepath.Join(crumbs, "symlink")))
	require.NoError(t, os.Mkdir(filepath.Join(crumbs, "dir"), 0o755))
	invalid["symlink"], invalid["dir"], invalid["none"] = "", "", ""
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"-rf", "a b", "kitty-7", "pts-3", "tmux-%3"}, names(t, m.path("continue")))
	for terminal := range valid {
		want := "../sessions/p/s"
		if terminal == "tmux-%3" {
			want = "../sessions/p/s/Task"
		}
		require.Equal(t, want, link(t, m.path("continue", terminal)), terminal)
		run(t, "cat", m.path("continue", terminal, "header.json"))
	}
	for terminal := range invalid {
		_, err := os.Lstat(m.path("continue", terminal))
		require.ErrorIs(t, err, os.ErrNotExist, terminal)
	}
	a.write("t", header("t"))
	a.crumb("pts-3", "/w\n"+here+"/t.jsonl\n")
	require.Equal(t, "../sessions/p/t", link(t, m.path("continue/pts-3")), "the terminal has another session now")
	require.NoError(t, os.Remove(a.path("t.jsonl")))
	_, err := os.Readlink(m.path("continue/pts-3"))
	require.ErrorIs(t, err, os.ErrNotExist)
	a.crumb("new", "/w\n"+here+"/s.jsonl\n")
	require.Equal(t, "../sessions/p/s", link(t, m.path("continue/new")))
	require.NotContains(t, m.logged(), "ERROR")
}

// TestParent: the session that a session was forked from, by path or id, where it can be found.
func TestParent(t *testing.T) {
	a := newAgent(t)
	child := func(parent string) string { return childOf("c", parent) }
	put := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(a.dir, "sessions", name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, "sessions", name), []byte(text), 0o644))
	}
	here := filepath.Join(a.dir, "sessions")
	put("p/root.jsonl", header("root"))
	put("p/path.jsonl", child(here+"/p/root.jsonl"))
	put("q/copied.jsonl", child("/home/dev/.omp/agent/sessions/p/root.jsonl"))
	put("q/id.jsonl", child("root"))
	put("p/root/Task.jsonl", child("root"))
	put("p/root/Task/Sub.jsonl", child(here+"/p/root/Task.jsonl"))
	put("p/ofTask.jsonl", child(here+"/p/root/Task.jsonl"))
	put("p/none.jsonl", header("none"))
	put("p/hostile.jsonl", child("../../../../etc/passwd"))
	m := mountForTest(t, a.dir)
	for path, want := range map[string]string{
		"p/path": "../root", "q/copied": "../../p/root", "q/id": "../../p/root", "p/root/artifacts/Task": "../../../root", "p/root/Task": "../../root",
		"p/root/artifacts/Task/artifacts/Sub": "../../../../Task", "p/ofTask": "../root/Task",
	} {
		require.Equal(t, want, link(t, m.path("sessions", path, "parent")), path)
		require.Contains(t, names(t, m.path("sessions", path)), "parent")
		want, err := os.Stat(m.path("sessions", path, "parent", "header.json"))
		require.NoError(t, err, path)
		require.True(t, want.Mode().IsRegular())
	}
	require.Equal(t, "root\n", run(t, "jq", "-r", ".id", m.path("sessions/q/id/parent/header.json")))
	for _, path := range []string{"p/root", "p/none", "p/hostile"} {
		_, err := os.Lstat(m.path("sessions", path, "parent"))
		require.ErrorIs(t, err, os.ErrNotExist, path)
		require.NotContains(t, names(t, m.path("sessions", path)), "parent")
	}

	require.NoError(t, os.Remove(a.path("root.jsonl")))
	_, err := os.Lstat(m.path("sessions/q/id/parent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	put("r/root.jsonl", header("root")) // the client moved it
	require.Equal(t, "../../r/root", link(t, m.path("sessions/q/id/parent")))
	put("p/none.jsonl", child("root"))
	require.Equal(t, "../../r/root", link(t, m.path("sessions/p/none/parent")))
}

// TestForksAndNewSessionsAreFound: also while they are in memory only.
func TestForksAndNewSessionsAreFound(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), entry(0, "e0", "", "x"))
	m := mountForTest(t, a.dir)
	path := ask(t, m.path("new-session"), `{"cwd":"/nowhere/yet","title":"In memory","parentSession":"s"}`)
	require.Equal(t, "../"+path, link(t, m.path("recent/01-In memory")))
	require.Equal(t, "../../../"+path, link(t, m.path("by-cwd/nowhere/yet/latest")))
	require.Equal(t, "../../p/s", link(t, m.path(path, "parent")))
	id := strings.TrimSpace(run(t, "jq", "-r", ".id", m.path(path, "header.json")))
	require.Equal(t, "../"+path, link(t, m.path("by-id", id)))
	ask(t, m.path(path, "append"), assistant("now it is on disk"))
	require.Equal(t, "../"+path, link(t, m.path("by-id", id)))
	forked := ask(t, m.path("sessions/p/s/fork"), "e0")
	require.Equal(t, "../s", link(t, m.path(forked, "parent")))
	require.Contains(t, run(t, "cat", m.path("index.jsonl")), forked)
}
