package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childOf is the header of a session with a parent, a path or an id.
func childOf(id, parent string) string {
	return strings.Replace(header(id), `"cwd"`, `"parentSession":"`+parent+`","cwd"`, 1)
}

// TestChildren: children/ is parent the other way round, however the parent is named, and wherever both are.
func TestChildren(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	q := filepath.Join(a.dir, "sessions/q")
	require.NoError(t, os.Mkdir(q, 0o755))
	a.write("top", header("top"))
	a.write("byid", childOf("byid", "top"))
	a.write("bypath", childOf("bypath", a.path("top.jsonl")))
	a.write("elsewhere", childOf("elsewhere", "/home/other/.omp/agent/sessions/p/top.jsonl"))
	a.write("twin", childOf("twin1", "top"))
	require.NoError(t, os.WriteFile(filepath.Join(q, "twin.jsonl"), []byte(childOf("twin2", "top")), 0o600))
	a.write("grandchild", childOf("grandchild", "byid"))
	a.write("no", childOf("no", "/home/other/.omp/agent/sessions/q/top.jsonl"))
	a.write("self", childOf("self", "self"))
	a.write("none", childOf("none", "nobody"))
	a.archived(t, "old", childOf("old", "top"))
	a.archived(t, "older", childOf("older", "old"))
	a.archived(t, "moved", header("moved"))
	a.write("left", childOf("left", a.path("moved.jsonl")))
	m := mountForTest(t, a.dir)
	children := func(session string) (found []string) { // which all have it as their parent, and lend the link its name
		return strings.Fields(shell(t, `cd "$1/$2/children" && ls -U | while read -r name; do
			[ "$(realpath "$name/parent")" = "$1/$2" ] && child=$(realpath --relative-to="$1" "$name") && [ "$(basename "$child")" = "${name%%~*}" ] && echo "$child" || echo "wrong: $name"; done`, m.dir, session))
	}
	require.ElementsMatch(t, []string{"sessions/p/byid", "sessions/p/bypath", "sessions/p/elsewhere", "archive/p/old", "sessions/p/twin", "sessions/q/twin"}, children("sessions/p/top"))
	require.Equal(t, []string{"sessions/p/grandchild"}, children("sessions/p/byid"))
	require.Equal(t, []string{"archive/p/older"}, children("archive/p/old"))
	require.Equal(t, []string{"sessions/p/left"}, children("archive/p/moved"))
	for _, none := range []string{"grandchild", "self", "none", "no"} {
		require.Empty(t, children("sessions/p/"+none), none)
	}
	require.Equal(t, "../../byid", link(t, m.session("top", "children/byid")))
	require.Equal(t, "../../../../archive/p/old", link(t, m.session("top", "children/old")))
	for _, name := range []string{"top", "grandchild", "twin", "bypat", "byid~0000000000000000", "self"} {
		_, err := os.Readlink(m.session("top", "children", name))
		require.ErrorIs(t, err, os.ErrNotExist, name)
	}

	a.write("late", childOf("late", "top"))
	require.Equal(t, "../../late", link(t, m.session("top", "children/late")))
	require.Contains(t, names(t, m.session("top", "children")), "late")
	a.replace("late", childOf("late", "byid"))
	require.NotContains(t, names(t, m.session("top", "children")), "late")
	require.NoError(t, os.Remove(a.path("byid.jsonl")))
	require.NotContains(t, names(t, m.session("top", "children")), "byid")
}

// TestChildrenCost: who lists a session's directory with all attributes does not have all sessions read. Who lists
// children/ does, once: a crawler that lists those of all sessions has no more read.
func TestChildrenCost(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	const sessions = 400
	a.write("top", header("top"))
	for i := range sessions {
		a.write(fmt.Sprint("s", i), childOf(fmt.Sprint("s", i), "top"))
	}
	time.Sleep(30 * time.Millisecond) // until the clock of the files has ticked
	m := mountForTest(t, a.dir)
	cost := func(args ...string) int {
		before := m.procNumber("io", "syscr")
		run(t, args[0], args[1:]...)
		return m.procNumber("io", "syscr") - before
	}
	require.Less(t, cost("ls", "-l", m.session("top")), sessions/2)
	require.Greater(t, cost("ls", m.session("top", "children")), sessions)
	require.Less(t, cost("ls", m.session("s1", "children"), m.session("s2", "children"), m.session("s3", "children")), sessions/2)
	require.Len(t, names(t, m.session("top", "children")), sessions)
}
