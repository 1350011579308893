package writer

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// Appending to sessions of the operator dialect (docs/design.md sections 2 and 9).

// opNow is the tests' clock as opFile writes times.
const opNow = `1772323200.000`

func TestOperatorAppendFillsIn(t *testing.T) {
	const stamp = `"timestamp":` + opNow
	tests := []struct{ name, give, want, leaf string }{
		{"all absent",
			`{"type":"message","message":{"role":"user","content":"hi"}}`,
			`{"type":"message","id":"00000001","parent_id":"b",` + stamp + `,"message":{"role":"user","content":"hi"}}`, "00000001"},
		{"all given",
			`{"type":"message","id":"x","parent_id":"a","timestamp":1.5,"message":{"role":"user"}}`,
			`{"type":"message","id":"x","parent_id":"a","timestamp":1.5,"message":{"role":"user"}}`, "x"},
		{"a time in another form",
			`{"type":"custom_info","custom_type":"x","timestamp":"2026-02-16T10:20:30+01:00"}`,
			`{"type":"custom_info","id":"00000001","parent_id":"b","custom_type":"x","timestamp":"2026-02-16T10:20:30+01:00"}`, "00000001"},
		{"custom entries have them where others have",
			`{"type":"custom_message","custom_type":"t","content":"c","display":true}`,
			`{"type":"custom_message","id":"00000001","parent_id":"b",` + stamp + `,"custom_type":"t","content":"c","display":true}`, "00000001"},
		{"an answer needs no usage",
			`{"type":"message","message":{"role":"assistant"}}`,
			`{"type":"message","id":"00000001","parent_id":"b",` + stamp + `,"message":{"role":"assistant"}}`, "00000001"},
		{"a new root",
			`{"type":"custom_info","parent_id":null,"custom_type":"t","data":[1.50]}`,
			`{"type":"custom_info","id":"00000001",` + stamp + `,"parent_id":null,"custom_type":"t","data":[1.50]}`, "00000001"},
		{"a branch hangs under its from_id",
			`{"type":"branch","from_id":"a","summary":"s"}`,
			`{"type":"branch","id":"00000001","parent_id":"a",` + stamp + `,"from_id":"a","summary":"s"}`, "00000001"},
		{"and at the root",
			`{"type":"branch","from_id":"root","summary":"s"}`,
			`{"type":"branch","id":"00000001","parent_id":null,` + stamp + `,"from_id":"root","summary":"s"}`, "00000001"},
		{"where null leads too",
			`{"type":"branch","from_id":null,"summary":"s"}`,
			`{"type":"branch","id":"00000001","parent_id":null,` + stamp + `,"from_id":null,"summary":"s"}`, "00000001"},
		{"unless it says where",
			`{"type":"branch","parent_id":"b","from_id":"gone","summary":"s"}`,
			`{"type":"branch","id":"00000001",` + stamp + `,"parent_id":"b","from_id":"gone","summary":"s"}`, "00000001"},
		{"a leaf by hand",
			`{"type":"leaf","target_id":"a"}`,
			`{"type":"leaf","id":"00000001","parent_id":"b",` + stamp + `,"target_id":"a"}`, "a"},
		{"to none",
			`{"type":"leaf","target_id":null}`,
			`{"type":"leaf","id":"00000001","parent_id":"b",` + stamp + `,"target_id":null}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := startMemory(t, opFile, Options{})
			ids, err := w.append(test.give)
			require.NoError(t, err)
			require.Equal(t, []string{test.want}, w.added(opFile))
			require.Len(t, ids, 1)
			require.Equal(t, test.leaf, w.leaf())
			require.Empty(t, problemsOf(t, w.snapshot()))
			checkAsDocumented(t, w.content(), w.snapshot())
		})
	}
}

// TestOperatorValidEntries: every type of docs/format.md, Operator dialect, and its documentation's own example.
func TestOperatorValidEntries(t *testing.T) {
	for _, line := range []string{
		`{"type":"message","message":{"role":"tool_result","tool_call_id":"c","content":7}}`,
		`{"type":"compaction","summary":"...","first_kept_entry_id":"a"}`,
		`{"type":"compaction","summary":"s","first_kept_entry_id":"gone","tokens_before":1.5}`,
		`{"type":"thinking_level_change","thinking_level":"high"}`,
		`{"type":"thinking_level_change","thinking_level":null}`,
		`{"type":"model_change","provider":"openai","model_id":"gpt-5"}`,
		`{"type":"session_info","name":"n"}`,
		`{"type":"session_info","name":null}`,
		`{"type":"custom_info","custom_type":"x"}`,
		`{"type":"custom_info","custom_type":"x","data":null}`,
		`{"type":"custom_message","custom_type":"x","content":[{"type":"text","text":"c"}],"display":false}`,
		`{"type":"label","target_id":"a","label":"L"}`,
		`{"type":"label","target_id":"a"}`,
		`{"type":"label","target_id":"a","label":null}`,
	} {
		w := startMemory(t, opFile, Options{})
		_, err := w.append(line)
		require.NoError(t, err, line)
		checkAsDocumented(t, w.content(), w.snapshot())
	}
}

// TestOperatorFieldAtFault: the error names the field; a key of the other dialect, the right one.
func TestOperatorFieldAtFault(t *testing.T) {
	key := func(k string) string { return "the key " + k + ", as keys of this session are in snake_case" }
	tests := []struct{ line, field, want, got string }{
		{`{"type":"message","parentId":"a","message":{"role":"user"}}`, "parentId", key("parent_id"), ""},
		{`{"type":"message","parentId":"a","parent_id":"a","message":{"role":"user"}}`, "parentId", key("parent_id"), ""},
		{`{"type":"label","targetId":"a","label":"x"}`, "targetId", key("target_id"), ""},
		{`{"type":"compaction","summary":"s","firstKeptEntryId":"a","tokensBefore":1}`, "firstKeptEntryId", key("first_kept_entry_id"), ""},
		{`{"type":"model_change","provider":"p","modelId":"m"}`, "modelId", key("model_id"), ""},
		{`{"type":"thinking_level_change","thinkingLevel":"low"}`, "thinkingLevel", key("thinking_level"), ""},
		{`{"type":"custom_message","customType":"x","content":"c","display":true}`, "customType", key("custom_type"), ""},
		{`{"type":"branch","fromId":"a","summary":"s"}`, "fromId", key("from_id"), ""},
		{`{"type":"session_header","id":"x"}`, "type", "one that can be appended", `"session_header"`},
		{`{"type":"branch_summary","from_id":"a","summary":"s"}`, "type", "one that can be appended", `"branch_summary"`},
		{`{"type":"custom","custom_type":"x"}`, "type", "one that can be appended", `"custom"`},
		{`{"type":"mode_change","mode":"x"}`, "type", "one that can be appended", `"mode_change"`},
		{`{"type":"custom_info","custom_type":"x","id":7}`, "id", "a string", "a number"},
		{`{"type":"custom_info","custom_type":"x","id":""}`, "id", "a string that is not empty", ""},
		{`{"type":"custom_info","custom_type":"x","parent_id":7}`, "parent_id", "a string or null", "a number"},
		{`{"type":"custom_info","custom_type":"x","timestamp":true}`, "timestamp", "a string or a number", "true or false"},
		{`{"type":"custom_info","custom_type":"x","timestamp":"noon"}`, "timestamp", "a time as 2026-02-16T10:20:30.000Z", `"noon"`},
		{`{"type":"custom_info","custom_type":"x","timestamp":1e300}`, "timestamp", "a time as 2026-02-16T10:20:30.000Z", `1e300`},
		{`{"type":"message"}`, "message", "an object", "none"},
		{`{"type":"message","message":{}}`, "message.role", "a string", "none"},
		{`{"type":"compaction","first_kept_entry_id":"a"}`, "summary", "a string", "none"},
		{`{"type":"compaction","summary":"s"}`, "first_kept_entry_id", "a string", "none"},
		{`{"type":"compaction","summary":"s","first_kept_entry_id":"a","tokens_before":"1"}`, "tokens_before", "a number or null", "a string"},
		{`{"type":"branch","from_id":"a"}`, "summary", "a string", "none"},
		{`{"type":"branch","summary":"s"}`, "from_id", "a string or null", "none"},
		{`{"type":"leaf"}`, "target_id", "a string or null", "none"},
		{`{"type":"leaf","target_id":7}`, "target_id", "a string or null", "a number"},
		{`{"type":"label","label":"x"}`, "target_id", "a string", "none"},
		{`{"type":"label","target_id":"a","label":7}`, "label", "a string or null", "a number"},
		{`{"type":"thinking_level_change"}`, "thinking_level", "a string or null", "none"},
		{`{"type":"model_change","model_id":"m"}`, "provider", "a string", "none"},
		{`{"type":"model_change","provider":"p","model_id":""}`, "model_id", "a string that is not empty", ""},
		{`{"type":"session_info"}`, "name", "a string or null", "none"},
		{`{"type":"custom_info"}`, "custom_type", "a string", "none"},
		{`{"type":"custom_message","custom_type":"x","content":"c"}`, "display", "true or false", "none"},
		{`{"type":"custom_message","custom_type":"x","content":[1],"display":true}`, "content[0]", "an object", "a number"},
	}
	for _, test := range tests {
		w := startMemory(t, opFile, Options{})
		_, err := w.append(test.line)
		var field *FieldError
		require.True(t, errors.As(err, &field), "%s: %v", test.line, err)
		require.Equal(t, FieldError{test.field, test.want, test.got}, *field, test.line)
		require.Equal(t, opFile, w.content())
	}
	for _, line := range []string{
		`{"type":"custom_info","custom_type":"x","parent_id":"gone"}`, `{"type":"custom_info","custom_type":"x","parent_id":""}`,
		`{"type":"leaf","target_id":"gone"}`, `{"type":"leaf","target_id":""}`, `{"type":"label","target_id":"gone"}`, `{"type":"branch","from_id":"gone","summary":"s"}`,
	} {
		w := startMemory(t, opFile, Options{})
		_, err := w.append(line)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, line)
		require.Equal(t, opFile, w.content())
	}
	for _, line := range []string{`{"type":"leaf","target_id":"a"}`, `{"type":"session_info","name":"n"}`, `{"type":"branch","from_id":"a","summary":""}`} {
		w := startMemory(t, plainFile, Options{})
		_, err := w.append(line)
		require.ErrorIs(t, err, sessioncore.ErrInvalid, "of an omp session: %s", line)
	}
}

// TestOperatorAppendMovesAndGoesOn: each line sees the moves before it.
func TestOperatorAppendMovesAndGoesOn(t *testing.T) {
	w := startMemory(t, opFile, Options{})
	ids, err := w.append(
		`{"type":"leaf","target_id":"a"}`, `{"type":"custom_info","id":"x","custom_type":"t"}`,
		`{"type":"leaf","target_id":null}`, `{"type":"custom_info","id":"y","custom_type":"t"}`,
		`{"type":"leaf","target_id":"x"}`, `{"type":"leaf","target_id":"gone"}`,
	)
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
	require.Len(t, ids, 5)
	require.Equal(t, "a", w.parentOfID("x"))
	require.Equal(t, "", w.parentOfID("y"))
	require.Equal(t, "x", w.leaf())
	checkAsDocumented(t, w.content(), w.snapshot())
}

// TestOperatorSizeControls: as in omp: images go into blobs, strings are cut.
func TestOperatorSizeControls(t *testing.T) {
	w := startMemory(t, opFile, Options{})
	_, err := w.append(`{"type":"message","message":{"role":"user","partialJson":1,"content":[{"type":"image","data":"` + longBase64 + `"},{"type":"text","text":"` + strings.Repeat("x", 500_000+1) + `"}]}}`)
	require.NoError(t, err)
	line := w.added(opFile)[0]
	require.Len(t, w.blobs.blobs, 1)
	require.Contains(t, line, `"data":"blob:sha256:`)
	require.Contains(t, line, "[Session persistence truncated large content]")
	require.NotContains(t, line, "partialJson")
}

// TestAppendToAnotherDialect: lines are held against what the file is when they are written.
func TestAppendToAnotherDialect(t *testing.T) {
	w := startMemory(t, opFile, Options{})
	w.snapshot() // kept: what the session was when last looked at
	require.NoError(t, w.storage.(*memory.Storage).WriteFile(plainName, []byte(plainFile)))
	_, err := w.append(`{"type":"custom_info","custom_type":"x"}`)
	require.ErrorIs(t, err, sessioncore.ErrInvalid)
	require.NoError(t, w.storage.(*memory.Storage).WriteFile(plainName, []byte(opFile)))
	_, err = w.append(`{"type":"custom_info","custom_type":"x"}`, `{"type":"message","message":{"role":"user","content":[{"type":"image","data":"`+longBase64+`"}]}}`)
	require.NoError(t, err)
	require.Len(t, w.added(opFile), 2)
}
