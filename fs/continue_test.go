package fs_test

import (
	"os"
	"path/filepath"
	"slices"
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
	for _, crumbs := range []map[string]string{valid, invalid} {
		for terminal, text := range crumbs {
			a.crumb(terminal, text)
		}
	}
	crumbs := filepath.Join(a.dir, "terminal-sessions")
	require.NoError(t, os.Symlink("pts-3", filepath.Join(crumbs, "symlink")))
	require.NoError(t, os.Mkdir(filepath.Join(crumbs, "dir"), 0o755))
	m := mountForTest(t, a.dir)
	require.Equal(t, "-rf ../sessions/p/s s\na b ../sessions/p/s s\nkitty-7 ../sessions/p/s s\npts-3 ../sessions/p/s s\ntmux-%3 ../sessions/p/s/Task task\n",
		shell(t, `cd "$1" && ls -U | while read -r name; do echo "$name" $(readlink -- "$name") $(jq -r .id "./$name/header.json"); done`, m.path("continue")))
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
	leads := func(path, want string) {
		t.Helper()
		parent := m.path("sessions", path, "parent")
		require.Equal(t, want != "", slices.Contains(names(t, filepath.Dir(parent)), "parent"))
		if want != "" {
			require.Equal(t, want, link(t, parent), path)
			require.FileExists(t, parent+"/header.json")
			return
		}
		_, err := os.Lstat(parent)
		require.ErrorIs(t, err, os.ErrNotExist, path)
	}
	for path, want := range map[string]string{
		"p/path": "../root", "q/copied": "../../p/root", "q/id": "../../p/root", "p/root/artifacts/Task": "../../../root", "p/root/Task": "../../root",
		"p/root/artifacts/Task/artifacts/Sub": "../../../../Task", "p/ofTask": "../root/Task", "p/root": "", "p/none": "", "p/hostile": "",
	} {
		leads(path, want)
	}

	require.NoError(t, os.Remove(a.path("root.jsonl")))
	leads("q/id", "")
	put("r/root.jsonl", header("root")) // the client moved it
	leads("q/id", "../../r/root")
	put("p/none.jsonl", child("root"))
	leads("p/none", "../../r/root")
}

// TestForksAndNewSessionsAreFound: also while they are in memory only.
func TestForksAndNewSessionsAreFound(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), entry(0, "e0", "", "x"))
	m := mountForTest(t, a.dir)
	path := ask(t, m.path("new-session"), `{"cwd":"/nowhere/yet","title":"In memory","parentSession":"s","create":true}`)
	require.Equal(t, "../"+path, link(t, m.path("recent/01-In memory (fork of 02)")))
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
