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

// TestOperatorWriting: each kind of write to a session of the operator dialect, with tools (docs/design.md sections 2 and 9).
// The rules are tested in sessioncore/writer.
func TestOperatorWriting(t *testing.T) {
	const name = "2024-01-15T10-30-00-000000_5d0e8a9c-6f1b-4a0e-9b57-0c8f2d3e4a11"
	dir := filepath.Join(t.TempDir(), clients["operator"])
	file := filepath.Join(dir, "sessions", name+".jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	text := `{"type": "session_header", "id": "5d0e8a9c-6f1b-4a0e-9b57-0c8f2d3e4a11", "timestamp": 1705314600.0, "cwd": "/my/project"}` + "\n"
	for n, parent := range []string{"null", `"e0"`, `"e1"`, `"e0"`} {
		text += fmt.Sprintf(`{"type": "message", "id": "e%d", "parent_id": %s, "timestamp": %d.25, "message": {"role": "user", "content": "x"}}`, n,
			parent, 1705314600+n) + "\n"
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	m := mountForTest(t, dir)
	at := m.path("sessions", name)
	require.Equal(t, []string{name, name + ".jsonl"}, names(t, m.path("sessions")))
	require.Equal(t, "1705314601.250000000\n", shell(t, `stat -c %.9Y "$1"`, at+"/entries/e1.json"))
	for _, c := range []struct{ script, leaf, last string }{
		{`echo '{"type":"message","message":{"role":"user","content":"four"}}' >> "$1/append"`, "", "message e3 null"},
		{`ln -sfn entries/e1.json "$1/leaf"`, "entries/e1.json", "leaf _ e1"},
		{`printf 'e2 two\n' > "$1/labels"`, "", "label e1 e2"},
		{`echo 'The title' > "$1/title"`, "", "session_info _ null"},
		{`ln -s by-label/two "$1/new" && mv -T "$1/new" "$1/leaf"`, "entries/e2.json", "leaf _ e2"},
	} {
		before := string(read(t, file))
		shell(t, c.script, at)
		require.True(t, strings.HasPrefix(string(read(t, file)), before), "lines that were there have changed")
		last := strings.Fields(shell(t, `tail -n 1 "$1" | jq -r '"\(.type) \(.parent_id) \(.target_id)"'`, file))
		want := strings.Fields(strings.Replace(c.last, " _ ", " "+last[1]+" ", 1))
		require.Equal(t, want, last, c.script)
		if c.leaf != "" {
			require.Equal(t, c.leaf, link(t, at+"/leaf"), c.script)
		}
	}
	require.ErrorIs(t, put(at+"/append", `{"type":"custom","customType":"x"}`+"\n"), syscall.EINVAL)
	require.Contains(t, string(read(t, at+"/last-error")), `found "custom"`)
	forked := ask(t, at+"/fork", "e2")
	require.Equal(t, file+"\n", run(t, "jq", "-r", ".parent_session", m.path(forked, "header.json")))
	fresh := ask(t, m.path("new-session"), `{"cwd":"/elsewhere","title":"A title","create":true}`)
	require.Equal(t, "sessions", filepath.Dir(fresh))
	ask(t, m.path(fresh, "append"), `{"type":"message","message":{"role":"assistant","content":"hello"}}`)
	require.Equal(t, "session_header /elsewhere number\n",
		shell(t, `head -n 1 "$1" | jq -r '"\(.type) \(.cwd) \(.timestamp|type)"'`, filepath.Join(dir, fresh+".jsonl")))
	require.Empty(t, run(t, "cat", at+"/problems.jsonl"))
}
