package sessioncore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestLinesOfJSON: the order of the keys, and which characters are escaped, are what readers know.
func TestLinesOfJSON(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.MessageLine(0, `{"role":"user","content":"a"}`)+
		`{"type":"message","id":"<&\ud83c\u2028\"\u0001\u007f","parentId":"gone","message":{"role":"user","content":"b"}}`+"\n"+
		"garbage\n")
	snap, err := s.session.Acquire()
	require.NoError(t, err)
	defer snap.Release()
	d := snap.ProblemsDocument(nil)
	require.Equal(t, `{"line":3,"offset":214,"bytes":112,"problem":"orphan","id":"<&\ud83c`+"\u2028"+`\"\u0001`+"\x7f"+`","why":"its parent is not in the file: it counts as a root"}
{"line":4,"offset":327,"bytes":7,"problem":"skipped","why":"not JSON"}
`, string(sessiontest.ReadExactly(t, d, nil)))

	info := parseListInfo([]byte(`{"type":"session","id":"<\u2028","cwd":"/a&b\ud83c","parentSession":"p\u0001"}` + "\n"))
	info.Name = "p/x.jsonl"
	require.Equal(t, `{"id":"<`+"\u2028"+`","path":"sessions/p/x","cwd":"/a&b`+"\uFFFD"+`","title":null,"created":null,"modified":"1970-01-01T00:00:00.000Z",`+
		`"messageCount":0,"firstMessage":"(no messages)","parentSession":"p\u0001","size":0}`+"\n", string(info.appendLine(nil)))
}
