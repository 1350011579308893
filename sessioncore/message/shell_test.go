package message

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// TestShell: the commands that agents' tools run in a shell, their directories, and whether a shell begins anew.
func TestShell(t *testing.T) {
	for _, c := range []struct{ tool, arguments, want string }{
		{"bash", `{"command":"mv a b","timeout":5}`, "mv a b||false"},                     // omp, pi, Copilot, OpenCode
		{"bash", `{"command":"mv a b","cwd":"sub"}`, "mv a b|sub|false"},                  // omp
		{"Bash", `{"command":"mv a b","description":"x"}`, "mv a b||false"},               // Claude Code
		{"shell", `{"command":["bash","-lc","mv a b"],"workdir":"/p"}`, "mv a b|/p|true"}, // Codex
		{"shell", `{"command":["mv","a b","it's"]}`, `'mv' 'a b' 'it'\''s'||true`},
		{"exec_command", `{"cmd":"mv a b","workdir":"/p"}`, "mv a b|/p|true"},
		{"exec_command", `{"command":["/bin/zsh","-c","mv a b"]}`, "mv a b||true"},
		{"run_shell_command", `{"command":"mv a b","dir_path":"sub"}`, "mv a b|sub|true"},  // Gemini CLI
		{"run_shell_command", `{"command":"mv a b","directory":"sub"}`, "mv a b|sub|true"}, // Qwen Code
		{"run_shell_command", `{"command":"mv a b","is_background":true}`, ""},
		{"Bash", `{"command":"mv a b","run_in_background":true}`, ""},
		{"bash", `{"command":"mv a b","mode":"async"}`, ""},
		{"bash", `{"command":["mv",1]}`, ""},
		{"ssh", `{"command":"mv a b"}`, ""}, // another machine's
		{"str_replace_editor", `{"command":"create"}`, ""},
	} {
		call := Members{Name: rawjson.AppendQuoted(nil, c.tool), Arguments: rawjson.Value(c.arguments)}
		shell, ok := Shell(&call)
		got := ""
		if ok {
			got = fmt.Sprintf("%s|%s|%t", shell.Command, shell.Dir, shell.IsFresh)
		}
		require.Equal(t, c.want, got, c.arguments)
	}
}
