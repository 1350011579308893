package claude

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
)

// withDetails returns a result's record with the details that the client keeps beside it.
func withDetails(record, details string) string {
	return withMembers(record, `"toolUseResult":`+details)
}

// TestWordsLackDetails: a session that is only searched lacks usages, and the details of results, but for those
// with calls that a tool made itself.
func TestWordsLackDetails(t *testing.T) {
	h := agentstest.New(t, "claude")
	const name = "-p/019c6f0e-7a11-4000-8000-000000000001.jsonl"
	h.Put("projects/"+name,
		user("u1", "", "go"),
		says("a1", "u1", "m1", callBlock("t1"), 1),
		withDetails(result("r1", "a1", "t1", "one"), `{"stdout":"one","interrupted":false}`),
		says("a2", "r1", "m2", callBlock("t2"), 1),
		withDetails(result("r2", "a2", "t2", "two"), `{"statusEvents":[{"op":"read","path":"heron"}]}`),
		says("a3", "r2", "m3", callBlock("t3"), 1),
		withDetails(result("r3", "a3", "t3", "three"), `{"cells":[{"statusEvents":[{"op":"read","path":"egret"}]}]}`),
	)
	text, _ := h.ReadOnce(name, false)
	words, _ := h.ReadOnce(name, true)
	require.Contains(t, text, `"stdout"`)
	require.Contains(t, text, `"usage"`)
	require.NotContains(t, words, `"stdout"`)
	require.NotContains(t, words, `"usage"`)
	require.Contains(t, words, `"heron"`)
	require.Contains(t, words, `"egret"`)
	require.Equal(t, agentstest.Searched(t, text), agentstest.Searched(t, words))
}
