package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// call is a line of a session: an assistant's message that calls a tool on a file, at second n.
func call(n int, id, parent, tool, file string) string {
	return fmt.Sprintf(`{"type":"message","id":%s,"parentId":%s,"timestamp":"2026-02-16T11:00:%02d.000Z",`+
		`"message":{"role":"assistant","content":[{"type":"toolCall","id":"t","name":%s,"arguments":{"path":%s}}]}}`,
		quoted(id), quoted(parent), n, quoted(tool), quoted(file)) + "\n"
}

// TestByFile: what a session did with a file, as tools see it.
func TestByFile(t *testing.T) {
	t.Parallel()
	work, a := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(a, "sessions/p"), 0o755))
	one := sessionOf("one", work, "One") + entry(0, "a0", "", "make it quick") + call(1, "a1", "a0", "edit", "main.go") +
		call(2, "a2", "a1", "read", work+"/sub/x.go:1-9")
	two := sessionOf("two", "/elsewhere", "Two") + call(3, "b0", "", "write", work+"/main.go") + call(4, "b1", "b0", "write", "main.go")
	require.NoError(t, os.WriteFile(filepath.Join(a, "sessions/p/one.jsonl"), []byte(one), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(a, "sessions/p/two.jsonl"), []byte(two), 0o644))
	time.Sleep(50 * time.Millisecond) // what changed just now is read again at each look
	m := mountForTest(t, a, debugging)

	require.Equal(t, "edits.diff\nentries\nresults.tsv\nsessions\n", shell(t, `cd "$1" && ls "$2/by-file/$PWD/main.go"`, work, m.dir))
	require.Empty(t, names(t, m.path("by-file")))
	require.DirExists(t, m.path("by-file", work, "main.go/entries"))
	require.Zero(t, m.searches(), "looking it up and listing it search nothing")

	require.Equal(t, [][]string{
		{"2026-02-16T11:00:03.000Z", "Two", "assistant", "sessions/p/two/entries/b0.json", "-", "write " + work + "/main.go", "0"},
		{"2026-02-16T11:00:01.000Z", "One", "assistant", "sessions/p/one/entries/a1.json", "make it quick", "edit main.go", "0"},
	}, m.table("by-file", work+"/main.go"))
	require.Equal(t, 1, m.searches())
	require.Len(t, m.table("by-file", work), 3)
	require.Equal(t, "read "+work+"/sub/x.go:1-9", m.table("by-file", work+"/sub")[0][5])
	require.Equal(t, "sessions/p/two/entries/b1.json", m.table("by-file", "elsewhere/main.go")[0][3])
	require.Empty(t, m.table("by-file", work+"/sub/x"))

	entries := m.path("by-file", work, "main.go/entries")
	require.Equal(t, []string{"0001-assistant-b0.json", "0002-assistant-a1.json"}, names(t, entries))
	require.Equal(t, run(t, "cat", m.path("sessions/p/one/entries/a1.json")), run(t, "cat", filepath.Join(entries, "0002-assistant-a1.json")))
	require.Equal(t, []string{"0001-Two", "0002-One"}, names(t, m.path("by-file", work, "main.go/sessions")))
	require.FileExists(t, m.path("by-file", work, "main.go/sessions/0002-One/header.json"))

	grow(t, filepath.Join(a, "sessions/p/one.jsonl"), call(9, "a3", "a2", "edit", "./main.go"))
	require.Equal(t, "sessions/p/one/entries/a3.json", m.table("by-file", work+"/main.go")[0][3])
	require.ErrorIs(t, os.Remove(m.path("by-file/x/y")), syscall.EPERM)
	require.Empty(t, m.table("by-file", strings.Repeat("\xff\n", 60)+"/"+strings.Repeat("z", 255)))
}
