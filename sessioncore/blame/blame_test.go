package blame

import (
	"encoding/json"
	"fmt"
	"regexp"
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
	zero := regexp.MustCompile(`blame\.Change|(, )?\w+:(""|false|0)`)
	sessiontest.Page(t, "testdata/changes.txt", func(t *testing.T, name, call, want string) {
		tool, arguments, _ := strings.Cut(call, " ")
		got := ""
		for _, c := range Changes(tool, rawjson.Value(arguments), isFile) {
			all := fmt.Sprintf("%#v\n", c)
			fields := zero.ReplaceAllString(all, "")
			got += strings.Replace(fields, "{, ", "{", 1)
		}
		require.Equal(t, want, got, name)
	})
}

// isFile reports whether a path is the one of the file that these tests are about.
func isFile(path string) bool { return path == "/a.go" }

// readOf returns the changes of the file by the first entry of a session with these lines behind its header.
func readOf(t *testing.T, lines string) []Change {
	t.Helper()
	files := sessiontest.Memory(t, []byte(sessiontest.Header+lines))
	store := sessioncore.NewStore(files)
	snap := sessiontest.Snapshot(t, store.Session(sessiontest.FileName))
	list, err := Read(snap, 0, isFile)
	require.NoError(t, err)
	return list
}

// TestReadOfBlocks: calls count as well within a block of a provider, one or several, and those that fail do not.
func TestReadOfBlocks(t *testing.T) {
	call := func(id, content string) string {
		return fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"write","arguments":{"path":"/a.go","content":%q}}`, id, content)
	}
	one := call("1", "one")
	nested := `{"type":"server","block":` + call("4", "four") + "}"
	several := strings.Join([]string{call("2", "two"), call("3", "three"), nested}, ",")
	content := `{"text":"","type":"text"},` +
		`{"type":"anthropicServerTool","block":` + one + `},` +
		`{"type":"anthropicServerTool","block":[` + several + "]}"
	list := readOf(t, sessiontest.MessageLine(1, `{"role":"assistant","content":[`+content+`]}`)+
		sessiontest.MessageLine(2, `{"role":"toolResult","toolCallId":"2","isError":true,"content":[]}`))
	want := []Change{
		{New: "one", Whole: true},
		{New: "three", Whole: true},
		{New: "four", Whole: true},
	}
	require.Equal(t, want, list)
}

// TestReadOfResults: the changes in a result count where the call does not tell them, and a failed patch none.
func TestReadOfResults(t *testing.T) {
	const call = `{"type":"toolCall","id":"1","name":%q,"arguments":{"input":%q}}`
	for _, c := range []struct{ tool, input, details, want string }{
		{"edit", "[/a.go#1A2B]\nPUT 1*:\n+c", `{"diff":" 1|...\n-2|a\n-3|b\n+2|c"}`, "a\nb>c"},
		{"edit", "[/a.go#1A2B]\nPUT <1:\n+c", `{"diff":"+1|c\n 1|a"}`, "a>c\na"},
		{"edit", "@@ /a.go\n= 2dj..2dj\n~c\n", `{"diff":" 1|a\n-2|b\n+2|c"}`, "a\nb>a\nc"},
		{"exec", "apply(name)", `{"changes":{"/b.go":{"type":"add","content":"x"},"/a.go":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b\n"}}}`, "a>b"},
		{"exec", "apply(name)", `{"changes":{"/b.go":{"type":"update","unified_diff":"@@ -1 +1 @@\n-a\n+b\n","move_path":"/a.go"}}}`, "a>b"},
		{"exec", "apply(name)", `{"changes":{"/a.go":{"type":"add","content":"a\n"}},"success":true}`, ">a\n"},
		{"exec", `"*** Begin Patch\n*** Update File: /a.go\n-a\n*** End Patch"`, `{"changes":{"/a.go":{"type":"update"}},"success":false}`, ""},
	} {
		message := `{"role":"assistant","content":[` + fmt.Sprintf(call, c.tool, c.input) + `]}`
		result := `{"role":"toolResult","toolCallId":"1","details":` + c.details + `}`
		got := ""
		for _, change := range readOf(t, sessiontest.MessageLine(1, message)+sessiontest.MessageLine(2, result)) {
			got += change.Old + ">" + change.New
		}
		require.Equal(t, c.want, got, c.details)
	}
}

// TestReadOfNestedCalls: the changes by calls that a tool made itself count, also before its own error, and those of calls
// that failed do not. Of a change without a text nothing is known.
func TestReadOfNestedCalls(t *testing.T) {
	const write, edit = `{"name":"write","status":%q,"arguments":{"path":"/a.go","content":"a"}}`, `{"name":"edit","arguments":{"path":"/a.go",` +
		`"edits":[{"oldText":"a","newText":"b"}]}}`
	written := Change{New: "a", Whole: true}
	for _, c := range []struct {
		result string
		want   []Change
	}{
		{`"nestedCalls":{"calls":[` + fmt.Sprintf(write, "ok") + "," + edit + `]}`, []Change{written, {Old: "a", New: "b"}}},
		{`"isError":true,"nestedCalls":{"calls":[` + fmt.Sprintf(write, "ok") + "," + fmt.Sprintf(write, "error") + `]}`, []Change{written}},
		{`"nestedCalls":{"calls":[` + fmt.Sprintf(write, "error") + `]}`, []Change{{New: "by the script\n", Whole: true}}},
		{`"details":{"statusEvents":[{"op":"write","path":"/a.go"},{"op":"write","path":"/b.go"},{"op":"read","path":"/a.go"}]}`, []Change{{Lines: true}}},
		{`"nestedCalls":{"calls":[{"name":"edit","arguments":{"path":"/a.go"}}]}`, []Change{{Lines: true}}},
		{`"details":{"statusEvents":[{"op":"edit","chars":1}]}`, []Change{{New: "by the script\n", Whole: true}}},
	} {
		const script = `*** Begin Patch\n*** Add File: /a.go\n+by the script\n*** End Patch`
		call := `{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"eval","arguments":{"code":"` + script + `"}}]}`
		result := `{"role":"toolResult","toolCallId":"1",` + c.result + `}`
		list := readOf(t, sessiontest.MessageLine(1, call)+sessiontest.MessageLine(2, result))
		require.Equal(t, c.want, list, c.result)
	}
	lone := `{"role":"toolResult","toolCallId":"gone","nestedCalls":{"calls":[` + fmt.Sprintf(write, "ok") + `]}}`
	require.Equal(t, []Change{written}, readOf(t, sessiontest.MessageLine(1, lone)), "a result without its call")
}

// TestDiff: a diff has the empty line behind a replaced one, and no hunk of which nothing is known.
func TestDiff(t *testing.T) {
	changes := []Change{
		{Old: "a", New: "b\n"},
		{Lines: true},
		{Old: "c\n", New: "d\n"},
	}
	require.Equal(t, "--- a/f\n+++ b/f\n@@\n-a\n+b\n+\n@@\n-c\n+d\n", diff("f", changes))
}

// FuzzChanges: no arguments make the reader panic.
func FuzzChanges(f *testing.F) {
	f.Add(`{"file_path":"/a","edits":[{"old_string":"x"}],"diff":"@@\n a\n"}`, "a\nb")
	f.Add(`"*** Begin Patch\n*** Update File: /a\n@@\n-a\n+b"`, "b\n")
	f.Fuzz(func(t *testing.T, arguments, text string) {
		trimmed := strings.TrimSpace(arguments)
		if !json.Valid([]byte(trimmed)) { // no entry has others
			t.Skip()
		}
		isAny := func(string) bool { return true }
		list := Changes("edit", rawjson.Value(trimmed), isAny)
		lines := Lines(text+"\n", [][]Change{list, list})
		require.Len(t, lines, strings.Count(text, "\n")+1)
	})
}

// TestLong: a file of 10,000 lines with 1,000 edits takes less than a second.
func TestLong(t *testing.T) {
	sessiontest.NotUnderRace(t)
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
	require.Len(t, Lines(text, edits), 11_000)
	t.Log(time.Since(start))
}

// TestLines: changes are replayed on a file, and its lines keep their edits.
func TestLines(t *testing.T) {
	whole := func(text string) []Change { return []Change{{New: text, Whole: true}} }
	for _, c := range []struct {
		name  string
		edits [][]Change
		text  string
		want  []Line
	}{
		{"by numbers, of a file that is known",
			[][]Change{whole("a\nb\nc\nd\n"), {{From: 4, To: 4}, {From: 3, To: 2, New: "x\n"}, {From: 1, To: 1, New: "A\n"}, {From: atEnd, New: "z\n"}}},
			"A\nb\nx\nc\nz\n", []Line{{1, true}, {0, true}, {1, true}, {0, true}, {1, true}}},
		// A person replaced lines by a remark, an agent that by others, and the person one of these. The brace among them has the edit of
		// the agent's line beside it, not that of the brace that was there before.
		{"a line alone", [][]Change{whole("a\nb\n}\nc\nd\n}\n"), {{Old: "remark", New: "x()\n}\ny()", Lines: true}}},
			"a\nx()\n}\n// changed\nd\n}\n", []Line{{0, true}, {1, false}, {1, false}, {Nobody, false}, {0, true}, {0, true}}},
		// A person added lines before a change by numbers, which therefore meets others: those that it seems to replace keep their edit by
		// their text.
		{"stale numbers", [][]Change{whole("a\nb\nc\nd\n"), {{From: 4, To: 4, New: "x\n"}}},
			"person\na\nb\nx\nd\n", []Line{{Nobody, false}, {0, true}, {0, true}, {1, true}, {0, false}}},
		// A person moved lines, and an agent changed some beside their new place.
		{"moved lines", [][]Change{whole("a\nb\nc\nd\ne\nf\n"), {{Old: "a\ne\nf", New: "a\ne\nF", Lines: true}}},
			"a\ne\nF\nb\nc\nd\n", []Line{{0, true}, {0, true}, {1, true}, {0, false}, {0, false}, {0, false}}},
		{"an empty line at the end", [][]Change{whole("a\n")}, "a\n\n", []Line{{0, true}, {Nobody, false}}},
	} {
		require.Equal(t, c.want, Lines(c.text, c.edits), c.name)
	}
}

// ExampleLines is the example at the head of replay.
func ExampleLines() {
	edits := [][]Change{
		{{Old: "b", New: "B\nC"}},
		{{Old: "C", New: "c"}},
	}
	fmt.Println(Lines("a\nB\nc\n", edits))
	fmt.Println(Lines("B\nx\nc\n", edits)) // a person has put a line in between
	// Output:
	// [{-1 false} {0 true} {1 true}]
	// [{0 false} {-1 false} {1 false}]
}
