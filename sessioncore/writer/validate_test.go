package writer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

// TestValidEntries: every type that can be written, in each documented shape, is taken.
func TestValidEntries(t *testing.T) {
	for _, line := range []string{
		`{"type":"message","message":{"role":"user","content":"hi"}}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}}`,
		testAnswer,
		`{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[],"isError":false}}`,
		`{"type":"message","message":{"role":"bashExecution","command":"ls"}}`,
		`{"type":"thinking_level_change","thinkingLevel":"high"}`,
		`{"type":"thinking_level_change","thinkingLevel":null}`,
		`{"type":"model_change","model":"openai/gpt-4o"}`,
		`{"type":"model_change","model":"openai/gpt-4o","role":"smol"}`,
		`{"type":"model_change","provider":"openai","modelId":"gpt-4o"}`,
		`{"type":"compaction","summary":"s","firstKeptEntryId":"gone","tokensBefore":1}`,
		`{"type":"compaction","summary":"s","shortSummary":"x","firstKeptEntryId":"a","tokensBefore":1,"details":[],"preserveData":{},"fromExtension":false}`,
		`{"type":"branch_summary","fromId":"a","summary":"s","details":{},"fromHook":true}`,
		`{"type":"branch_summary","fromId":"root","summary":""}`,
		`{"type":"custom","customType":"x"}`,
		`{"type":"custom","customType":"x","data":null}`,
		`{"type":"custom_message","customType":"x","content":"c","display":true}`,
		`{"type":"custom_message","customType":"x","content":[{"type":"text","text":"c"}],"display":false,"attribution":"user"}`,
		`{"type":"label","targetId":"a","label":"L"}`,
		`{"type":"label","targetId":"a"}`,
		`{"type":"label","targetId":"a","label":null}`,
		`{"type":"ttsr_injection","injectedRules":["a"]}`,
		`{"type":"session_init","systemPrompt":"","task":"t","tools":[],"outputSchema":{"type":"object"}}`,
		`{"type":"mode_change","mode":"plan","data":{"planFile":"x"}}`,
		`{"type":"service_tier_change","serviceTier":"flex"}`,
		`{"type":"service_tier_change","serviceTier":null}`,
		`{"type":"service_tier_change","serviceTier":{"openai":"flex"}}`,
		`{"type":"mcp_tool_selection","selectedToolNames":[]}`,
		`{"type":"thinking_level_change","thinkingLevel":"high","configured":"auto"}`,
		`{"type":"model_change","model":"openai/gpt-4o","resolvedModelIsFallback":true}`,
		`{"type":"compaction","summary":"s","firstKeptEntryId":"","tokensBefore":1,"method":"remote","tokensAfter":1,"providerReplayThroughEntryId":"a","warning":"w"}`,
		`{"type":"branch_summary","fromId":"a","summary":"","details":{"kind":"pruned-empty-branches"}}`,
		`{"type":"session_init","systemPrompt":["a","b"],"task":"t","tools":[],"retryFallback":true,"compactionThreshold":{"thresholdPercent":1,"thresholdTokens":2},"workPoolYieldItems":[]}`,
		`{"type":"reset_boundary"}`,
		`{"type":"archive","targetId":"a","archived":true}`,
		`{"type":"archive","targetId":"a","archived":false}`,
		`{"\u0074ype":"\u006dode_change","mode":"x"}`,
	} {
		w := startMemory(t, plainFile, Options{})
		_, err := w.append(line)
		require.NoError(t, err, line)
	}
}

// TestArchiveTarget: what is archived must be there.
func TestArchiveTarget(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	_, err := w.append(`{"type":"archive","targetId":"nobody","archived":true}`)
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
	require.ErrorContains(t, err, "targetId")
	require.Equal(t, plainFile, w.content())
}

// TestFieldAtFault: the error names the field, what was expected and what was found.
func TestFieldAtFault(t *testing.T) {
	tests := []struct{ line, field, want, got string }{
		{``, "", "one JSON object", "a text that ends too early"},
		{`hello`, "", "one JSON object", `"hello" at byte 0`},
		{`{"type":"custom"`, "", "one JSON object", "a text that ends too early"},
		{`{"type":"custom"} x`, "", "one JSON object", `" x" at byte 17`},
		{`[1]`, "", "one JSON object", "an array"},
		{`7`, "", "one JSON object", "a number"},
		{`{}`, "type", "a string", "none"},
		{`{"type":7}`, "type", "a string", "a number"},
		{`{"type":"session"}`, "type", "one that can be appended", `"session"`},
		{`{"type":"title_change","title":"x"}`, "type", "one that can be appended", `"title_change"`},
		{`{"type":"nonsense"}`, "type", "one that can be appended", `"nonsense"`},
		{`{"type":"custom","customType":"x","id":7}`, "id", "a string", "a number"},
		{`{"type":"custom","customType":"x","id":null}`, "id", "a string", "null"},
		{`{"type":"custom","customType":"x","id":""}`, "id", "a string that is not empty", ""},
		{`{"type":"custom","customType":"x","parentId":7}`, "parentId", "a string or null", "a number"},
		{`{"type":"custom","customType":"x","timestamp":7}`, "timestamp", "a string", "a number"},
		{`{"type":"custom","customType":"x","timestamp":"noon"}`, "timestamp", "a time as 2026-02-16T10:20:30.000Z", `"noon"`},
		{`{"type":"message"}`, "message", "an object", "none"},
		{`{"type":"message","message":"hi"}`, "message", "an object", "a string"},
		{`{"type":"message","message":{}}`, "message.role", "a string", "none"},
		{`{"type":"message","message":{"role":"user"}}`, "message.content", "a string or an array", "none"},
		{`{"type":"message","message":{"role":"user","content":7}}`, "message.content", "a string or an array", "a number"},
		{`{"type":"message","message":{"role":"user","content":[{},null]}}`, "message.content[1]", "an object", "null"},
		{`{"type":"message","message":{"role":"assistant","content":[],"usage":null}}`, "message.usage", "an object", "null"},
		{`{"type":"message","message":{"role":"assistant","content":[],"usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0}}}`, "message.usage.cost", "an object", "none"},
		{`{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{"usage":{}}}}`, "message.details.usage.input", "a number", "none"},
		{`{"type":"thinking_level_change"}`, "thinkingLevel", "a string or null", "none"},
		{`{"type":"model_change"}`, "model", "a string", "none"},
		{`{"type":"model_change","model":""}`, "model", "a string that is not empty", ""},
		{`{"type":"model_change","provider":"x"}`, "modelId", "a string", "none"},
		{`{"type":"model_change","model":"x","role":1}`, "role", "a string or null", "a number"},
		{`{"type":"compaction","firstKeptEntryId":"a","tokensBefore":1}`, "summary", "a string", "none"},
		{`{"type":"compaction","summary":"s","tokensBefore":1}`, "firstKeptEntryId", "a string", "none"},
		{`{"type":"compaction","summary":"s","firstKeptEntryId":"a","tokensBefore":"1"}`, "tokensBefore", "a number", "a string"},
		{`{"type":"branch_summary","summary":"s"}`, "fromId", "a string", "none"},
		{`{"type":"branch_summary","fromId":"a"}`, "summary", "a string", "none"},
		{`{"type":"custom"}`, "customType", "a string", "none"},
		{`{"type":"custom_message","customType":"x","display":true}`, "content", "a string or an array", "none"},
		{`{"type":"custom_message","customType":"x","content":"c","display":"yes"}`, "display", "true or false", "a string"},
		{`{"type":"label","label":"x"}`, "targetId", "a string", "none"},
		{`{"type":"label","targetId":"a","label":7}`, "label", "a string or null", "a number"},
		{`{"type":"ttsr_injection","injectedRules":"a"}`, "injectedRules", "an array", "a string"},
		{`{"type":"ttsr_injection","injectedRules":["a",1]}`, "injectedRules[1]", "a string", "a number"},
		{`{"type":"session_init","systemPrompt":"s","task":"t"}`, "tools", "an array", "none"},
		{`{"type":"mode_change"}`, "mode", "a string", "none"},
		{`{"type":"mode_change","mode":"m","data":[]}`, "data", "an object or null", "an array"},
		{`{"type":"service_tier_change"}`, "serviceTier", "a string or an object or null", "none"},
		{`{"type":"thinking_level_change","thinkingLevel":null,"configured":1}`, "configured", "a string or null", "a number"},
		{`{"type":"compaction","summary":"s","firstKeptEntryId":"a","tokensBefore":1,"method":7}`, "method", "a string or null", "a number"},
		{`{"type":"archive","archived":true}`, "targetId", "a string", "none"},
		{`{"type":"archive","targetId":"a"}`, "archived", "true or false", "none"},
		{`{"type":"mcp_tool_selection"}`, "selectedToolNames", "an array", "none"},
	}
	for _, test := range tests {
		w := startMemory(t, plainFile, Options{})
		_, err := w.append(test.line)
		require.ErrorIs(t, err, sessioncore.ErrInvalid, test.line)
		var field *FieldError
		require.True(t, errors.As(err, &field), test.line)
		require.Equal(t, FieldError{test.field, test.want, test.got}, *field, test.line)
		require.Equal(t, plainFile, w.content())
	}
	require.Equal(t, "not a valid entry: message.role: expected a string, found none",
		(&FieldError{"message.role", "a string", "none"}).Error())
}
