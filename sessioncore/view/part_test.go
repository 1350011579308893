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
	const (
		prompt = `{"role":"user","content":"ask N"}`
		call   = `{"role":"assistant","provider":"p","model":"mM","content":[{"type":"text","text":"so"},` +
			`{"type":"toolCall","id":"cN","name":"bash","arguments":{"command":"a"}}]}`
		result = `{"role":"toolResult","toolCallId":"cC","toolName":"bash","content":[{"type":"text","text":"b"}]}`
		empty  = `{"role":"user","content":""}`
		done   = `{"role":"assistant","provider":"p","model":"m2","content":"done"}`
	)
	var lines strings.Builder
	messages := []string{prompt, call, result, call, result, call, result, empty, done, prompt}
	for i := range 300 {
		message := messages[i%len(messages)]
		model := i % 3
		answered := i - 1 - i%4/2 // the call before, or none
		numbers := strings.NewReplacer("N", fmt.Sprint(i), "M", fmt.Sprint(model), "C", fmt.Sprint(answered))
		lines.WriteString(sessiontest.MessageLine(i, numbers.Replace(message)))
	}
	return lines.String() + sessiontest.Entry("other", "e7")
}

// TestParts: a page does not depend on how many parts it is made in.
func TestParts(t *testing.T) {
	defer func(before int) { leastPart = before }(leastPart)
	lines := manyTurns()
	leastPart = 1 << 20
	whole := pageOf(t, lines)
	require.Equal(t, 300, strings.Count(whole, ` id="e`))
	for _, size := range []int{1, 2, 3, 7, 100} {
		leastPart = size
		require.Equal(t, whole, pageOf(t, lines), "parts of %d entries", size)
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
