package blame

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
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

// author is a line and its last edit.
type author struct {
	text string
	edit int
}

// history is a file that agents and a person change.
type history struct {
	*rand.Rand
	lines []author
	edits [][]Change
}

func (h *history) text() string {
	var b strings.Builder
	for _, l := range h.lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

// line makes a line as programs have them: some are the same everywhere.
func (h *history) line() string {
	common := []string{"}", "", "\treturn nil", "\t}", "\tif err != nil {", "\t\treturn err"}
	if h.IntN(3) == 0 {
		return common[h.IntN(len(common))]
	}
	return fmt.Sprintf("\tvalue%d := call%d(%d)", h.IntN(200), h.IntN(50), h.IntN(1000))
}

func (h *history) made(n, edit int) (list []author) {
	for range n {
		list = append(list, author{h.line(), edit})
	}
	return list
}

// place chooses a range of lines whose text is in the file once.
func (h *history) place() (from, to int, old string) {
	from = h.IntN(len(h.lines))
	for to = min(from+1+h.IntN(3), len(h.lines)); ; {
		old = ""
		for _, l := range h.lines[from:to] {
			old += l.text + "\n"
		}
		old = strings.TrimSuffix(old, "\n")
		if strings.Count(h.text(), old) == 1 || from == 0 && to == len(h.lines) {
			return from, to, old
		}
		from, to = max(from-1, 0), min(to+1, len(h.lines))
	}
}

// agent makes an edit: lines in the middle of a place are replaced.
func (h *history) agent() {
	edit := len(h.edits)
	if len(h.lines) == 0 || h.IntN(40) == 0 {
		h.lines = h.made(20+h.IntN(60), edit)
		h.edits = append(h.edits, []Change{{New: h.text(), Whole: true}})
		return
	}
	from, to, old := h.place()
	keep := h.IntN(2)
	replaced := slices.Clone(h.lines[from:min(from+keep, to)])
	for _, l := range h.made(1+h.IntN(6), edit) {
		if !strings.Contains("\n"+old+"\n", "\n"+l.text+"\n") { // else nobody can tell whether it stayed
			replaced = append(replaced, l)
		}
	}
	if len(replaced) == 0 {
		replaced = []author{{fmt.Sprint("\tonly", edit), edit}}
	}
	var after []string
	for _, l := range replaced {
		after = append(after, l.text)
	}
	h.edits = append(h.edits, []Change{{Old: old, New: strings.Join(after, "\n"), Lines: h.IntN(2) == 0}})
	h.lines = slices.Concat(h.lines[:from], replaced, h.lines[to:])
}

// person changes, adds or removes lines.
func (h *history) person() {
	if len(h.lines) < 5 {
		return
	}
	at := h.IntN(len(h.lines) - 3)
	switch h.IntN(3) {
	case 0:
		h.lines = slices.Insert(h.lines, at, author{fmt.Sprintf("\t// a remark %d", h.IntN(10000)), Nobody})
	case 1:
		h.lines[at] = author{h.lines[at].text + " // changed", Nobody}
	case 2:
		h.lines = slices.Delete(h.lines, at, at+1)
	}
}

// TestLines: of the lines that agents wrote last, nearly all name that edit, and no line of a
// person's alone names one.
func TestLines(t *testing.T) {
	for _, each := range []struct{ persons, least int }{{0, 100}, {2, 99}} {
		total, right := 0, 0
		for seed := range uint64(100) {
			h := &history{Rand: rand.New(rand.NewPCG(seed, 1))}
			for range 30 {
				h.agent()
				for range h.IntN(each.persons + 1) {
					h.person()
				}
			}
			lines := Lines(h.text(), h.edits)
			require.Len(t, lines, len(h.lines))
			for i, l := range h.lines {
				if l.edit == Nobody {
					if strings.Contains(l.text, "remark") || strings.Contains(l.text, "changed") {
						require.Equal(t, Nobody, lines[i].Edit, "%q", l.text)
					}
					continue
				}
				total++
				if lines[i].Edit == l.edit {
					right++
				}
			}
		}
		t.Logf("%d of %d lines", right, total)
		require.GreaterOrEqual(t, 100*right, each.least*total)
	}
}

// TestLong: a file of 10,000 lines with 1,000 edits takes less than a second.
func TestLong(t *testing.T) {
	h := &history{Rand: rand.New(rand.NewPCG(1, 1))}
	h.lines = h.made(10_000, 0)
	h.edits = [][]Change{{{New: h.text(), Whole: true}}}
	text, edits := h.text(), h.edits
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

// TestCopies: a line that a person wrote and that equals an agent's line is hardly ever taken for
// it, and never for certain.
func TestCopies(t *testing.T) {
	copies, named := 0, 0
	for seed := range uint64(30) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 2))}
		for range 30 {
			h.agent()
		}
		for range 30 {
			if line := h.lines[h.IntN(len(h.lines))].text; hasWord(line) {
				h.lines = slices.Insert(h.lines, h.IntN(len(h.lines)), author{line, Nobody})
			}
		}
		lines := Lines(h.text(), h.edits)
		for i, l := range h.lines {
			if l.edit == Nobody {
				if copies++; lines[i].Edit != Nobody {
					named++
				}
			}
		}
	}
	t.Logf("%d of %d", named, copies)
	require.LessOrEqual(t, 3*named, copies)
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
