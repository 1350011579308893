package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// branches/, branches.tsv and by-label/ (docs/design.md section 1) as tools see them. The session of newWriting has
// the tips e3, where the leaf is, and e2.

func TestBranches(t *testing.T) {
	w := newWriting(t)
	require.Equal(t, []string{".by-id", "current", "e3", "e2"}, names(t, w.in("branches")))
	require.Equal(t, "current\ne2\ne3\n", run(t, "ls", w.in("branches")))
	require.Equal(t, ".by-id/e3\n.by-id/e3\n.by-id/e2\n", run(t, "readlink", w.in("branches/current"), w.in("branches/e3"), w.in("branches/e2")))
	require.Equal(t, "id  entries  time                      label  current  said\ne3  2        2026-02-16T11:00:03.000Z  -      yes      three\n"+
		"e2  3        2026-02-16T11:00:02.000Z  -      lost     two\n",
		strings.ReplaceAll(run(t, "column", "-t", w.in("branches.tsv")), " \n", "\n"))
	require.Equal(t, "context.json\nentries.jsonl\npath\ntranscript.md\n", run(t, "ls", w.in("branches/e2/")))
	require.Equal(t, "000001-user-e0.json\n000002-user-e1.json\n000003-user-e2.json\n", run(t, "ls", w.in("branches/e2/path")))
	require.Equal(t, writtenEntries[0]+writtenEntries[1]+writtenEntries[2], w.read("branches/e2/entries.jsonl"))
	require.Equal(t, writtenEntries[1], w.read("branches/e2/path/000002-user-e1.json"))
	require.Equal(t, "two\n", run(t, "jq", "-r", ".messages[-1].content", w.in("branches/e2/context.json")))
	require.Equal(t, w.read("context.json"), w.read("branches/current/context.json"))
	diff, _, err := tool(t, "diff", w.in("branches/e2/entries.jsonl"), w.in("branches/e3/entries.jsonl"))
	require.Error(t, err, "they differ")
	require.Equal(t, "2,3c2\n< "+writtenEntries[1]+"< "+writtenEntries[2]+"---\n> "+writtenEntries[3], diff)

	ask(t, w.in("append"), `{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[],"isError":false}}`)
	require.Equal(t, 1, strings.Count(shell(t, `ls "$1"/branches/current/path/*-toolResult-bash-*`, w.in()), "\n"))
	require.Equal(t, 2, strings.Count(shell(t, `ls "$1"/branches/current/path/*-user-*`, w.in()), "\n"))
	require.Equal(t, "3\n", shell(t, `ls "$1"/branches/current/path/*.json | wc -l`, w.in()))
}

// TestLost: lost.tsv has the tips that no resume shows, with a path that leads there, until one is gone back to.
func TestLost(t *testing.T) {
	w := newWriting(t)
	file := filepath.Join(w.m.dir, "lost.tsv")
	require.NotContains(t, names(t, w.m.dir), "lost.tsv")
	require.Equal(t, "time\tsession\tid\tpath\tsaid\n2026-02-16T11:00:02.000Z\tzero\te2\tsessions/p/s/branches/e2\ttwo\n", string(read(t, file)))
	require.Equal(t, w.read("branches/e2/transcript.md"), shell(t, `cd "$1" && cat "$(tail -n 1 lost.tsv | cut -f 4)/transcript.md"`, w.m.dir))
	shell(t, `cd "$1/sessions/p/s" && ln -sfn "branches/$(tail -n 1 ../../../lost.tsv | cut -f 3)" leaf`, w.m.dir)
	require.Equal(t, "e3\tsessions/p/s/branches/e3\tthree\n", shell(t, `tail -n 1 "$1" | cut -f 3-`, file))
	require.Equal(t, shell(t, `wc -c < "$1"`, file), run(t, "stat", "-c", "%s", file))
}

// TestBranchesFollow: what is appended, moved or labelled shows in the very next look.
func TestBranchesFollow(t *testing.T) {
	w := newWriting(t)
	for n := range 10 {
		text := fmt.Sprint("next ", n)
		id := ask(t, w.in("append"), message(text))
		require.Equal(t, ".by-id/"+id+"\n", run(t, "readlink", w.in("branches/current")))
		require.Equal(t, id, names(t, w.in("branches"))[2])
		require.Contains(t, w.read("branches.tsv"), id+"\t")
		require.True(t, strings.HasSuffix(w.read("branches/current/entries.jsonl"), w.read("leaf")))
		require.Equal(t, w.read("leaf"), w.read("entries", id+".json"))
		require.Equal(t, "entries/"+id+".json", w.leaf())
		require.Equal(t, text+"\n", shell(t,
			`cd "$1"; find tree -name "$2" | grep -q . && [ $(stat -c %s context.json) = $(wc -c < context.json) ] &&
				jq -r .messages[-1].content context.json`, w.in(), id))
	}
	run(t, "ln", "-sfn", "branches/e2", w.in("leaf"))
	require.Equal(t, ".by-id/e2\n", run(t, "readlink", w.in("branches/current")))
	require.Regexp(t, `(?m)^e2\t3\t.*\tyes\ttwo$`, w.read("branches.tsv"))
	require.Len(t, names(t, w.in("branches")), 4, "a move is no tip")
	require.NoError(t, put(w.in("labels"), "e2 x\ne1 y\n"))
	require.Equal(t, []string{"x", "y"}, names(t, w.in("by-label")))
	require.NoError(t, put(w.in("labels"), "e0 x\ne1\n"))
	require.Equal(t, []string{"x"}, names(t, w.in("by-label")), "the one labelled last has it")
	require.Equal(t, "../entries/e0.json\n", run(t, "readlink", w.in("by-label/x")))
	require.NoError(t, put(w.in("labels"), "e0\ne2\n"))
	run(t, "ln", "-sfn", "tree", w.in("leaf"))
	require.NotContains(t, names(t, w.in("branches")), "current")
	require.NotContains(t, w.read("branches.tsv"), "yes")
	w.replace("s", header("s"))
	require.Equal(t, []string{".by-id"}, names(t, w.in("branches")))
	require.Equal(t, "id\tentries\ttime\tlabel\tcurrent\tsaid\n", w.read("branches.tsv"))
	require.Empty(t, names(t, w.in("by-label")))
}

// TestBranchOfAnyEntry: every entry has a branch, by name; .by-id lists none of them.
func TestBranchOfAnyEntry(t *testing.T) {
	w := newWriting(t)
	w.add("s", `{"type":"custom"}`+"\n", entry(5, "e3", "e2", "again"))
	require.Empty(t, names(t, w.in("branches/.by-id")))
	for id, flat := range map[string]string{"e0": writtenEntries[0], "e1": writtenEntries[0] + writtenEntries[1],
		"e3~5": writtenEntries[0] + writtenEntries[3]} {
		for _, way := range []string{"branches/" + id, "branches/.by-id/" + id} {
			require.Equal(t, flat, w.read(way, "entries.jsonl"), way)
			require.Len(t, names(t, w.in(way, "path")), strings.Count(flat, "\n"))
		}
	}
	require.Equal(t, "000002-user-e3~5.json", names(t, w.in("branches/e3~5/path"))[1])
	for _, no := range []string{"nobody", "E1", "%65%31", "e3~4", ".by-id/current", "e1/path/000001-user-e1.json", "e1/none"} {
		absent(t, w.in("branches", no))
	}
	for _, readOnly := range []string{"branches/e1", "branches/new", "branches/current", "branches/e1/path/000001-user-e0.json", "by-label/new"} {
		require.ErrorIs(t, os.Remove(w.in(readOnly)), map[bool]error{true: syscall.ENOENT, false: syscall.EPERM}[strings.HasSuffix(readOnly, "/new")], readOnly)
	}
	require.ErrorIs(t, os.Symlink("x", w.in("branches/new")), syscall.EPERM)
	_, err := os.OpenFile(w.in("branches/e1/entries.jsonl"), os.O_WRONLY, 0)
	require.ErrorIs(t, err, refusedOpen())
}

// TestLongBranch: every name of a long path can be looked at, and the whole be copied.
func TestLongBranch(t *testing.T) {
	m, n := mountForTest(t, big(t)), bigSessions["chain"].entries()
	branch := m.session("chain", "branches/current/")
	require.Equal(t, fmt.Sprintln(n), shell(t, `ls -l "$1/path/" | grep -c ' -> '`, branch))
	require.Empty(t, run(t, "find", branch+"/path/", "-size", "+1"))
	require.Equal(t, fmt.Sprintln(n), shell(t, `ls "$1/path" | wc -l`, branch))
	require.Equal(t, fmt.Sprintln(n), shell(t, `tar -C "$1" -cf - path | tar -t | grep -c json`, branch))
	seesEachOnce(t, `cat "$1/branches/current/entries.jsonl"`, m.session("chain"), scratch(t))
	info, err := os.Stat(branch + "/entries.jsonl")
	require.NoError(t, err)
	raw, err := os.Stat(m.path("sessions/p/chain.jsonl"))
	require.NoError(t, err)
	require.Equal(t, raw.Size()-int64(len(header("chain"))), info.Size())
	tips := names(t, m.session("tips", "branches"))
	require.Len(t, tips, scaled(tipsCount)+2)
	require.Equal(t, fmt.Sprintln(scaled(tipsCount)+1), shell(t, `wc -l <"$1"`, m.session("tips", "branches.tsv")))

	fan := bigSessions["fan"].entries() // one root, and all others below it
	require.Equal(t, fmt.Sprintln(fan), shell(t, `ls -U "$1" | wc -l`, m.session("fan", "entries")))
	require.Equal(t, fmt.Sprintln(fan), shell(t, `ls -U "$1" | wc -l`, m.session("fan", "tree", entryID(0))), "its entry.json and its children")
}
