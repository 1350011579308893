package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestEachPath: each way in which a tool of any agent is told which files it is about.
func TestEachPath(t *testing.T) {
	sessiontest.Page(t, "testdata/paths.txt", func(t *testing.T, tool, arguments, want string) {
		found := ""
		EachPath(tool, rawjson.Value(arguments), func(name string) bool {
			found += name + "\n"
			return false
		})
		require.Equal(t, want, found, "%s %s", tool, arguments)
	})
	many := 0
	list := `{"path":"` + strings.Repeat("dir/file.go; ", MaxPath) + `last"}`
	EachPath("glob", rawjson.Value(list), func(string) bool {
		many++
		return false
	})
	require.Equal(t, MaxPath+1, many)
	var found []string
	EachPath("read", rawjson.Value(`{"path":"a;b"}`), func(name string) bool {
		found = append(found, name)
		return name == "b"
	})
	require.Equal(t, []string{"a", "b"}, found, "one of the list is known")
}

// TestEachResultPath: the files that a result names count if they were changed.
func TestEachResultPath(t *testing.T) {
	for details, want := range map[string]string{
		`{"path":"b.go","sourcePath":"a.go","diff":"path"}`:                                "b.go|a.go",
		`{"perFileResults":[{"path":"a"},{"path":"b","sourcePath":"c"},7],"path":null}`:    "a|b|c",
		`{"changes":{"/a":{"type":"update","move_path":"/b"},"/\u0063":7},"success":true}`: "/a|/b|/c",
		`{"changes":{"/a":{"type":"add"}}}`:                                                "/a",
		`{"changes":{"/a":{"type":"add"}},"success":false,"path":"/b"}`:                    "/b",
		`{"path":7,"perFileResults":{"path":"no"},"changes":["no"]}`:                       "",
		`{"path":"` + strings.Repeat("x", MaxPath+1) + `"}`:                                "",
		`{"fileEdits":[{"path":"a","kind":"edit"}],"possiblePaths":["b","c"]}`:             "a|b|c",
		`{"applied":true,"files":["a","b"],"scopePath":"no"}`:                              "a|b",
		`{"applied":false,"files":["no"],"sourceResultDetails":7,"xdev":[]}`:               "",
		`{"action":"apply","sourceResultDetails":{"applied":true,"files":["a"]}}`:          "a",
		`{"xdev":{"inner":{"sourceResultDetails":{"applied":true,"files":["a"]}}}}`:        "a",
		`{"xdev":{"inner":{"applied":true,"files":["a"]}},"files":["no"]}`:                 "a",
		`"text"`: "",
		``:       "",
	} {
		var found []string
		EachResultPath(rawjson.Value(details), func(name string) bool {
			found = append(found, name)
			return true
		})
		require.Equal(t, want, strings.Join(found, "|"), details)
	}
}

// TestMayBePatched: a byte of a file is held for one of a patch's path where it follows the
// beginning of such a line.
func TestMayBePatched(t *testing.T) {
	held := []string{ // at the bar
		`"x\n*** Add File: |dir/name.go\n+name.go"`,
		`{"input":"[|a#1A2B]\nPUT`,
		`\u00a7|a.go\n`,
		`"f(\"*** Move to: |C:\\\\new`,
		`"MV |a\r\n`,
	}
	for _, line := range held {
		at := strings.IndexByte(line, '|')
		line = strings.Replace(line, "|", "", 1)
		require.True(t, MayBePatched([]byte(line), at), line)
		require.False(t, MayBePatched([]byte(line), 1), line)
	}
	others := []string{
		`"*** Add File: a\n+b|"`,
		`"*** Add File: a","b|"`,
		`"see [a|"`,
		`"a\nb|"`,
		strings.Repeat(`\`, 3*MaxPath) + "|",
		"|",
	}
	for _, line := range others {
		at := strings.IndexByte(line, '|')
		line = strings.Replace(line, "|", "", 1)
		require.False(t, MayBePatched([]byte(line), at), line)
	}
}

// TestEndsForCutNames: a name that is too long, or quoted, ends anywhere in an escape.
func TestEndsForCutNames(t *testing.T) {
	for cut := range 12 {
		name := strings.Repeat("x", cut) + strings.Repeat(`\ud83d\ude00`, MaxPath)
		long := `"*** Begin Patch\n*** Add File: ` + name + `"`
		EachPath("", rawjson.Value(long), func(name string) bool {
			require.Less(t, len(name), MaxPath)
			return true
		})
	}
}
