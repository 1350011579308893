package sessioncore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

func TestOfRoot(t *testing.T) {
	tests := []struct {
		name, path, has string
		want            Program
	}{
		{"pi's path", "/home/dev/.pi/agent", "", ByPi},
		{"with a slash", "/home/dev/.pi/agent/", "blobs settings.json", ByPi},
		{"a place that both use", "/home/dev/.pi/agent", "agent.db", ByUnknown},
		{"omp's path says nothing that its files do not", "/home/dev/.omp/agent", "agent.db terminal-sessions blobs", ByOMP},
		{"an old omp", "/home/dev/.omp/agent", "auth.json settings.json", ByOMP},
		{"xcsh", "/home/dev/.xcsh/agent", "auth.json settings.json", ByOMP},
		{"omp once had pi's files", "/srv/agent", "auth.json settings.json agent.db", ByOMP},
		{"files of pi alone", "/srv/agent", "auth.json trust.json sessions", ByPi},
		{"files that omp once had", "/srv/agent", "auth.json settings.json sessions", LikelyByPi},
		{"the same, and somebody made blobs", "/srv/agent", "auth.json blobs", LikelyByPi},
		{"blobs alone", "/srv/agent", "blobs sessions", ByOMP},
		{"nothing", "/srv/agent", "sessions", ByUnknown},
		{"a name that ends alike", "/srv/x.pi/agent", "sessions", ByUnknown},
	}
	for _, test := range tests {
		root := memory.New()
		for _, name := range strings.Fields(test.has) {
			require.NoError(t, root.WriteFile(name+"/x", nil)) // directory or file, what counts is the name
		}
		require.Equal(t, test.want, ProgramOfRoot(root, "", test.path), test.name)
	}
}

// TestMarks: what only one of the two writes is a mark; what looks like it is none.
func TestMarks(t *testing.T) {
	for want, entries := range map[Marks][]string{
		MarkPi: {
			`{"type":"session_info","name":""}`,
			`{"type":"usage","kind":"cache_warm","usage":{}}`,
			`{"type":"context_edit","targetId":"a","replacement":null}`,
			`{"type":"context_edit","targetId":"a","replacement":{"content":"x"}}`,
			`{"type":"compaction","systemMessage":{}}`, `{"type":"compaction","usage":{}}`, `{"type":"branch_summary","usage":{}}`,
			`{"type":"message","message":{"role":"system","content":"","sections":{}}}`,
			`{"type":"message","message":{"role":"system","content":"","toolsAdded":[]}}`,
		},
		MarkOMP: {
			`{"type":"model_change","model":"openai/gpt"}`, `{"type":"title_change"}`, `{"type":"title","v":1}`, `{"type":"session_init"}`,
			`{"type":"mode_change"}`, `{"type":"service_tier_change"}`, `{"type":"ttsr_injection"}`, `{"type":"mcp_tool_selection"}`,
		},
		0: {
			`{}`, `{"type":5}`, `{"type":"session","title":"x","modelId":"m"}`, `{"type":"model_change","provider":"openai","modelId":"gpt"}`,
			`{"type":"session_info"}`, `{"type":"session_info","name":7}`, `{"type":"usage"}`, `{"type":"usage","kind":"x","usage":[]}`,
			`{"type":"context_edit","targetId":"a"}`, `{"type":"context_edit","replacement":null}`, `{"type":"compaction","systemMessage":null}`,
			`{"type":"message","message":{"role":"system","content":"x"}}`, `{"type":"message","message":{"role":"user","sections":{}}}`,
			`{"type":"message"}`, `{"type":"custom","customType":"session_info","data":{"type":"session_info","name":"x"}}`,
		},
	} {
		for _, entry := range entries {
			require.Equal(t, want, MarksOf(rawjson.Value(entry)), entry)
		}
	}
}

// TestOfSession: nothing makes a file of omp one of pi.
func TestOfSession(t *testing.T) {
	for _, root := range []Program{ByUnknown, ByOMP, LikelyByPi, ByPi} {
		require.Equal(t, ByOMP, ProgramOfSession(root, MarkOMP), root)
		require.Equal(t, ByOMP, ProgramOfSession(root, MarkOMP|MarkPi), root)
	}
	for root, want := range map[Program][2]Program{ByUnknown: {ByOMP, ByPi}, ByOMP: {ByOMP, ByOMP}, LikelyByPi: {ByOMP, ByPi}, ByPi: {ByPi, ByPi}} {
		require.Equal(t, want, [2]Program{ProgramOfSession(root, 0), ProgramOfSession(root, MarkPi)}, root)
	}
}
