package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
)

// TestBare: rollouts of mid-2025 have items without an envelope, and the working directory in one of the first.
func TestBare(t *testing.T) {
	const first = `{"id":"b","timestamp":"2025-06-03T09:00:00.000Z","instructions":null,"git":{"branch":"main"}}`
	const state = `{"record_type":"state"}`
	user := func(text string) string {
		quoted, _ := json.Marshal(text)
		return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + string(quoted) + `}]}`
	}
	environment := func(inside string) string { return "<environment_context>\n" + inside + "\n</environment_context>" }
	context := func(inside string) string { return user(environment(inside)) }
	shown := func(entry, inside string) string {
		return fmt.Sprintf("%s message user %q [%c]", entry, environment(inside), entry[1])
	}
	const inTags = "  <cwd>/srv/larder</cwd>\n  <approval_policy>on-request</approval_policy>"
	const inWords = "Current working directory: /srv/larder\nApproval policy: never"
	for name, c := range map[string]struct {
		lines []string
		cwd   string
		want  []string
	}{
		"items": {
			[]string{
				first, state, user("beans"), `{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}]}`,
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"soaked"}]}`,
				`{"type":"function_call","id":"f","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"k1"}`, state,
				`{"type":"function_call_output","call_id":"k1","output":"pot"}`,
			}, "",
			[]string{
				`l3 <  message user "beans" [3]`, `l4 < l3 message assistant (hm) "soaked" k1:shell{"command":["ls"]} toolUse [4 5 6]`,
				`l8 < l4 message toolResult shell "pot" [8]`,
			},
		},
		"a working directory": {
			[]string{first, state, user("<user_instructions>x"), context(inTags), user("beans")}, "/srv/larder",
			[]string{`l3 <  message user "<user_instructions>x" [3]`, shown("l4 < l3", inTags), `l5 < l4 message user "beans" [5]`},
		},
		"in the words before": {
			[]string{first, context(inWords), user("beans")}, "/srv/larder",
			[]string{shown("l2 < ", inWords), `l3 < l2 message user "beans" [3]`},
		},
		"nothing but what the program put in": {[]string{first, context("x")}, "",
			[]string{shown("l2 < ", "x")}},
		"a newer program went on": {[]string{first, context("x"), strings.TrimSpace(answered("well"))}, "",
			[]string{shown("l2 < ", "x"), `l3 < l2 message assistant "well" stop [3]`}},
		"nothing yet": {[]string{first}, "", []string{}},
		"of wrong types": {[]string{first, `{"type":"message","role":"user","content":7}`, `{"type":7}`, `{"type":"reasoning"}`, `{"type":"x_call"}`},
			"", []string{`l5 <  message assistant l5:x{} toolUse [5]`}},
	} {
		t.Run(name, func(t *testing.T) {
			whole, states := agentstest.Convert(t, newConverter(agents.About{ID: "s"}, nil, nil), strings.Join(c.lines, "\n")+"\n")
			outline := agentstest.Outline(t, whole)
			require.Equal(t, append([]string{"session b"}, c.want...), outline)
			var header struct{ Timestamp, CWD string }
			first, _, _ := strings.Cut(whole, "\n")
			require.NoError(t, json.Unmarshal([]byte(first), &header))
			require.Equal(t, c.cwd, header.CWD)
			require.Equal(t, "2025-06-03T09:00:00.000Z", header.Timestamp)
			for _, state := range states {
				requireTree(t, state)
			}
		})
	}
}
