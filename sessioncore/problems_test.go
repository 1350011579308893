package sessioncore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestLineOfJSON: the order of the keys, and which characters are escaped, are what readers know.
func TestLineOfJSON(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.MessageLine(0, `{"role":"user","content":"a"}`)+
		`{"type":"message","id":"<&\ud83c\u2028\"\u0001\u007f","parentId":"gone","message":{"role":"user","content":"b"}}`+"\n"+
		"garbage\n")
	snap, err := s.session.Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	d := snap.ProblemsDocument(context.Background(), nil)
	require.Equal(t, `{"line":3,"offset":214,"bytes":112,"problem":"orphan","id":"<&\ud83c`+"\u2028"+`\"\u0001`+"\x7f"+`","why":"its parent is not in the file: it counts as a root"}
{"line":4,"offset":327,"bytes":7,"problem":"skipped","why":"not JSON"}
`, string(sessiontest.ReadExactly(t, d, nil)))
}
