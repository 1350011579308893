package fs_test

import (
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
	a := newAgent(t)
	a.write("s", text)
	read := func(m *mount, name string) string {
		return shell(t, `[ "$(stat -c %s "$1")" = "$(wc -c < "$1")" ] && cat "$1"`, m.session("s", name))
	}
	stored := mountForTest(t, a.dir)
	require.Equal(t, 4, strings.Count(read(stored, "context.json"), `"role"`))
	sent := mountForTest(t, a.dir, func(c *mountConfig) { c.options.ContextSent = true })
	const asked = `{"messages":[{"role":"user","content":"asked","attribution":"user"}],`
	require.True(t, strings.HasPrefix(read(sent, "context.json"), asked))
	require.True(t, strings.HasPrefix(read(sent, "branches/d/context.json"), asked))
	require.Contains(t, read(sent, "branches/a/context.json"), `"before"`)
}
