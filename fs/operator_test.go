package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
		text += fmt.Sprintf(`{"type": "message", "id": "e%d", "parent_id": %s, "timestamp": %d.25, "message": {"role": "user", "content": "x"}}`, n, parent, 1705314600+n) + "\n"
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	m := mountForTest(t, dir)
	at := m.path("sessions", name)
	require.Equal(t, []string{name, name + ".jsonl"}, names(t, m.path("sessions")))
	require.Equal(t, "1705314601.250000000\n", shell(t, `stat -c %.9Y "$1"`, at+"/entries/e1.json"))
	made := regexp.MustCompile(`"(timestamp|id|parent_id)":("[0-9a-f]{8}"|[0-9]{10}\.[0-9]{3}\b)`)
	for _, c := range []struct{ script, leaf, want string }{
		{`echo '{"type":"message","message":{"role":"user","content":"four"}}' >> "$1/append"`, "",
			`{"type":"message","id":_,"parent_id":"e3","timestamp":_,"message":{"role":"user","content":"four"}}`},
		{`ln -sfn entries/e1.json "$1/leaf"`, "entries/e1.json", `{"type":"leaf","id":_,"parent_id":_,"timestamp":_,"target_id":"e1"}`},
		{`printf 'e2 two\n' > "$1/labels"`, "", `{"type":"label","id":_,"parent_id":"e1","timestamp":_,"target_id":"e2","label":"two"}`},
		{`echo 'The title' > "$1/title"`, "", `{"type":"session_info","id":_,"parent_id":_,"timestamp":_,"name":"The title"}`},
		{`ln -s by-label/two "$1/new" && mv -T "$1/new" "$1/leaf"`, "entries/e2.json", `{"type":"leaf","id":_,"parent_id":_,"timestamp":_,"target_id":"e2"}`},
		{`ln -sfn tree "$1/leaf"`, "tree", `{"type":"leaf","id":_,"parent_id":"e2","timestamp":_,"target_id":null}`},
	} {
		before := string(read(t, file))
		shell(t, c.script, at)
		now := string(read(t, file))
		require.True(t, strings.HasPrefix(now, before), "lines that were there have changed")
		require.Equal(t, c.want+"\n", made.ReplaceAllString(now[len(before):], `"$1":_`), c.script)
		if c.leaf != "" {
			require.Equal(t, c.leaf, link(t, at+"/leaf"), c.script)
		} else {
			require.Equal(t, run(t, "tail", "-n", "1", file), string(read(t, at+"/leaf")), c.script)
		}
	}
	require.ErrorIs(t, put(at+"/append", `{"type":"custom","customType":"x"}`+"\n"), syscall.EINVAL)
	require.Contains(t, string(read(t, at+"/last-error")), `found "custom"`)
	const pattern = `^sessions/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-[0-9]{6}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	forked := ask(t, at+"/fork", "e2")
	require.Regexp(t, pattern, forked)
	require.Equal(t, file+"\n", run(t, "jq", "-r", ".parent_session", m.path(forked, "header.json")))
	fresh := ask(t, m.path("new-session"), `{"cwd":"/elsewhere","title":"A title","create":true}`)
	require.Regexp(t, pattern, fresh)
	ask(t, m.path(fresh, "append"), `{"type":"message","message":{"role":"assistant","content":"hello"}}`)
	require.Equal(t, "session_header /elsewhere number\n", shell(t, `head -n 1 "$1" | jq -r '"\(.type) \(.cwd) \(.timestamp|type)"'`, filepath.Join(dir, fresh+".jsonl")))
	require.Equal(t, "A title\n", run(t, "cat", m.path(fresh, "title")))
	require.Empty(t, run(t, "cat", at+"/problems.jsonl"))
}
