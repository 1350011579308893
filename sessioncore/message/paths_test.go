package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// TestEachPath: each way in which a tool of any agent is told which files it is about.
func TestEachPath(t *testing.T) {
	const patch = `*** Begin Patch\n*** Add File: a b.go\n+*** Update File: no\n*** Update File: src/\u00fc.go\n*** Move to: /abs/x.go\n@@\n-*** ` +
		`Delete File: no\n` +
		`*** Delete File: gone.go\r\n*** End Patch\n`
	const patched = "a b.go|src/ü.go|/abs/x.go|gone.go"
	// again puts the body of a string into a string of another language, which is in one of JSON.
	again := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	for _, c := range []struct{ tool, arguments, want string }{
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"*** Begin Patch\n*** Update File: no"}`, "/a"}, // Claude Code
		{"MultiEdit", `{"file_path":"/a","edits":[{"old_string":"b","new_string":"c"}]}`, "/a"},
		{"NotebookEdit", `{"notebook_path":"/a.ipynb","new_source":"x"}`, "/a.ipynb"},
		{"Grep", `{"pattern":"x","path":"src;x"}`, "src;x"},
		{"Write", `{"file_path":"/doc","content":"` + patch + `"}`, "/doc"},
		{"apply_patch", `{"input":"` + patch + `"}`, patched}, // Codex
		{"apply_patch", `"` + patch + `"`, patched},
		{"shell", `{"command":["apply_patch","` + patch + `"]}`, patched},
		{"shell", `{"command":["bash","-lc","apply_patch <<'EOF'\n` + patch + `EOF\n"]}`, patched},
		{"exec_command", `{"cmd":"cd x && apply_patch <<'EOF'\n` + patch + `EOF","workdir":"/w"}`, "/w/a b.go|/w/src/ü.go|/abs/x.go|/w/gone.go"},
		{"shell", `{"command":["cat","a.go"]}`, ""},
		{"x", `{"input":"*** Begin Patch\n*** Update File: "}`, ""},
		{"x", `{"input":"*** Begin Patch\n*** Update File:no\n *** Add File: no\n*** "}`, ""},
		{"x", `{"input":"*** Update File: no\n"}`, ""},
		{"x", `7`, ""},
		// a program that has the patch as a string, or several
		{"exec", `{"input":"await tools.apply_patch(\"` + again(patch) + `\");"}`, patched},
		{"exec", `{"input":"f(\"*** Begin Patch\\n*** Update File: a.go\\r\\n@@\\n+x\\n*** End Patch\");\n` +
			`g(\"*** Begin Patch\\n*** Add File: b.go\");"}`, "a.go|b.go"},
		{"exec", `{"input":"const p = [\n  '*** Begin Patch',\n  '*** Update File: it.go',\n  \"*** Move to: it's.go\",\n].join('\\n')"}`, "it.go|it's.go"},
		{"exec", "{\"input\":\"f(`*** Begin Patch\\n*** Update File: a.go\\n*** Add File: ${dir}/b.go\\n*** Delete File: c.go`)\"}", "a.go|c.go`)"},
		{"bash", `{"command":"node -e 'f(\"*** Begin Patch\\n*** Add File: C:\\\\new\\\\readme\\n+x\")'"}`, `C:\new\readme`},
		{"bash", `{"command":"node -e 'f(\"g(\\\"*** Begin Patch\\\\n*** Add File: C:\\\\\\\\new\\\\n\\\")\")'"}`, `C:\new`},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: C:\\new\\readme.txt\n+a\\\n*** Add File: b\n"}`, `C:\new\readme.txt|b`},
		// omp
		{"edit", `{"input":"*** Begin Patch\n[src/pump.go#1A2B]\nPUT 3.=3:\n+[no#1A2B]\n*** End Patch","i":"Fixing"}`, "src/pump.go"},
		{"edit", `{"input":"\n[docs/a b.md#c0de]  \nMV \"docs/c d.md\"\n[/etc/x#00FF]\r\nREM\n[new.go]\nPUT >$:\n+x"}`,
			"docs/a b.md|docs/c d.md|/etc/x|new.go"},
		{"edit", `{"input":"[no#12345]\n[no#1G00]\n[]\n[no\nMV \n x[no#1A2B]"}`, ""},
		{"edit", `{"_input":"¶a.go#1A2B\n\u00a7b.go\n"}`, "a.go|b.go"},
		{"edit", `{"input":"[C:\\new\\a.go#1A2B]\n  MV C:\\b.go"}`, `C:\new\a.go|C:\b.go`},
		{"edit", `{"path":"a.go","edits":[{"op":"update","rename":"b.go","diff":"@@"}]}`, "a.go|b.go"},
		{"exec", `{"input":"[no#1A2B]\nMV no"}`, ""},
		{"read", `{"path":"src/two.go; src/three.go:5-9;"}`, "src/two.go|src/three.go:5-9|src/two.go; src/three.go:5-9;"},
		{"ast_edit", `{"paths":["a;b"," c "]}`, `a|b|a;b| c `},
		{"glob", `{"path":"` + strings.Repeat("dir/file.go; ", MaxPath) + `last"}`, strings.Repeat("dir/file.go|", MaxPath) + "last"},
		{"write", `{"path":"a;b","content":"[no#1A2B]"}`, "a;b"},
	} {
		var found []string
		EachPath(c.tool, rawjson.Value(c.arguments), func(name string) bool { found = append(found, name); return false })
		require.Equal(t, c.want, strings.Trim(strings.Join(found, "|"), "|"), "%s %s", c.tool, c.arguments)
	}
	var found []string
	EachPath("read", rawjson.Value(`{"path":"a;b"}`), func(name string) bool { found = append(found, name); return name == "b" })
	require.Equal(t, []string{"a", "b"}, found)
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
		`"text"`: "",
		``:       "",
	} {
		var found []string
		EachResultPath(rawjson.Value(details), func(name string) bool { found = append(found, name); return true })
		require.Equal(t, want, strings.Join(found, "|"), details)
	}
}

// TestMayBePatched: a byte of a file is held for one of a patch's path where it follows the
// beginning of such a line.
func TestMayBePatched(t *testing.T) {
	for _, line := range []string{`"x\n*** Add File: |dir/name.go\n+name.go"`, `{"input":"[|a#1A2B]\nPUT`, `\u00a7|a.go\n`,
		`"f(\"*** Move to: |C:\\\\new`, `"MV |a\r\n`} {
		at := strings.IndexByte(line, '|')
		line = strings.Replace(line, "|", "", 1)
		require.True(t, MayBePatched([]byte(line), at), line)
		require.False(t, MayBePatched([]byte(line), 1), line)
	}
	for _, line := range []string{`"*** Add File: a\n+b|"`, `"*** Add File: a","b|"`, `"see [a|"`, `"a\nb|"`, strings.Repeat(`\`, 3*MaxPath) + "|", "|"} {
		at := strings.IndexByte(line, '|')
		require.False(t, MayBePatched([]byte(strings.Replace(line, "|", "", 1)), at), line)
	}
}

// TestEndsForCutNames: a name that is too long, or quoted, ends anywhere in an escape.
func TestEndsForCutNames(t *testing.T) {
	for cut := range 12 {
		long := `"*** Begin Patch\n*** Add File: ` + strings.Repeat("x", cut) + strings.Repeat(`\ud83d\ude00`, MaxPath) + `"`
		EachPath("", rawjson.Value(long), func(name string) bool { require.Less(t, len(name), MaxPath); return true })
	}
}
