package blame

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestChanges: the ways in which agents name a change.
func TestChanges(t *testing.T) {
	is := func(path string) bool { return path == "/a.go" }
	for _, c := range []struct {
		name, tool, arguments string
		want                  []Change
	}{
		{"Claude Code", "Edit", `{"file_path":"/a.go","old_string":"x","new_string":"y","replace_all":true}`, []Change{{Old: "x", New: "y", All: true}}},
		{"another file", "Edit", `{"file_path":"/b.go","old_string":"x","new_string":"y"}`, nil},
		{"several", "MultiEdit", `{"file_path":"/a.go","edits":[{"old_string":"x","new_string":""},{"old_string":"","new_string":"z"}]}`,
			[]Change{{Old: "x"}, {New: "z"}}},
		{"omp", "edit", `{"path":"/a.go","edits":[{"old_text":"x","new_text":"y"}]}`, []Change{{Old: "x", New: "y"}}},
		{"omp, a file each", "edit", `{"edits":[{"path":"/b.go","old_text":"x","new_text":"y"},{"path":"/a.go","diff":"@@\n a\n-b\n+c\n"}]}`,
			[]Change{{Old: "a\nb", New: "a\nc", Lines: true}}},
		{"a whole file", "Write", `{"file_path":"/a.go","content":"x\n"}`, []Change{{New: "x\n", Whole: true}}},
		{"a file that is read", "read", `{"file_path":"/a.go","content":"x\n"}`, nil},
		{"create", "str_replace_based_edit_tool", `{"command":"create","path":"/a.go","file_text":"x"}`, []Change{{New: "x", Whole: true}}},
		{"patch", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: /b.go\n-x\n*** Update File: /a.go\n@@ f\n a\n-b\n+c\n@@\n-d\n*** End Patch\n"}`,
			[]Change{{Old: "a\nb", New: "a\nc", Lines: true}, {Old: "d", Lines: true}}},
		{"comments of SQL", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: /a.go\n@@\n--- old\n+-- new\n*** End Patch\n"}`,
			[]Change{{Old: "-- old", New: "-- new", Lines: true}}},
		{"omp, by lines", "edit", `{"input":"[/b.go#00FF]\nCUT 1\n[/a.go#1A2B]\nPUT 3.=4:\n+x\n+y\nCUT 7.=8\nPUT >$:\n+z\nPUT >5:\n+w"}`, []Change{
			{From: 7, To: 8, Lines: true}, {From: 6, To: 5, New: "w\n", Lines: true}, {From: 3, To: 4, New: "x\ny\n", Lines: true},
			{From: atEnd, New: "z\n", Lines: true}}},
		{"patch in a shell", "shell", `{"command":["apply_patch","*** Begin Patch\n*** Add File: /a.go\n+x\n+y\n*** End Patch"]}`,
			[]Change{{New: "x\ny\n", Whole: true}}},
	} {
		require.Equal(t, c.want, Changes(c.tool, rawjson.Value(c.arguments), is), c.name)
	}
}

// TestReadOfBlocks: calls count as well within a block of a provider, one or several, and those that fail do not.
func TestReadOfBlocks(t *testing.T) {
	call := func(id, content string) string {
		return fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"write","arguments":{"path":"/a.go","content":%q}}`, id, content)
	}
	one, several := call("1", "one"), call("2", "two")+","+call("3", "three")+`,{"type":"server","block":`+call("4", "four")+"}"
	content := `{"text":"","type":"text"},{"type":"anthropicServerTool","block":` + one + `},{"type":"anthropicServerTool","block":[` + several + "]}"
	lines := []string{
		`{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/"}`,
		sessiontest.MessageLine(1, `{"role":"assistant","content":[`+content+`]}`),
		sessiontest.MessageLine(2, `{"role":"toolResult","toolCallId":"2","isError":true,"content":[]}`),
	}
	store := sessioncore.NewStore(sessiontest.Memory(t, []byte(strings.Join(lines, "\n"))))
	snap := sessiontest.Snapshot(t, store.Session(sessiontest.FileName))
	list, err := Read(snap, 0, func(path string) bool { return path == "/a.go" })
	require.NoError(t, err)
	require.Equal(t, []Change{{New: "one", Whole: true}, {New: "three", Whole: true}, {New: "four", Whole: true}}, list)
}

// FuzzChanges: no arguments make the reader panic.
func FuzzChanges(f *testing.F) {
	f.Add(`{"file_path":"/a","edits":[{"old_string":"x"}],"diff":"@@\n a\n"}`, "a\nb")
	f.Add(`"*** Begin Patch\n*** Update File: /a\n@@\n-a\n+b"`, "b\n")
	f.Fuzz(func(t *testing.T, arguments, text string) {
		if arguments = strings.TrimSpace(arguments); !json.Valid([]byte(arguments)) { // no entry has others
			t.Skip()
		}
		list := Changes("edit", rawjson.Value(arguments), func(string) bool { return true })
		require.Len(t, Lines(text+"\n", [][]Change{list, list}), strings.Count(text, "\n")+1)
	})
}

// TestLong: a file of 10,000 lines with 1,000 edits takes less than a second.
func TestLong(t *testing.T) {
	var file strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&file, "\tvalue%d := call(%d)\n\treturn nil\n", n%200, n)
	}
	text := file.String()
	edits := [][]Change{{{New: text, Whole: true}}}
	for n := range 1000 {
		old := fmt.Sprintf("\tline %d\n", n)
		edits = append(edits, []Change{{Old: "\tvalue", New: old + "\tvalue"}})
		text = strings.Replace(text, "\tvalue", old+"\tvalue", 1)
	}
	start := time.Now()
	lines := Lines(text, edits)
	t.Log(time.Since(start))
	require.Len(t, lines, 11_000)
}

// TestByNumbers: changes of lines by their numbers are replayed on a file that is known.
func TestByNumbers(t *testing.T) {
	edits := [][]Change{
		{{New: "a\nb\nc\nd\n", Whole: true}},
		{{From: 4, To: 4}, {From: 3, To: 2, New: "x\n"}, {From: 1, To: 1, New: "A\n"}, {From: atEnd, New: "z\n"}},
	}
	lines := Lines("A\nb\nx\nc\nz\n", edits)
	require.Equal(t, []Line{{1, true}, {0, true}, {1, true}, {0, true}, {1, true}}, lines)
}

// TestLineAlone: a person replaced lines by a remark, an agent that by others, and the person one of these. The brace among
// them has the edit of the agent's line beside it, not that of the brace that was there before.
func TestLineAlone(t *testing.T) {
	edits := [][]Change{{{New: "a\nb\n}\nc\nd\n}\n", Whole: true}}, {{Old: "remark", New: "x()\n}\ny()", Lines: true}}}
	lines := Lines("a\nx()\n}\n// changed\nd\n}\n", edits)
	require.Equal(t, []Line{{0, true}, {1, false}, {1, false}, {Nobody, false}, {0, true}, {0, true}}, lines)
}

// TestStaleNumbers: a person added lines before a change by numbers, which therefore meets others: those that it seems to
// replace keep their edit by their text.
func TestStaleNumbers(t *testing.T) {
	edits := [][]Change{{{New: "a\nb\nc\nd\n", Whole: true}}, {{From: 4, To: 4, New: "x\n"}}}
	require.Equal(t, []Line{{Nobody, false}, {0, true}, {0, true}, {1, true}, {0, false}}, Lines("person\na\nb\nx\nd\n", edits))
}
