package copilot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// TestRest: totals that count on are counted once, and those that begin anew are added up.
func TestRest(t *testing.T) {
	type runs []struct {
		totals string // model, requests, input, cache reads, output
		said   int    // tokens of answers
		want   int64  // input that is left
	}
	for name, c := range map[string]runs{
		"counts on":                 {{"a 1 100 0 5", 5, 100}, {"a 2 250 50 11", 6, 100}},
		"begins anew":               {{"a 24 900 0 5", 5, 900}, {"a 6 100 0 2", 2, 100}, {"a 174 5000 0 9", 9, 5000}},
		"anew with larger totals":   {{"a 1 100 0 5", 5, 100}, {"a 9 900 0 9", 9, 900}},
		"anew with fewer requests":  {{"a 24 100 0 5", 5, 100}, {"a 6 900 0 9", 2, 900}},
		"another model":             {{"a 1 100 0 5", 5, 100}, {"b 1 80 0 7", 7, 80}},
		"models that come and stay": {{"a 1 100 0 5", 5, 100}, {"b 1 80 0 7", 7, 80}, {"b 2 110 0 9", 2, 30}},
		"answers say nothing":       {{"a 1 100 0 5", 0, 100}, {"a 2 150 0 9", 0, 50}},
		"nothing was said in a run": {{"a 1 100 0 5", 5, 100}, {"a 1 100 0 5", 0, 0}},
	} {
		u := newUsage()
		for i, run := range c {
			noteAnswer(&u, run.said)
			rest := u.rest(totalsEvent(t, run.totals))
			require.Equal(t, run.want, rest.Input, "%s, run %d", name, i)
		}
	}
}

// TestRestOfTold: where calls were told nothing of their run is left, and the next run counts on.
func TestRestOfTold(t *testing.T) {
	u := newUsage()
	noteAnswer(&u, 0)
	u.note("session.usage_record", "", objectOf(`{"usage":{"inputTokens":100,"apiCallId":"x"}}`))
	require.Zero(t, u.rest(totalsEvent(t, "a 1 100 0 5")).Input)
	noteAnswer(&u, 3)
	require.Equal(t, int64(60), u.rest(totalsEvent(t, "a 2 160 0 8")).Input)
}

// objectOf returns the members of an object.
func objectOf(text string) agents.Object { return agents.Read(rawjson.Value(text)) }

// noteAnswer notes an answer with tokens of output.
func noteAnswer(u *tokenCounts, output int) {
	u.note("assistant.message", "", objectOf(fmt.Sprintf(`{"outputTokens":%d}`, output)))
}

// totalsEvent returns the data of an event with totals: a model, its requests, input, cache reads and output.
func totalsEvent(t *testing.T, totals string) agents.Object {
	fields := strings.Fields(totals)
	require.Len(t, fields, 5)
	usage := fmt.Sprintf(`{"inputTokens":%s,"cacheReadTokens":%s,"outputTokens":%s}`, fields[2], fields[3], fields[4])
	return objectOf(fmt.Sprintf(`{"modelMetrics":{%q:{"requests":{"count":%s},"usage":%s}}}`, fields[0], fields[1], usage))
}

// TestOf: the tokens of a call count once, with the first part of its answer; those that answers without a call tell count each.
func TestOf(t *testing.T) {
	u := newUsage()
	told := func(call string) {
		const record = `{"usage":{"inputTokens":100,"outputTokens":9,"apiCallId":%q}}`
		u.note("session.usage_record", "", objectOf(fmt.Sprintf(record, call)))
	}
	said := objectOf(`{"outputTokens":4}`)
	told("x")
	require.Equal(t, int64(109), u.of("", "x", said).Total)
	require.Zero(t, u.of("", "x", said).Total, "another part")
	require.Equal(t, int64(4), u.of("", "y", said).Total)
	told("")
	require.Equal(t, int64(109), u.of("", "", said).Total)
	require.Equal(t, int64(4), u.of("", "", said).Total, "another answer")
}
