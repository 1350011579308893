package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// TestSpellings: what dialects and providers write in their own words is the same here.
func TestSpellings(t *testing.T) {
	for _, text := range []string{
		`{"role":"toolResult","toolName":"t","toolCallId":"c","isError":true}`,
		`{"role":"tool_result","tool_name":"t","tool_call_id":"c","is_error":true}`,
		`{"role":"tool_result","toolName":"x","tool_name":"t","tool_use_id":"c","\u0069sError":true}`,
	} {
		m := Read(rawjson.Value(text))
		require.Equal(t, "toolResult", m.Role())
		require.True(t, m[ToolName].Is("t") && m[CallID].Is("c") && m[IsError].Truthy(), text)
		require.Nil(t, m[Content])
	}
	for text, want := range map[string]Kind{
		`{"type":"toolCall","arguments":7}`:    CallKind,
		`{"type":"tool_use","input":7}`:        CallKind,
		`{"type":"function_call","args":7}`:    CallKind,
		`{"type":"input_text","parameters":7}`: TextKind,
		`{"type":"x","arguments":7}`:           OtherKind,
	} {
		m := Read(rawjson.Value(text))
		require.Equal(t, want, m.Kind(), text)
		require.Equal(t, "7", string(m[Arguments]))
	}
	m := Read(rawjson.Value(`"text"`))
	require.Equal(t, Members{}, m)
}

// TestEachPath: each way in which a tool of any agent is told which files it is about.
func TestEachPath(t *testing.T) {
	const patch = `*** Begin Patch\n*** Add File: a b.go\n+*** Update File: no\n*** Update File: src/\u00fc.go\n*** Move to: /abs/x.go\n@@\n-*** Delete File: no\n` +
		`*** Delete File: gone.go\r\n*** End Patch\n`
	const patched = "a b.go|src/ü.go|/abs/x.go|gone.go"
	for arguments, want := range map[string]string{
		`{"file_path":"/a","old_string":"x","new_string":"*** Update File: no"}`:   "/a", // Claude Code: Edit, Write, Read
		`{"file_path":"/a","edits":[{"old_string":"b","new_string":"c"}]}`:         "/a",
		`{"notebook_path":"/a.ipynb","new_source":"x"}`:                            "/a.ipynb",
		`{"pattern":"x","path":"src"}`:                                             "src",
		`{"input":"` + patch + `"}`:                                                patched, // Codex: apply_patch
		`"` + patch + `"`:                                                          patched,
		`{"command":["apply_patch","` + patch + `"]}`:                              patched,
		`{"command":["bash","-lc","apply_patch <<'EOF'\n` + patch + `EOF\n"]}`:     patched,
		`{"cmd":"cd x && apply_patch <<'EOF'\n` + patch + `EOF","workdir":"/w"}`:   "/w/a b.go|/w/src/ü.go|/abs/x.go|/w/gone.go",
		`{"command":["cat","a.go"]}`:                                               "",
		`{"input":"*** Begin Patch\n*** Update File: "}`:                           "",
		`{"input":"*** Begin Patch\n*** Update File:no\n *** Add File: no\n*** "}`: "",
		`{"input":"*** Update File: no\n"}`:                                        "",
		`7`:                                                                        "",
	} {
		var found []string
		EachPath(rawjson.Value(arguments), func(name string) { found = append(found, name) })
		require.Equal(t, want, strings.Trim(strings.Join(found, "|"), "|"), arguments)
	}
	quoted := `"const p = \"*** Begin Patch\\n*** Update File: no\\r\\n*** Move to: no\\\\\\\\n\";\n*** Add File: a\\\\nb\\"`
	require.NotPanics(t, func() { EachPath(rawjson.Value(quoted), func(string) {}) })
	for cut := range 12 { // a name that is too long ends anywhere in an escape
		long := `"*** Begin Patch\n*** Add File: ` + strings.Repeat("x", cut) + strings.Repeat(`\ud83d\ude00`, MaxPath) + `"`
		EachPath(rawjson.Value(long), func(name string) { require.Less(t, len(name), MaxPath+12) })
	}
	line := `"x\n*** Add File: dir/name.go\n+name.go"`
	for at := range line {
		require.Equal(t, at >= 18 && at < 29, IsPatched([]byte(line), at), "%d of %s", at, line)
	}
}
