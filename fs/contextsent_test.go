package fs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContextSent: with -o context=sent context.json, of the session and of each branch, is what omp 18 sends: nothing
// from before a /clear, no tool call without a result, and no turn that was aborted. Otherwise it has all of it.
func TestContextSent(t *testing.T) {
	t.Parallel()
	line := func(id, parent, rest string) string {
		return `{"id":"` + id + `","parentId":` + parent + `,"timestamp":"2026-02-16T10:20:30.000Z",` + rest + "}\n"
	}
	text := `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/p"}` + "\n" +
		line("a", "null", `"type":"message","message":{"role":"user","content":"before"}`) +
		line("b", `"a"`, `"type":"reset_boundary"`) +
		line("c", `"b"`, `"type":"message","message":{"role":"user","content":"asked"}`) +
		line("d", `"c"`, `"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"partly"}],"stopReason":"aborted"}`) +
		line("e", `"d"`, `"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"bash","arguments":{}}],"stopReason":"toolUse"}`)
	const session = "sessions/--p--/2026-02-16T10-20-30-000Z_s"
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/sessions/--p--", 0o755))
	require.NoError(t, os.WriteFile(dir+"/"+session+".jsonl", []byte(text), 0o644))
	read := func(m *mount, name string) string {
		name = m.path(session, name)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.EqualValues(t, len(text), info.Size())
		return string(text)
	}
	stored := mountForTest(t, dir)
	require.Equal(t, 4, strings.Count(read(stored, "context.json"), `"role"`))
	sent := mountForTest(t, dir, func(c *mountConfig) { c.options.ContextSent = true })
	const asked = `{"messages":[{"role":"user","content":"asked","attribution":"user"}],`
	require.True(t, strings.HasPrefix(read(sent, "context.json"), asked))
	require.True(t, strings.HasPrefix(read(sent, "branches/d/context.json"), asked))
	require.Contains(t, read(sent, "branches/a/context.json"), `"before"`)
}
