package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/persist"
)

// inMessage is an entry with a message.
func inMessage(message string) string { return `{"type":"message","message":` + message + `}` }

// answering is an assistant's message with one block.
func answering(block string) string {
	return inMessage(`{"role":"assistant","content":[` + block + `]}`)
}

// takes appends each line to a session.
func takes(t *testing.T, file string, lines []string) {
	for _, line := range lines {
		_, err := startMemory(t, file, Options{}).append(line)
		require.NoError(t, err, line)
	}
}

// fault is a line that is refused, and what the error says: the field, what was expected and what was found.
type fault struct{ line, field, want, got string }

func refuses(t *testing.T, file string, faults []fault) {
	for _, test := range faults {
		w := startMemory(t, file, Options{})
		_, err := w.append(test.line)
		require.ErrorIs(t, err, sessioncore.ErrInvalid, test.line)
		var field *FieldError
		require.True(t, errors.As(err, &field), test.line)
		require.Equal(t, FieldError{test.field, test.want, test.got}, *field, test.line)
		require.Equal(t, file, w.content())
	}
}

// TestValidMessages: every role and block as clients write them, and as people do.
func TestValidMessages(t *testing.T) {
	for _, message := range []string{
		`{"role":"user","content":""}`,
		`{"role":"user","content":[],"timestamp":null}`,
		`{"role":"user","content":[{"type":"text","text":""},{"type":"image","data":"QUJD","mimeType":"image/png"},` +
			`{"type":"image","data":"blob:sha256:x"}],"timestamp":1.5,"anything":[{}]}`,
		`{"role":"developer","content":[{"type":"text","text":"x","textSignature":null}],"synthetic":true}`,
		`{"role":"assistant","content":[]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":"s"},{"type":"redactedThinking","data":"x"},` +
			`{"type":"fallback","from":{},"to":{}},{"type":"something new"}]}`,
		`{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"command":["ls"]}}],"stopReason":"toolUse",` +
			`"errorMessage":null,"providerPayload":{"type":"x"}}`,
		`{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"x"}],"isError":true,"details":"as it likes"}`,
		`{"role":"toolResult","toolCallId":"c","toolName":"mine","content":[],"details":{"images":7,"diff":7,"results":7}}`,
		`{"role":"toolResult","toolCallId":"c","toolName":"edit","content":[],"details":{"diff":"+1 a","diagnostics":{"summary":"s","messages":["m"]}}}`,
		`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":null}`,
		`{"role":"bashExecution","command":"ls","output":"x","exitCode":null,"cancelled":false,"truncated":false,"meta":{"diagnostics":{"messages":[]}}}`,
		`{"role":"pythonExecution","code":"1","output":"1","exitCode":0}`,
		`{"role":"custom","customType":"mine","content":"x","display":true,"details":{"notes":7}}`,
		`{"role":"hookMessage","customType":"mine","content":[{"type":"text","text":"x"}],"display":false}`,
		`{"role":"branchSummary","summary":"s","fromId":"a","timestamp":1}`,
		`{"role":"compactionSummary","summary":"s","shortSummary":null,"tokensBefore":1,"timestamp":null}`,
		`{"role":"fileMention","files":[]}`,
		`{"role":"fileMention","files":[{"path":"a","content":"x","lineCount":3},` +
			`{"path":"b","image":{"type":"image","data":"QUJD","mimeType":"image/png"}},{"path":"c","content":"","byteSize":9,"skippedReason":"tooLarge"}]}`,
	} {
		w := startMemory(t, plainFile, Options{})
		_, err := w.append(inMessage(message))
		require.NoError(t, err, message)
	}
}

// TestMessageAtFault: what would make a client fail, or show or send something else, is refused with the field,
// what was expected and what was found.
func TestMessageAtFault(t *testing.T) {
	const (
		roles = "one of assistant, bashExecution, branchSummary, compactionSummary, custom, developer, fileMention, hookMessage, " +
			"pythonExecution, toolResult, user"
		blocks = "one of image, text"
	)
	refuses(t, plainFile, []fault{
		{inMessage(`{"role":"nonsense"}`), "message.role", roles, `"nonsense"`},
		{inMessage(`{"role":""}`), "message.role", "a string that is not empty", ""},
		{inMessage(`{"role":"user","content":[{"type":"text"}]}`), "message.content[0].text", "a string", "none"},
		{inMessage(`{"role":"user","content":[{"type":"image","mimeType":"image/png"}]}`), "message.content[0].data", "a string", "none"},
		{inMessage(`{"role":"user","content":[{"type":"image","data":"x","mimeType":7}]}`), "message.content[0].mimeType", "a string", "a number"},
		{inMessage(`{"role":"user","content":[{"type":"thinking","thinking":"x"}]}`), "message.content[0].type", blocks, `"thinking"`},
		{inMessage(`{"role":"user","content":[{}]}`), "message.content[0].type", blocks, "none"},
		{inMessage(`{"role":"user","content":"x","timestamp":"noon"}`), "message.timestamp", "a number or null", "a string"},
		{inMessage(`{"role":"developer","content":{}}`), "message.content", "a string or an array", "an object"},
		{inMessage(`{"role":"assistant"}`), "message.content", "an array", "none"},
		{inMessage(`{"role":"assistant","content":[],"stopReason":7}`), "message.stopReason", "a string or null", "a number"},
		{inMessage(`{"role":"assistant","content":[],"usage":{"input":"1"}}`), "message.usage.input", "a number", "a string"},
		{answering(`{"type":"text","text":"x","textSignature":{}}`), "message.content[0].textSignature", "a string or null", "an object"},
		{answering(`{"type":"thinking","thinking":"x","thinkingSignature":7}`), "message.content[0].thinkingSignature", "a string or null", "a number"},
		{answering(`{"type":"toolCall","name":"bash","arguments":{}}`), "message.content[0].id", "a string", "none"},
		{answering(`{"type":"toolCall","id":"c","arguments":{}}`), "message.content[0].name", "a string", "none"},
		{answering(`{"type":"toolCall","id":"c","name":"bash","arguments":"ls"}`), "message.content[0].arguments", "an object", "a string"},
		{answering(`{"type":"toolCall","id":"c","name":"read","arguments":{"path":7}}`), "message.content[0].arguments.path", "a string or null", "a number"},
		{inMessage(`{"role":"toolResult","toolCallId":7,"toolName":"x","content":[]}`), "message.toolCallId", "a string", "a number"},
		{inMessage(`{"role":"toolResult","toolCallId":"c","content":[]}`), "message.toolName", "a string", "none"},
		{inMessage(`{"role":"toolResult","toolCallId":"c","toolName":"x","content":[],"isError":"no"}`), "message.isError",
			"true or false or null", "a string"},
		{inMessage(`{"role":"toolResult","toolCallId":"c","toolName":"edit","content":[],"details":{"diff":7}}`), "message.details.diff",
			"a string or null", "a number"},
		{inMessage(`{"role":"toolResult","toolCallId":"c","toolName":"job","content":[],"details":{"jobs":[{"status":"odd"}]}}`),
			"message.details.jobs[0].status", "one of cancelled, completed, failed, running", `"odd"`},
		{inMessage(`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{"results":[],"usage":[]}}`),
			"message.details.usage", "an object or null", "an array"},
		{inMessage(`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{"results":[{"id":"1"}]}}`),
			"message.details.results[0].output", "a string", "none"},
		{inMessage(`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{"progress":[{"id":"1","recentOutput":[]}]}}`),
			"message.details.progress[0].recentTools", "an array", "none"},
		{inMessage(`{"role":"toolResult","toolCallId":"c","toolName":"web_search","content":[],"details":{"response":{"sources":[null]}}}`),
			"message.details.response.sources[0]", "an object", "null"},
		{inMessage(`{"role":"bashExecution","output":"x"}`), "message.command", "a string", "none"},
		{inMessage(`{"role":"bashExecution","command":"ls","exitCode":"0"}`), "message.exitCode", "a number or null", "a string"},
		{inMessage(`{"role":"bashExecution","command":"ls","images":[{"type":"image"}]}`), "message.images[0].data", "a string", "none"},
		{inMessage(`{"role":"bashExecution","command":"ls","meta":{"diagnostics":{}}}`), "message.meta.diagnostics.messages", "an array", "none"},
		{inMessage(`{"role":"pythonExecution"}`), "message.code", "a string", "none"},
		{inMessage(`{"role":"custom","customType":"x"}`), "message.content", "a string or an array", "none"},
		{inMessage(`{"role":"custom","customType":"advisor","content":"x","details":{"notes":[{}]}}`), "message.details.notes[0].note", "a string", "none"},
		{inMessage(`{"role":"branchSummary"}`), "message.summary", "a string", "none"},
		{inMessage(`{"role":"compactionSummary","summary":"s"}`), "message.tokensBefore", "a number", "none"},
		{inMessage(`{"role":"fileMention"}`), "message.files", "an array", "none"},
		{inMessage(`{"role":"fileMention","files":[{}]}`), "message.files[0].path", "a string", "none"},
		{`{"type":"custom_message","customType":"irc:relay","content":"x","display":true,"details":{"body":7}}`, "details.body",
			"a string or null", "a number"},
		{`{"type":"compaction","summary":"s","firstKeptEntryId":"a","tokensBefore":1,"tokensAfter":null}`, "tokensAfter", "a number", "null"},
	})
}

// TestFilledIn: what clients cannot do without, and says nothing, is added; nothing else changes.
func TestFilledIn(t *testing.T) {
	tests := []struct{ give, want string }{
		{`{"role":"bashExecution","command":"ls"}`, `{"role":"bashExecution","command":"ls","output":""}`},
		{`{"role":"pythonExecution","code":"1", "n":1.0}`, `{"role":"pythonExecution","code":"1", "n":1.0,"output":""}`},
		{`{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"x"},{"type":"toolCall","id":"b","name":"x","arguments":{"q":1}},` +
			`{"name":"x","type":"toolCall","id":"c"}]}`,
			`{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"x","arguments":{}},` +
				`{"type":"toolCall","id":"b","name":"x","arguments":{"q":1}},{"name":"x","type":"toolCall","id":"c","arguments":{}}],` + noUsage + `}`},
		{`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{}}`,
			`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{"results":[]}}`},
	}
	for _, test := range tests {
		w := startMemory(t, plainFile, Options{})
		_, err := w.append(inMessage(test.give))
		require.NoError(t, err, test.give)
		require.Contains(t, w.content(), `"message":`+test.want+`}`, test.give)
	}
}

// TestClientsEntriesAreValid: whatever a client wrote can be written through the mount.
func TestClientsEntriesAreValid(t *testing.T) {
	sessiontest.NotUnderRace(t)
	roots := []string{"../../testdata/demo", "../../testdata/xcsh", "../../testdata/pi"}
	for _, c := range sessiontest.Cases(t) {
		if !strings.HasPrefix(c.Name, "handmade/") {
			roots = append(roots, filepath.Join(c.Dir, "agent"))
		}
	}
	for _, root := range roots {
		entries := 0
		require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".jsonl") {
				entries += reappended(t, path)
			}
			return err
		}))
		require.NotZero(t, entries, root)
	}
}

// reappended appends each entry of a session to another one, without what says where it was.
func reappended(t *testing.T, path string) (entries int) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	source := startMemory(t, string(content), Options{})
	snap, err := source.session.Acquire(context.Background())
	if errors.Is(err, sessioncore.ErrNotSession) {
		return 0
	}
	require.NoError(t, err)
	defer snap.Release()
	for e := range sessioncore.Entry(snap.Len()) {
		kind := snap.Kind(e)
		if shapes["omp/"+kind.String()] == nil {
			continue // of a type that cannot be appended
		}
		text, err := snap.ShownText(e)
		require.NoError(t, err)
		if kind == sessioncore.TypeCompaction && text.Member("firstKeptEntryId") == nil {
			continue // one of version 1 that keeps nothing
		}
		bare := setMembers(text, []objectMember{{"id", ""}, {"parentId", ""}})
		_, err = parseDraft(bare, sessioncore.OMP, persist.Rules{Blobs: true})
		require.NoError(t, err, "%s: %.300s", path, text)
		entries++
	}
	return entries
}

// TestValidEntries: every type that can be written, in each documented shape, is taken.
func TestValidEntries(t *testing.T) {
	takes(t, plainFile, []string{
		`{"type":"thinking_level_change","thinkingLevel":"high"}`,
		`{"type":"thinking_level_change","thinkingLevel":null}`,
		`{"type":"model_change","model":"openai/gpt-4o"}`,
		`{"type":"model_change","model":"openai/gpt-4o","role":"smol"}`,
		`{"type":"model_change","provider":"openai","modelId":"gpt-4o"}`,
		`{"type":"compaction","summary":"s","firstKeptEntryId":"gone","tokensBefore":1}`,
		`{"type":"compaction","summary":"s","shortSummary":"x","firstKeptEntryId":"a","tokensBefore":1,"details":[],"preserveData":{},"fromExtension":false}`,
		`{"type":"branch_summary","fromId":"a","summary":"s","details":{},"fromHook":true}`,
		`{"type":"custom","customType":"x","data":null}`,
		`{"type":"custom_message","customType":"x","content":"c","display":true}`,
		`{"type":"custom_message","customType":"x","content":[{"type":"text","text":"c"}],"display":false,"attribution":"user"}`,
		`{"type":"label","targetId":"a","label":"L"}`,
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
		`{"type":"compaction","summary":"s","firstKeptEntryId":"","tokensBefore":1,"method":"remote","tokensAfter":1,` +
			`"providerReplayThroughEntryId":"a","warning":"w"}`,
		`{"type":"branch_summary","fromId":"a","summary":"","details":{"kind":"pruned-empty-branches"}}`,
		`{"type":"session_init","systemPrompt":["a","b"],"task":"t","tools":[],"retryFallback":true,` +
			`"compactionThreshold":{"thresholdPercent":1,"thresholdTokens":2},"workPoolYieldItems":[]}`,
		`{"type":"reset_boundary"}`,
		`{"type":"archive","targetId":"a","archived":true}`,
		`{"\u0074ype":"\u006dode_change","mode":"x"}`,
	})
}

// TestFieldAtFault: the error names the field, what was expected and what was found.
func TestFieldAtFault(t *testing.T) {
	refuses(t, plainFile, []fault{
		{``, "", "one JSON object", "a text that ends too early; an entry is one line, as jq -c prints it"},
		{`hello`, "", "one JSON object", `"hello" at byte 0`},
		{`{"type":"custom"`, "", "one JSON object", "a text that ends too early; an entry is one line, as jq -c prints it"},
		{`7`, "", "one JSON object", "a number"},
		{`{}`, "type", "a string", "none"},
		{`{"type":7}`, "type", "a string", "a number"},
		{`{"type":"session"}`, "type", "one that can be appended", `"session"`},
		{`{"type":"title_change","title":"x"}`, "type", "one that can be appended", `"title_change"`},
		{`{"type":"custom","customType":"x","id":7}`, "id", "a string", "a number"},
		{`{"type":"custom","customType":"x","id":""}`, "id", "a string that is not empty", ""},
		{`{"type":"custom","customType":"x","parentId":7}`, "parentId", "a string or null", "a number"},
		{`{"type":"custom","customType":"x","timestamp":7}`, "timestamp", "a string", "a number"},
		{`{"type":"custom","customType":"x","timestamp":"noon"}`, "timestamp", "a time as 2026-02-16T10:20:30.000Z", `"noon"`},
		{`{"type":"message"}`, "message", "an object", "none"},
		{`{"type":"message","message":{}}`, "message.role", "a string", "none"},
		{`{"type":"message","message":{"role":"user"}}`, "message.content", "a string or an array", "none"},
		{`{"type":"message","message":{"role":"assistant","content":[],"usage":null}}`, "message.usage", "an object", "null"},
		{`{"type":"message","message":{"role":"assistant","content":[],"usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0}}}`,
			"message.usage.cost", "an object", "none"},
		{`{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{"usage":{}}}}`,
			"message.details.usage.input", "a number", "none"},
		{`{"type":"thinking_level_change"}`, "thinkingLevel", "a string or null", "none"},
		{`{"type":"model_change"}`, "model", "a string", "none"},
		{`{"type":"model_change","provider":"x"}`, "modelId", "a string", "none"},
		{`{"type":"compaction","firstKeptEntryId":"a","tokensBefore":1}`, "summary", "a string", "none"},
		{`{"type":"compaction","summary":"s","firstKeptEntryId":"a","tokensBefore":"1"}`, "tokensBefore", "a number", "a string"},
		{`{"type":"branch_summary","summary":"s"}`, "fromId", "a string", "none"},
		{`{"type":"custom"}`, "customType", "a string", "none"},
		{`{"type":"custom_message","customType":"x","display":true}`, "content", "a string or an array", "none"},
		{`{"type":"label","targetId":"a","label":7}`, "label", "a string or null", "a number"},
		{`{"type":"ttsr_injection","injectedRules":["a",1]}`, "injectedRules[1]", "a string", "a number"},
		{`{"type":"session_init","systemPrompt":"s","task":"t"}`, "tools", "an array", "none"},
		{`{"type":"mode_change"}`, "mode", "a string", "none"},
		{`{"type":"mode_change","mode":"m","data":[]}`, "data", "an object or null", "an array"},
		{`{"type":"service_tier_change"}`, "serviceTier", "a string or an object or null", "none"},
		{`{"type":"archive","targetId":"a"}`, "archived", "true or false", "none"},
		{`{"type":"mcp_tool_selection"}`, "selectedToolNames", "an array", "none"},
	})
	require.Equal(t, "not a valid entry: message.role: expected a string, found none",
		(&FieldError{"message.role", "a string", "none"}).Error())
}
