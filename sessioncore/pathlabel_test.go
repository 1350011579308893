package sessioncore

import (
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestRecordSize: the index keeps 64 bytes an entry (docs/design.md section 10: a few tens).
func TestRecordSize(t *testing.T) {
	require.EqualValues(t, 64, unsafe.Sizeof(record{}))
}

// snapshotOf returns a snapshot of a session's text.
func snapshotOf(t testing.TB, content string) *Snapshot {
	t.Helper()
	files := memory.New()
	require.NoError(t, files.WriteFile("s.jsonl", []byte(content)))
	store := NewStore(files)
	t.Cleanup(store.Close)
	snap := sessiontest.Snapshot(t, store.Session("s.jsonl"))
	return snap
}

func TestPathLabel(t *testing.T) {
	long := strings.Repeat("x", 50)
	for _, c := range []struct{ entry, want string }{
		{`"type":"message","message":{"role":"assistant"}`, "assistant"},
		{`"type":"message","message":{"content":[{"role":"x"}],"role":"\u0075ser"}`, "user"},
		{`"type":"message","message":{"role":"toolResult","toolName":"bash"}`, "toolResult-bash"},
		{`"type":"message","message":{"toolName":"read","role":"toolResult"}`, "toolResult-read"},
		{`"type":"message","message":{"role":"toolResult","tool_name":"read"}`, "toolResult-read"},
		{`"type":"message","message":{"role":"toolResult","toolName":""}`, "toolResult"},
		{`"type":"message","message":{"role":"toolResult","toolName":"../etc/passwd"}`, "toolResult-..%2Fetc%2Fpasswd"},
		{`"type":"message","message":{"role":"toolResult","toolName":"` + long + `"}`, "toolResult-" + long[:29]},
		{`"type":"message","message":{"role":"toolResult","toolName":"` + long[:27] + `é"}`, "toolResult-" + long[:27] + "é"},
		{`"type":"message","message":{"role":"toolResult","toolName":"` + long[:26] + `/"}`, "toolResult-" + long[:26] + "%2F"},
		{`"type":"message","message":{"role":""}`, "message"},
		{`"type":"message","message":{"role":"` + strings.Repeat("/", 20) + `"}`, strings.Repeat("%2F", 13)},
		{`"type":"message","message":{"role":"` + strings.Repeat("🌱", 20) + `"}`, strings.Repeat("🌱", 10)},
		{`"type":"message","message":{"role":"\ud800"}`, "%ED%A0%80"},
		{`"type":"custom","message":{"role":"user"}`, "custom"},
		{`"type":"a b/c"`, "a b%2Fc"},
		{`"type":"` + long + `"`, long[:40]},
		{`"type":7`, "%"},
	} {
		snap := snapshotOf(t, sessiontest.Header+`{"id":"a",`+c.entry+`}`+"\n")
		require.Equal(t, c.want, snap.PathLabel(0), c.entry)
	}
}

// pathLabelByTheBook is the rule of docs/design.md, branches/, to the letter, from the text that an entry's file shows.
func pathLabelByTheBook(text rawjson.Value) string {
	label, _ := text.Member("type").Text()
	role, _ := text.Member("message").Member("role").Text()
	if label == "message" && role != "" {
		label = role
		if role == "toolResult" || role == "tool_result" {
			label = "toolResult"
			tool := rawjson.Value(nil)
			for m := range text.Member("message").EachMember {
				if m.KeyIs("toolName") || m.KeyIs("tool_name") {
					tool = m.Value
				}
			}
			if name, _ := tool.Text(); name != "" {
				label += "-" + name
			}
		}
	}
	name := names.FileName(label)
	for i := min(len(name), maxPathLabel); ; i-- {
		if i == len(name) || utf8.RuneStart(name[i]) && !strings.Contains(name[max(0, i-2):i], "%") {
			return name[:i]
		}
	}
}
