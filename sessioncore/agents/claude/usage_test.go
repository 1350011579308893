package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
)

// converted returns the session that is made of a file. A bill of the file is that of the session.
func converted(t *testing.T, file string) string {
	whole, _ := agentstest.Convert(t, newConverter(agents.About{ID: "s"}, nil, "").Builder, file)
	h := agentstest.New(t, "claude")
	h.Put("projects/"+session, strings.TrimSuffix(file, "\n"))
	h.Read(h.Sessions("")[0])
	return whole
}

// TestUsage: all billed tokens are in the usage of an answer, and a part of other numbers is not there twice.
func TestUsage(t *testing.T) {
	tokens := func(input, output, cacheRead, cacheWrite int) string {
		return fmt.Sprintf(`"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":%d,"totalTokens":%d`,
			input, output, cacheRead, cacheWrite, input+output+cacheRead+cacheWrite)
	}
	for _, c := range []struct{ usage, want string }{
		{`{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}`,
			`{` + tokens(1, 2, 3, 4) + `}`},
		{`{"cache_creation_input_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":3}}`,
			`{` + tokens(0, 0, 0, 4) + `,"cacheWrite1h":3}`},
		{`{"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":3}}`,
			`{` + tokens(0, 0, 0, 4) + `,"cacheWrite1h":3}`},
		{`{"cache_creation":null,"speed":"standard","iterations":null}`,
			`{` + tokens(0, 0, 0, 0) + `}`},
		{`{"input_tokens":1,"speed":"fast"}`,
			`{` + tokens(1, 0, 0, 0) + `,"speed":"fast"}`},
		{`{"input_tokens":1,"iterations":[{"type":"message","input_tokens":1},{"type":"fallback_message","input_tokens":1}]}`,
			`{` + tokens(1, 0, 0, 0) + `}`},
		{`{"iterations":[{"type":"advisor_message","model":"o","input_tokens":7,"cache_creation":{"ephemeral_1h_input_tokens":2}},7]}`,
			`{` + tokens(0, 0, 0, 0) + `,"modelCalls":[{"model":"o",` + tokens(7, 0, 0, 2) + `,"cacheWrite1h":2}]}`},
		{`{"iterations":[{"type":"advisor_message"},{"type":"compaction","output_tokens":5}]}`,
			`{` + tokens(0, 0, 0, 0) + `,"modelCalls":[{"model":"unknown",` + tokens(0, 0, 0, 0) + `},{"model":"m",` + tokens(0, 5, 0, 0) + `}]}`},
		{`{"input_tokens":-4,"output_tokens":"9","cache_read_input_tokens":1e3,"cache_creation":[1],"iterations":{"type":"advisor_message"}}`,
			`{` + tokens(0, 0, 0, 0) + `}`},
	} {
		text := converted(t, rec("assistant", "a", "", `"message":{"id":"i","role":"assistant","model":"m","content":"x","usage":`+c.usage+`}`))
		_, answer, _ := strings.Cut(strings.TrimSpace(text), "\n")
		require.True(t, rawjson.IsValidObject([]byte(answer)))
		require.Equal(t, c.want, string(rawjson.Value(answer).Member("message").Member("usage")), c.usage)
	}
}

// TestAnswersOfOneID: answers in a row that have one message id are told apart by their requests, or by their input.
func TestAnswersOfOneID(t *testing.T) {
	says := func(uuid, parent, request string, input int) string {
		if request != "" {
			request = fmt.Sprintf(`"requestId":%q,`, request)
		}
		return rec("assistant", uuid, parent,
			request+fmt.Sprintf(`"message":{"id":"m","role":"assistant","model":"x","content":[%s],"usage":{"input_tokens":%d,"output_tokens":1}}`,
				callBlock("c"+uuid), input))
	}
	orphan := func(record string) string { return strings.Replace(record, `"parentUuid":null,`, "", 1) }
	for name, c := range map[string]struct {
		lines []string
		want  string // the inputs of the answers, "-" for one without a usage
	}{
		"requests": {[]string{says("a", "", "r1", 1), result("b", "a", "ca", "x"), says("c", "b", "r2", 2), result("d", "c", "cc", "x"),
			says("e", "d", "r3", 3)}, "1 2 3"},
		"one request": {[]string{says("a", "", "r1", 1), result("b", "a", "ca", "x"), says("c", "b", "r1", 1), result("d", "c", "cc", "x"),
			says("e", "d", "r1", 1)}, "1"},
		"no request":             {[]string{says("a", "", "", 1), result("b", "a", "ca", "x"), says("c", "b", "", 2)}, "1 2"},
		"no request, one input":  {[]string{says("a", "", "", 1), result("b", "a", "ca", "x"), says("c", "b", "", 1)}, "1"},
		"beside the result":      {[]string{says("a", "", "", 1), result("b", "a", "ca", "x"), says("c", "a", "", 2)}, "2"},
		"other requests, no end": {[]string{says("a", "", "r1", 1), says("c", "a", "r2", 2)}, "2"},
		"a prompt between": {[]string{says("a", "", "r1", 1), user("b", "a", "and"), says("c", "b", "r2", 2), user("d", "c", "on"),
			says("e", "d", "", 4)}, "1 2 4"},
		"another answer between": {[]string{says("a", "", "r1", 1), strings.Replace(says("b", "a", "r2", 2), `"m"`, `"n"`, 1),
			says("c", "b", "r3", 4)}, "1 2 4"},
		"the first names a request": {[]string{says("a", "", "r1", 1), result("b", "a", "ca", "x"), says("c", "b", "", 1), result("d", "c", "cc", "x"),
			says("e", "d", "", 3)}, "1 3"},
		"no parents": {[]string{orphan(says("a", "", "", 1)), orphan(result("b", "", "ca", "x")), orphan(says("c", "", "", 1)),
			orphan(says("d", "", "", 2))}, "1 2"},
		"the largest": {[]string{says("a", "", "r1", 1), says("b", "a", "r1", 9), says("c", "b", "r1", 5)}, "9"},
		"the largest part, which is the first": {[]string{says("a", "", "r1", 9), strings.Replace(says("b", "a", "r2", 2), `"m"`, `"n"`, 1),
			says("c", "b", "r1", 5)}, "9 2 "},
		"the largest part, which is the second": {[]string{says("a", "", "r1", 1), strings.Replace(says("b", "a", "r2", 2), `"m"`, `"n"`, 1),
			says("c", "b", "r1", 5), strings.Replace(says("d", "c", "r2", 1), `"m"`, `"n"`, 1), says("e", "d", "r1", 4)}, " 2 5  "},
		"two records each": {[]string{says("a", "", "r1", 1), says("b", "a", "r1", 1), result("c", "b", "cb", "x"), says("d", "c", "r2", 5),
			says("e", "d", "r2", 5)}, "1 5"},
	} {
		text := converted(t, strings.Join(c.lines, "\n")+"\n")
		var inputs []string
		for line := range strings.Lines(text) {
			if m := rawjson.Value(line).Member("message"); m.Member("role").Is("assistant") {
				inputs = append(inputs, string(m.Member("usage").Member("input")))
			}
		}
		require.Equal(t, c.want, strings.Join(inputs, " "), "%s: %s", name, text)
	}
}

// TestSessionCost: the session's cost that the client recorded stands in the usage of the answer
// before it, else in the next one.
func TestSessionCost(t *testing.T) {
	state := func(total, models string) string {
		return `{"type":"cost-state","sessionId":"s","totalCostUSD":` + total + `,"modelUsage":` + models + `}`
	}
	first, second := says("a", "", "m1", textBlock("x"), 1), says("b", "a", "m2", textBlock("y"), 2)
	const cost = `{"total":1.25,"models":{"claude-x":1,"y":0.25}}`
	both := state("1.25", `{"claude-x":{"costUSD":1},"odd":{"costUSD":"1"},"y":{"costUSD":0.25},"z":7}`)
	for name, c := range map[string]struct{ text, want string }{
		"behind an answer":    {first + "\n" + both + "\n" + second, cost + " -"},
		"at the end":          {first + "\n" + second + "\n" + both, "- " + cost},
		"behind a compaction": {first + "\n" + boundaryOf("s", "a", "") + "\n" + summaryOf("t", "s", "short") + "\n" + both, cost},
		"at the beginning":    {both + "\n" + first + "\n" + second, cost + " -"},
		"twice":               {first + "\n" + state("1", "{}") + "\n" + both, cost},
		"without models":      {first + "\n" + state("1", "null"), `{"total":1,"models":{}}`},
		"no number":           {first + "\n" + state(`"1"`, "{}"), "-"},
		"below 0":             {first + "\n" + state("-1", "{}"), "-"},
		"no usage":            {rec("assistant", "a", "", `"message":{"id":"m","role":"assistant","content":"x"}`) + "\n" + both, cost},
	} {
		var got []string
		for line := range strings.Lines(converted(t, c.text+"\n")) {
			if m := rawjson.Value(line).Member("message"); m.Member("role").Is("assistant") {
				of := string(m.Member("usage").Member("sessionCost"))
				if of == "" {
					of = "-"
				}
				got = append(got, of)
			}
		}
		require.Equal(t, c.want, strings.Join(got, " "), name)
	}
}
