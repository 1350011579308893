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
	writeFile(t, filepath.Join(outside, "out.jsonl"), header("out"))
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
		absent(t, m.path("continue", terminal))
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

// childOf is the header of a session with a parent, a path or an id.
func childOf(id, parent string) string {
	return strings.Replace(header(id), `"cwd"`, `"parentSession":"`+parent+`","cwd"`, 1)
}

// TestParent: the session that a session was forked from, by path or id, where it can be found; children/ is that the other
// way round.
func TestParent(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	sessions := filepath.Join(a.dir, "sessions")
	write := func(name, parent string) {
		file := filepath.Join(sessions, name+".jsonl")
		writeFile(t, file, childOf(filepath.Base(name), parent))
	}
	for name, parent := range map[string]string{
		"p/byid": "top", "p/bypath": sessions + "/p/top.jsonl", "q/copied": "/home/dev/.omp/agent/sessions/p/top.jsonl", "p/twin": "top", "q/twin": "top",
		"p/grandchild": "byid", "p/top/Task": "top", "p/top/Task/Sub": sessions + "/p/top/Task.jsonl", "p/ofTask": sessions + "/p/top/Task.jsonl",
		"p/self": "self", "p/none": "nobody", "p/no": "/home/dev/.omp/agent/sessions/q/top.jsonl", "p/hostile": "../../../../etc/passwd",
	} {
		write(name, parent)
	}
	a.write("top", header("top"))
	a.archived(t, "old", childOf("old", "top"))
	a.archived(t, "older", childOf("older", "old"))
	m := mountForTest(t, a.dir)
	parent := func(session, want string) {
		t.Helper()
		path := m.path(session, "parent")
		require.Equal(t, want != "", slices.Contains(names(t, m.path(session)), "parent"))
		if want != "" {
			require.Equal(t, want, link(t, path), session)
			require.FileExists(t, path+"/header.json")
			return
		}
		absent(t, path)
	}
	for session, want := range map[string]string{
		"sessions/p/bypath": "../top", "sessions/q/copied": "../../p/top", "archive/p/older": "../old", "sessions/p/ofTask": "../top/Task",
		"sessions/p/top/artifacts/Task": "../../../top", "sessions/p/top/Task": "../../top", "sessions/p/top/artifacts/Task/artifacts/Sub": "../../../../Task",
		"sessions/p/top": "", "sessions/p/self": "", "sessions/p/none": "", "sessions/p/no": "", "sessions/p/hostile": "",
	} {
		parent(session, want)
	}
	children := func(session string) (found []string) { // which all have it as their parent, and lend the link its name
		return strings.Fields(shell(t, `cd "$1/$2/children" && ls -U | while read -r name; do
			[ "$(realpath "$name/parent")" = "$1/$2" ] && child=$(realpath --relative-to="$1" "$name") &&
				[ "$(basename "$child")" = "${name%%~*}" ] && echo "$child" || echo "wrong: $name"; done`, m.dir, session))
	}
	top := []string{"sessions/p/byid", "sessions/p/bypath", "sessions/q/copied", "archive/p/old", "sessions/p/twin", "sessions/q/twin", "sessions/p/top/Task"}
	require.ElementsMatch(t, top, children("sessions/p/top"))
	require.Equal(t, []string{"sessions/p/grandchild"}, children("sessions/p/byid"))
	require.Equal(t, []string{"archive/p/older"}, children("archive/p/old"))
	require.Empty(t, children("sessions/p/self"))
	require.Equal(t, "../../../../archive/p/old", link(t, m.session("top", "children/old")))
	for _, name := range []string{"top", "grandchild", "twin", "bypat", "byid~0000000000000000", "self"} {
		absent(t, m.session("top", "children", name))
	}

	write("p/late", "top")
	require.Equal(t, "../../late", link(t, m.session("top", "children/late")))
	require.Contains(t, names(t, m.session("top", "children")), "late")
	a.replace("late", childOf("late", "byid"))
	require.NotContains(t, names(t, m.session("top", "children")), "late")
	require.NoError(t, os.Remove(a.path("top.jsonl")))
	parent("sessions/p/byid", "")
	write("r/top", "none") // the client moved it
	parent("sessions/p/byid", "../../r/top")
}
