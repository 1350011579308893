package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestRoom: each byte of the file counts once, by what it is, also when the file has grown, and an image that comes again.
func TestRoom(t *testing.T) {
	const image, call = `{"type":"image","data":"AAAA","mimeType":"image/png"}`, `{"type":"toolCall","id":"c","name":"read","arguments":{"path":"/x"}}`
	const thought, words = `{"type":"thinking","thinking":"hm"}`, `{"type":"text","text":"words"}`
	const result, blob = `{"role":"toolResult","toolName":"read","content":[` + words + `],"details":{"a":1}}`, `{"type":"image","data":"blob:sha256:00","mimeType":"image/png"}`
	s := newTestSession(t, sessiontest.Header)
	var want roomBytes
	var repeated repeatedImages
	for n, add := range []struct {
		message string
		kinds   roomBytes
		again   int
	}{
		{`{"role":"user","content":"hello"}`, roomBytes{Text: 7}, 0},
		{`{"role":"user","content":[` + words + `,` + image + `,` + image + `]}`, roomBytes{Text: int64(len(words)), Images: int64(2 * len(image))}, 1},
		{`{"role":"assistant","content":[` + thought + `,` + words + `,` + call + `,{"type":"new"}],"usage":{"input":1}}`,
			roomBytes{Thinking: int64(len(thought)), Text: int64(len(words)), ToolCalls: int64(len(call))}, 0},
		{result, roomBytes{ToolResults: int64(len(sessiontest.MessageLine(3, result)))}, 0},
		{`{"role":"toolResult","toolName":"read","content":[` + image + `,` + blob + `]}`,
			roomBytes{ToolResults: int64(len(sessiontest.MessageLine(4, `{"role":"toolResult","toolName":"read","content":[,]}`))), Images: int64(len(image) + len(blob))}, 1},
		{`{"role":"user","content":[{"type":"tool_result","content":[` + blob + `]}]}`,
			roomBytes{ToolResults: int64(len(`{"type":"tool_result","content":[]}`)), Images: int64(len(blob))}, 1},
	} {
		s.Append(sessiontest.MessageLine(n, add.message))
		want.Text += add.kinds.Text
		want.Thinking += add.kinds.Thinking
		want.ToolCalls += add.kinds.ToolCalls
		want.ToolResults += add.kinds.ToolResults
		want.Images += add.kinds.Images
		repeated.Count += add.again
		snap := sessiontest.Snapshot(t, s.session)
		usage, _ := readUsage(t, snap, sessioncore.NoEntry)
		want.Other = snap.Stat().Size - want.Text - want.Thinking - want.ToolCalls - want.ToolResults - want.Images
		require.Equal(t, want, usage.Bytes, add.message)
		require.Equal(t, repeated.Count, usage.RepeatedImages.Count, add.message)
		snap.Release()
	}
}
