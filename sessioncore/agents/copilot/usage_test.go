package copilot

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// TestRest: totals that count on are counted once, those that begin anew are added up, and where
// calls were told nothing is left.
func TestRest(t *testing.T) {
	type run struct {
		model                 string
		said                  int // tokens of answers
		told                  bool
		requests, input, read int // totals
		output                int
	}
	for name, c := range map[string]struct {
		runs []run
		want []int64 // input of each
	}{
		"counts on": {[]run{{"a", 5, false, 1, 100, 0, 5}, {"a", 6, false, 2, 250, 50, 11}}, []int64{100, 100}},
		"begins anew": {[]run{{"a", 5, false, 24, 900, 0, 5}, {"a", 2, false, 6, 100, 0, 2}, {"a", 9, false, 174, 5000, 0, 9}},
			[]int64{900, 100, 5000}},
		"anew with larger totals":  {[]run{{"a", 5, false, 1, 100, 0, 5}, {"a", 9, false, 9, 900, 0, 9}}, []int64{100, 900}},
		"anew with fewer requests": {[]run{{"a", 5, false, 24, 100, 0, 5}, {"a", 2, false, 6, 900, 0, 9}}, []int64{100, 900}},
		"another model":            {[]run{{"a", 5, false, 1, 100, 0, 5}, {"b", 7, false, 1, 80, 0, 7}}, []int64{100, 80}},
		"models that come and stay": {[]run{{"a", 5, false, 1, 100, 0, 5}, {"b", 7, false, 1, 80, 0, 7}, {"b", 2, false, 2, 110, 0, 9}},
			[]int64{100, 80, 30}},
		"told":                      {[]run{{"a", 0, true, 1, 100, 0, 5}, {"a", 3, false, 2, 160, 0, 8}}, []int64{0, 60}},
		"answers say nothing":       {[]run{{"a", 0, false, 1, 100, 0, 5}, {"a", 0, false, 2, 150, 0, 9}}, []int64{100, 50}},
		"nothing was said in a run": {[]run{{"a", 5, false, 1, 100, 0, 5}, {"a", 0, false, 1, 100, 0, 5}}, []int64{100, 0}},
	} {
		u := newUsage()
		for i, r := range c.runs {
			u.note("assistant.message", "", agents.Read(rawjson.Value(fmt.Sprintf(`{"outputTokens":%d}`, r.said))))
			if r.told {
				u.note("session.usage_record", "", agents.Read(rawjson.Value(`{"usage":{"inputTokens":100,"apiCallId":"x"}}`)))
			}
			rest := u.rest(agents.Read(rawjson.Value(fmt.Sprintf(
				`{"modelMetrics":{%q:{"requests":{"count":%d},"usage":{"inputTokens":%d,"outputTokens":%d,"cacheReadTokens":%d}}}}`,
				r.model, r.requests, r.input, r.output, r.read,
			))))
			require.Equal(t, c.want[i], rest.Input, "%s, run %d", name, i)
		}
	}
}

// TestOf: the tokens of a call count once, with the first part of its answer; those that answers without a call tell count each.
func TestOf(t *testing.T) {
	u := newUsage()
	told := func(call string) {
		u.note("session.usage_record", "", agents.Read(rawjson.Value(fmt.Sprintf(`{"usage":{"inputTokens":100,"outputTokens":9,"apiCallId":%q}}`, call))))
	}
	said := agents.Read(rawjson.Value(`{"outputTokens":4}`))
	told("x")
	require.Equal(t, int64(109), u.of("", "x", said).Total)
	require.Zero(t, u.of("", "x", said).Total, "another part")
	require.Equal(t, int64(4), u.of("", "y", said).Total)
	told("")
	require.Equal(t, int64(109), u.of("", "", said).Total)
	require.Equal(t, int64(4), u.of("", "", said).Total, "another answer")
}
