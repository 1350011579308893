package report

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// messageOf returns the message of a line of testdata/calls.txt: a speaker, and the ids of calls; or a message
// itself, which need not be one.
func messageOf(line string) string {
	words := strings.Fields(line)
	if strings.HasPrefix(line, "{") || line == "7" {
		return line
	}
	calls := []string{}
	for _, id := range words[1:] {
		calls = append(calls, `{"type":"toolCall","id":"`+id+`","name":"bash","arguments":{}}`)
	}
	content := `"content":[` + strings.Join(calls, ",") + `]}`
	switch words[0] {
	case "answer":
		return `{"role":"assistant",` + content
	case "aborted":
		return `{"stopReason":"aborted","role":"assistant",` + content
	case "result":
		return `{"role":"toolResult","toolCallId":"` + words[1] + `","content":[]}`
	}
	return `{"role":"user","content":"x"}`
}

// TestOrphanCalls: calls and results without each other are problems, as the page has them. They are in one order,
// at most maxOrphans are listed, and the search for them ends with its context.
func TestOrphanCalls(t *testing.T) {
	sessiontest.Page(t, "testdata/calls.txt", func(t *testing.T, name, give, want string) {
		content := ""
		for i, line := range strings.Split(give, "\n") {
			if strings.HasPrefix(line, `{"type"`) {
				content += line + "\n"
			} else {
				content += sessiontest.MessageLine(i, messageOf(line))
			}
		}
		require.Equal(t, strings.TrimSpace(want), orphansOf(t, content), name)
	})
	several := sessiontest.MessageLine(0, messageOf("answer 1 2 3 4 5")) + sessiontest.MessageLine(1, messageOf("user"))
	text := problemsOf(t, snapshotOf(t, several), nil)
	for range 10 {
		require.Equal(t, text, problemsOf(t, snapshotOf(t, several), nil), "in one order")
	}
	many := strings.Builder{}
	for i := range maxOrphans + 5 {
		many.WriteString(sessiontest.MessageLine(i, messageOf("result r")))
	}
	snap := snapshotOf(t, many.String())
	text = problemsOf(t, snap, nil)
	require.Equal(t, maxOrphans+1, strings.Count(text, "\n"))
	require.Contains(t, text, "5 further problems are not listed")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err := orphans(stopped, snap)
	require.ErrorIs(t, err, context.Canceled)
}

// orphansOf returns the orphans that problems.jsonl of a session lists, which lists nothing else.
func orphansOf(t *testing.T, content string) string {
	var list []string
	for text := range strings.Lines(problemsOf(t, snapshotOf(t, content), nil)) {
		var p struct{ Problem, ID, Why string }
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		list = append(list, p.ID+strings.TrimPrefix(p.Problem, "orphan"))
	}
	return strings.Join(list, " ")
}
