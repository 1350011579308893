package report

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestOrphanCalls: a call without a result and a result without a call are problems, in every spelling, on the branch that a
// model is sent; what is still to come is none.
func TestOrphanCalls(t *testing.T) {
	const user = `{"role":"user","content":"x"}`
	answer := func(ids ...string) string {
		for i, id := range ids {
			ids[i] = `{"type":"toolCall","id":"` + id + `","name":"bash","arguments":{}}`
		}
		return `{"role":"assistant","content":[` + strings.Join(ids, ",") + `]}`
	}
	result := func(id string) string { return `{"role":"toolResult","toolCallId":"` + id + `","content":[]}` }
	aborted := strings.Replace(answer("a"), "{", `{"stopReason":"aborted",`, 1)
	for name, c := range map[string]struct {
		messages []string
		want     string // the ids of entries with -call or -result
	}{
		"none":              {[]string{user, answer("a", "b"), result("b"), result("a"), answer(), user}, ""},
		"a call":            {[]string{user, answer("a", "b"), result("a"), user}, "e1-call"},
		"a call, and on":    {[]string{answer("a"), answer("b"), result("b"), answer()}, "e0-call"},
		"running":           {[]string{user, answer("a", "b"), result("a")}, ""},
		"running, in parts": {[]string{user, answer("a"), answer("b"), result("b")}, ""},
		"a result":          {[]string{user, result("a"), answer()}, "e1-result"},
		"a result before":   {[]string{result("a"), answer("a"), result("a"), user}, "e0-result"},
		"two results":       {[]string{answer("a"), result("a"), result("a"), user}, ""},
		"an id again":       {[]string{answer("a"), result("a"), answer("a"), user, answer("a"), result("a"), user}, "e2-call"},
		"aborted":           {[]string{aborted, user, aborted, result("a"), user}, ""},
		"no id":             {[]string{`{"role":"assistant","content":[{"type":"toolCall","name":"x"}]}`, `{"role":"toolResult"}`, user}, ""},
		"operator's words": {[]string{`{"role":"assistant","content":[{"type":"tool_call","id":"a"}]}`,
			`{"role":"tool_result","tool_call_id":"b"}`, user}, "e0-call e1-result"},
		"a provider's words": {[]string{`{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`, user}, ""},
		"of the provider": {[]string{`{"role":"assistant",` +
			`"content":[{"type":"server_tool_use","id":"a"},{"type":"toolCall","id":"b","name":"web_search"}]}`, user, result("b")}, ""},
		"no content, no object": {[]string{`{"role":"assistant"}`, `{"role":"assistant","content":[7,"x"]}`, `7`, user}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			content := sessiontest.Header
			for i, m := range c.messages {
				content += sessiontest.MessageLine(i, m)
			}
			require.Equal(t, c.want, orphansOf(t, content))
		})
	}
	line := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + "\n" }
	first := sessiontest.MessageLine(0, user) + sessiontest.MessageLine(1, answer("lost")) + sessiontest.MessageLine(2, user) +
		sessiontest.MessageLine(3, answer("a")) + sessiontest.MessageLine(4, result("a"))
	for name, c := range map[string]struct{ then, want string }{
		"before a compaction":     {line(`{"type":"compaction","id":"c","parentId":"e4","summary":"s","firstKeptEntryId":"e4"}`), ""},
		"kept by a compaction":    {line(`{"type":"compaction","id":"c","parentId":"e4","summary":"s","firstKeptEntryId":"e1"}`), "e1-call"},
		"before /clear":           {line(`{"type":"reset_boundary","id":"c","parentId":"e4"}`), ""},
		"on another branch":       {line(`{"type":"message","id":"c","parentId":"e0","message":%s}`, user), ""},
		"after it, on the branch": {line(`{"type":"message","id":"c","parentId":"e4","message":%s}`, user), "e1-call"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, orphansOf(t, sessiontest.Header+first+c.then)) })
	}
	several := sessiontest.Header + sessiontest.MessageLine(0, answer("1", "2", "3", "4", "5")) + sessiontest.MessageLine(1, user)
	text := problemsOf(t, snapshotOf(t, several), nil)
	for range 10 {
		require.Equal(t, text, problemsOf(t, snapshotOf(t, several), nil), "in one order")
	}
	many := strings.Builder{}
	many.WriteString(sessiontest.Header)
	for i := range maxOrphans + 5 {
		many.WriteString(sessiontest.MessageLine(i, result("r")))
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
