package search

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestTouched: each way in which a call can name a file.
func TestTouched(t *testing.T) {
	const cwd = "/home/dev"
	for _, c := range []struct {
		call string // block of an assistant's message
		path string
		line string // "" if it is not a hit
	}{
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/dev/main.go", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/dev", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/dev/main", ""},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/de", ""},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"ma\u0069n.go"}}`, "/home/dev/main.go", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"../x/./y"}}`, "/home/x/", "edit ../x/./y"},
		{`{"type":"toolCall","name":"read","arguments":{"path":"a.go:3-9"}}`, "/home/dev/a.go", "read a.go:3-9"},
		{`{"type":"toolCall","name":"read","arguments":{"path":"a:b"}}`, "/home/dev/a:b", "read a:b"},
		{`{"type":"toolCall","name":"read","arguments":{"path":"https://a/b"}}`, "/home/dev", ""},
		{`{"type":"tool_use","name":"Write","input":{"file_path":"/etc/x \"y\""}}`, `/etc/x "y"`, `Write /etc/x "y"`},
		{`{"type":"toolCall","name":"grep","arguments":{"paths":["/a","/b/c"]}}`, "/b", "grep /b/c"},
		{`{"type":"toolCall","name":"edit","arguments":{"edits":[{"path":"p"},{"path":"p"},{"path":"q/r"}]}}`, "/home/dev/q", "edit q/r"},
		{`{"type":"toolCall","name":"bash","arguments":{"command":"cat main.go"}}`, "/home/dev/main.go", ""},
		{`{"type":"text","text":"main.go","path":"main.go"}`, "/home/dev/main.go", ""},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"` + strings.Repeat("./", 2000) + `a"}}`, "/home/dev/a", "edit " + strings.Repeat("./", 87) + ".…"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"` + strings.Repeat("./", 2048) + `a"}}`, "/home/dev/a", ""},
	} {
		text := strings.Replace(sessiontest.Header, `"cwd":"/w"`, `"cwd":"`+cwd+`"`, 1)
		require.Contains(t, text, cwd)
		text += `{"type":"message","id":"u","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"do"}}` + "\n" +
			`{"type":"message","id":"a","parentId":"u","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"assistant","content":[` + c.call + `]}}` + "\n" +
			`{"type":"message","id":"b","parentId":null,"timestamp":"2026-01-02T03:04:05.500Z","message":{"role":"assistant","content":[` + c.call + `]}}` + "\n"
		m, err := NewTouched(c.path)
		require.NoError(t, err)
		result, err := New(Sessions{Files: sessiontest.Memory(t, []byte(text))}).Search(context.Background(), m)
		require.NoError(t, err)
		if c.line == "" {
			require.Empty(t, result.Hits, "%s %s", c.path, c.call)
			require.Equal(t, TouchedColumns, string(result.Table()))
			continue
		}
		require.Len(t, result.Hits, 2, "%s %s", c.path, c.call)
		require.Equal(t, []string{c.line, c.line, "u", ""}, []string{result.Hits[0].Line, result.Hits[1].Line, result.Hits[0].Prompt, result.Hits[1].Prompt})
		lines := strings.Split(string(result.Table()), "\n")
		require.Contains(t, lines[1], "/entries/a.json\t"+result.Hits[0].Directory()+"/entries/u.json\t")
		require.Contains(t, lines[2], "/entries/b.json\t-\t")
	}
	for _, name := range []string{"", "a", "./a", "/a\x00b"} {
		_, err := NewTouched(name)
		require.ErrorContains(t, err, "not an absolute path", name)
	}
}
