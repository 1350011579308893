package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// manyTurns is a session with turns of several messages, calls, results apart from them, and two branches.
func manyTurns() string {
	var lines strings.Builder
	for i := 0; i < 300; i++ {
		said := fmt.Sprintf(`{"role":"user","content":"ask %d"}`, i)
		switch i % 10 {
		case 1, 3, 5:
			said = fmt.Sprintf(`{"role":"assistant","provider":"p","model":"m%d","content":[{"type":"text","text":"so"},`+
				`{"type":"toolCall","id":"c%d","name":"bash","arguments":{"command":"a"}}]}`, i%3, i)
		case 2, 4, 6:
			said = fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"bash","content":[{"type":"text","text":"b"}]}`, i-1-i%4/2)
		case 7:
			said = `{"role":"user","content":""}`
		case 8:
			said = `{"role":"assistant","provider":"p","model":"m2","content":"done"}`
		}
		lines.WriteString(sessiontest.MessageLine(i, said))
	}
	lines.WriteString(`{"type":"message","id":"other","parentId":"e7","timestamp":"2026-01-05T09:10:00.000Z",` +
		`"message":{"role":"user","content":"other"}}` + "\n")
	return lines.String()
}

// TestParts: a page does not depend on how many parts it is made in.
func TestParts(t *testing.T) {
	defer func(before int) { leastPart = before }(leastPart)
	lines := manyTurns()
	leastPart = 1 << 20
	whole := pageOf(t, lines)
	require.Equal(t, 300, strings.Count(whole, ` id="e`))
	for _, leastPart = range []int{1, 2, 3, 7, 100} {
		require.Equal(t, whole, pageOf(t, lines), "parts of %d entries", leastPart)
	}
}

// TestPartsEndWithTheFirstError: a reader that goes away, or one that no longer waits, ends all parts.
func TestPartsEndWithTheFirstError(t *testing.T) {
	defer func(before int) { leastPart = before }(leastPart)
	leastPart = 1
	s := snapshotOf(t, sessiontest.Header, manyTurns())
	of := Subject{Session: s, End: sessiontest.Leaf(t, s), Blobs: testBlobs}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Page(ctx, &bytes.Buffer{}, of), context.Canceled)
	gone := errors.New("gone")
	in, out := io.Pipe()
	require.NoError(t, in.CloseWithError(gone))
	require.ErrorIs(t, Page(context.Background(), out, of), gone)
}
