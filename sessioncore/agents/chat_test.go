package agents_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
)

// TestChat: messages of chat completions become entries: texts and images in parts, calls and their results.
func TestChat(t *testing.T) {
	const file = `{"role":"system","content":"rules"}
{"role":"user","content":"Which rope? (be short)"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"view","arguments":"{\"path\":\"x\"}"}}]}
{"role":"tool","tool_call_id":"c","content":"hemp"}
{"role":"assistant","content":[{"type":"text","text":"He"},{"type":"text","text":"mp."}]}
{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"image_url","image_url":{"url":"https://x"}}]}
{"role":7,"content":{}}
`
	typed := func(text string) string { return strings.TrimSuffix(text, " (be short)") }
	c := agents.NewBuilder(agents.About{ID: "s"}, agents.Provider{}, func(b *agents.Builder) func(*agents.Record) {
		return func(r *agents.Record) { b.Chat(r.Object, typed) }
	})
	got, _ := agentstest.Convert(t, c, file)
	require.Equal(t, strings.TrimSpace(`
session s Which rope?
l2 <  message user "Which rope?" [2]
l3 < l2 message assistant c:view{"path":"x"} toolUse [3]
l4 < l3 message toolResult view "hemp" [4]
l5 < l4 message assistant "Hemp." stop [5]
l6 < l5 message user image image/png AA== [6]`), strings.Join(agentstest.Outline(t, got), "\n"))
}
