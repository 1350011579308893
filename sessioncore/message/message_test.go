package message

import (
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
		require.True(t, m[ToolName].Is("t"), text)
		require.True(t, m[CallID].Is("c"), text)
		require.True(t, m[IsError].Truthy(), text)
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
