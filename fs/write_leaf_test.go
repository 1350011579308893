package fs_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Branching by writing leaf (docs/design.md, leaf).

// linkers are the ways in which tools replace a link: $1 is the session's directory, $2 the target, $3
// an empty directory elsewhere. Also those that remove leaf before they make it anew move it once.
var linkers = map[string]string{
	"ln -sfn":                    `ln -sfn "$2" "$1/leaf"`,
	"ln -sfn in the directory":   `cd "$1" && ln -sfn "$2" leaf`,
	"ln -sfn from entries":       `cd "$1/entries" && ln -sfn "$2" ../leaf`,
	"ln -sfT":                    `ln -sfT "$2" "$1/leaf"`,
	"busybox ln":                 `busybox ln -sfn "$2" "$1/leaf"`,
	"mv -T":                      `ln -s "$2" "$1/new" && mv -T "$1/new" "$1/leaf"`,
	"mv -fT":                     `ln -s "$2" "$1/.new~" && mv -fT "$1/.new~" "$1/leaf"`,
	"cp -P --remove-destination": `ln -s "$2" "$3/l" && cp -P --remove-destination "$3/l" "$1/leaf"`,
	"cp -fP":                     `ln -s "$2" "$3/l" && cp -fP "$3/l" "$1/leaf"`,
	"busybox cp":                 `ln -s "$2" "$3/l" && busybox cp -fP "$3/l" "$1/leaf"`,
	"rsync -l":                   `ln -s "$2" "$3/leaf" && rsync -l "$3/leaf" "$1/"`,
	"rsync -a":                   `ln -s "$2" "$3/leaf" && rsync -a "$3/leaf" "$1/"`,
	"rsync -aI of a directory":   `ln -s "$2" "$3/leaf" && rsync -aI --omit-dir-times --no-perms "$3/" "$1/"`,
	"cp -a":                      `ln -s "$2" "$3/leaf" && cp -a --remove-destination "$3/leaf" "$1/"`,
	"ln and rename":              `ln -s "$2" "$1/l" && python3 -c 'import os, sys; os.rename(sys.argv[1] + "/l", sys.argv[1] + "/leaf")' "$1"`,
	"perl":                       `perl -e '($d, $t) = @ARGV; unlink "$d/leaf"; symlink $t, "$d/leaf" or die' "$1" "$2"`,
	"rm and ln":                  `rm "$1/leaf" && ln -s "$2" "$1/leaf"`,
	"os.replace": `python3 -c 'import os, sys; os.symlink(sys.argv[2], sys.argv[1] + "/x")
os.replace(sys.argv[1] + "/x", sys.argv[1] + "/leaf")' "$1" "$2"`,
	"os.unlink": `python3 -c 'import os, sys; l = sys.argv[1] + "/leaf"; os.unlink(l); os.symlink(sys.argv[2], l)' "$1" "$2"`,
	"dash":      `dash -c 'ln -sfn "$2" "$1/leaf"' dash "$1" "$2"`,
}

// requireMoves requires that what was added to the file are moves of the leaf, the last one to an entry.
func requireMoves(t testing.TB, added []record, to string, most int) {
	t.Helper()
	require.NotEmpty(t, added)
	require.LessOrEqual(t, len(added), most)
	for _, r := range added {
		require.Equal(t, "custom", r.Type)
		require.Equal(t, "sessionfs/leaf", r.CustomType)
	}
	last := added[len(added)-1]
	require.Equal(t, to, last.parent())
	want := "null"
	if to != "" {
		want = `"` + to + `"`
	}
	require.JSONEq(t, `{"targetId":`+want+`}`, string(last.Data))
}

// TestLeafByTools: whatever a tool replaces the link with, the next entry hangs under the target.
func TestLeafByTools(t *testing.T) {
	w := newWriting(t)
	n := 0
	for name, script := range linkers {
		t.Run(name, func(t *testing.T) {
			target := []string{"e2", "e1"}[n%2]
			n++
			before := w.raw("s")
			shell(t, script, w.in(), "entries/"+target+".json", t.TempDir())
			require.Equal(t, "entries/"+target+".json", w.leaf())
			require.Equal(t, "entries/"+target+".json\n", run(t, "readlink", w.in("leaf")))
			require.Contains(t, w.read("leaf"), `"id":"`+target+`"`)
			requireMoves(t, w.added(before), target, 1)
			before = w.raw("s")
			id := ask(t, w.in("append"), message(name))
			added := w.added(before)
			require.Equal(t, target, added[0].parent())
			require.Equal(t, "entries/"+id+".json", w.leaf())
		})
	}
	require.Equal(t, sessionNames, names(t, w.in()),
		"no temporary name is left")
	w.wellRead()
}

// TestLeafTargets: an entry is named as people name it. What names none fails and changes nothing, whatever replaces leaf.
// Package nodes/layout has all forms.
func TestLeafTargets(t *testing.T) {
	w := newWriting(t)
	require.NoError(t, put(w.in("labels"), "e2 two words\n"))
	for _, target := range []string{
		"e2", "by-label/two words", "branches/e2/path/000003-user-e2.json", w.in("tree/e0/e1/e2"), "../s/entries/e2.json",
		"/some/other/mount/sessions/p/s/entries/e2.json", w.m.path("by-id/s/entries/e2.json"), "../../../by-id/s/branches/e2",
	} {
		require.NoError(t, put(w.in("append"), message("elsewhere")+"\n"))
		before := w.raw("s")
		run(t, "ln", "-sfn", target, w.in("leaf"))
		require.Equal(t, "entries/e2.json", w.leaf(), target)
		requireMoves(t, w.added(before), "e2", 1)
	}
	shell(t, `cd "$1/by-id/s" && ln -sfn "$PWD/entries/e1.json" leaf && ln -sfnr entries/e0.json leaf`, w.m.dir)
	require.Equal(t, "entries/e0.json", w.leaf())
	run(t, "ln", "-sfn", w.m.path("by-id/s/tree"), w.in("leaf"))
	require.Equal(t, "tree", w.leaf())
	run(t, "ln", "-sfn", "e3", w.in("leaf"))
	disk := statListing(t, w.dir)
	run(t, "ln", "-sfn", "branches/current", w.in("leaf"))
	require.Equal(t, disk, statListing(t, w.dir), "a move to where it is, which takes no lock either")

	before := w.raw("s")
	for target, want := range map[string]error{
		"nobody": syscall.ENOENT, w.in("entries/nobody.json"): syscall.ENOENT, w.m.path("sessions/p/other/entries/nobody.json"): syscall.ENOENT,
		"entries/e2": syscall.EINVAL, "..": syscall.EINVAL, "/etc/passwd": syscall.EINVAL, w.m.path(): syscall.EINVAL,
		strings.Repeat("x/", 1000) + "x": syscall.EINVAL,
	} {
		require.NoError(t, unix.Symlink(target, w.in("new")), "%.99s", target)
		require.ErrorIs(t, unix.Rename(w.in("new"), w.in("leaf")), want, "%.99s", target)
		require.Contains(t, w.read("last-error"), "leaf: "+target, "%.99s", target)
		require.NoError(t, unix.Unlink(w.in("new")))
		_, problems, err := tool(t, "ln", "-sfn", target, w.in("leaf"))
		require.Error(t, err, "%.99s", target)
		require.True(t, containsAny(problems, "No such file or directory", "Invalid argument"), problems)
		require.Equal(t, "entries/e3.json", w.leaf())
	}
	run(t, "rm", w.in("leaf"))
	require.ErrorIs(t, unix.Symlink("nobody", w.in("leaf")), syscall.ENOENT)
	require.Equal(t, "entries/e3.json", w.leaf(), "a tool that came back with a wrong target: leaf is there again at once")
	for name, want := range map[string]error{"leaf": syscall.EEXIST, "entries": syscall.EEXIST, "entries/x": syscall.EPERM, "new": nil} {
		require.ErrorIs(t, unix.Symlink("e2", w.in(name)), want, name)
	}
	require.ErrorIs(t, unix.Renameat2(-1, w.in("new"), -1, w.in("leaf"), unix.RENAME_NOREPLACE), syscall.EEXIST)
	require.Error(t, unix.Renameat2(-1, w.in("new"), -1, w.in("leaf"), unix.RENAME_EXCHANGE))
	for from, to := range map[string]string{"new": "other", "new/": "title", "leaf": "other", "leaf/": "../leaf"} {
		require.Error(t, unix.Rename(w.in(strings.TrimSuffix(from, "/")), w.in(to)), to)
	}
	w.unchanged(before, "wrong targets and renames")
	require.Equal(t, "entries/e3.json", w.leaf())
	require.NoError(t, unix.Rename(w.in("new"), w.in("leaf")))
	require.NoError(t, unix.Symlink("e1", w.in("new")))
	require.Equal(t, "entries/e2.json", w.leaf(), "another link of the name that leaf was made under")
}

// TestLeafIsDurable: after a remount the leaf is where it was put, also before the first entry. With -o leaf=memory a move
// writes nothing, and holds until something is added or the mount ends (package writer, TestMoveLeafInMemory).
func TestLeafIsDurable(t *testing.T) {
	w := newWriting(t)
	moves := func(target, leaf, said string) {
		t.Helper()
		run(t, "ln", "-sfn", target, w.in("leaf"))
		require.Equal(t, leaf, w.leaf())
		require.Equal(t, said+"\n", run(t, "jq", "-r", ".messages[-1].content", w.in("context.json")))
	}
	moves("e1", "entries/e1.json", "one")
	w.remount()
	require.Equal(t, "entries/e1.json", w.leaf())
	before := w.raw("s")
	moves("tree", "tree", "null")
	requireMoves(t, w.added(before), "", 1)
	require.Contains(t, names(t, w.in()), "leaf")

	w.remount(func(c *mountConfig) { c.options.LeafMemory = true })
	require.Equal(t, "tree", w.leaf(), "what is in the file counts")
	before = w.raw("s")
	for _, tool := range []string{"busybox ln", "rsync -l", "mv -T"} {
		shell(t, linkers[tool], w.in(), "e2", t.TempDir())
		require.Equal(t, "entries/e2.json", w.leaf())
		moves("e1", "entries/e1.json", "one")
	}
	w.unchanged(before, "moves in memory")
	ask(t, w.in("append"), message("x"))
	require.Equal(t, "e1", w.added(before)[0].parent())
	require.Len(t, w.added(before), 1)
	moves("tree", "tree", "null")
	w.remount()
	require.NotEqual(t, "tree", w.leaf(), "memory ends with the mount")
	w.wellRead()
}

// TestLeafRemoved: removing leaf records nothing. It is away for a moment, in which branches/current stays, and
// then there again as it was.
func TestLeafRemoved(t *testing.T) {
	w := newWriting(t)
	run(t, "ln", "-sfn", "e2", w.in("leaf"))
	before, list := w.raw("s"), statListing(t, w.dir)
	run(t, "rm", w.in("leaf"))
	require.Equal(t, ".by-id/e2\n", run(t, "readlink", w.in("branches/current")))
	require.Eventually(t, func() bool { return w.leaf() != "" }, patience, 20*time.Millisecond)
	require.Equal(t, "entries/e2.json", w.leaf())
	require.Contains(t, names(t, w.in()), "leaf")
	python(t, `
import os, sys
leaf = sys.argv[1] + "/leaf"
for n in range(20): # a second removal comes too late, or in time to be the first one
    try: os.unlink(leaf)
    except FileNotFoundError: pass
os.lstat(sys.argv[1])
`, w.in())
	require.Equal(t, list, statListing(t, w.dir))
	w.unchanged(before, "removing leaf")
	require.Eventually(t, func() bool { return w.leaf() == "entries/e2.json" }, patience, 20*time.Millisecond)
	w.remount()
	require.Equal(t, "entries/e2.json", w.leaf())

	// What comes within the second is the new link.
	for _, script := range []string{`cp -fP branches/e1 leaf`, `busybox cp -fP by-label/two leaf`} {
		require.NoError(t, put(w.in("labels"), "e1 two\n"))
		ask(t, w.in("append"), message("elsewhere"))
		before = w.raw("s")
		shell(t, `cd "$1"; `+script, w.in())
		require.Equal(t, "entries/e1.json", w.leaf(), script)
		requireMoves(t, w.added(before), "e1", 1)
	}
}

// TestPendingLinks: temporary names are not listed, can be removed, and are limited in number: beyond that all go.
func TestPendingLinks(t *testing.T) {
	w := newWriting(t)
	before := w.raw("s")
	listed := names(t, w.in())
	const made, kept = 100, 36
	for i := range made {
		require.NoError(t, unix.Symlink("e1", w.in(fmt.Sprint("tmp", i))))
	}
	require.Equal(t, listed, names(t, w.in()))
	require.ErrorIs(t, unix.Symlink("e1", w.in(fmt.Sprint("tmp", made-1))), syscall.EEXIST)
	require.ErrorIs(t, unix.Lstat(w.in(fmt.Sprint("tmp", made-kept-1)), new(unix.Stat_t)), syscall.ENOENT)
	for i := made - kept; i < made; i++ {
		require.NoError(t, unix.Unlink(w.in(fmt.Sprint("tmp", i))))
	}
	w.unchanged(before, "temporary links")
	require.Equal(t, "entries/e3.json", w.leaf())
}
