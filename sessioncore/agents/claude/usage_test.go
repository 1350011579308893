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
	b := newConverter(agents.About{ID: "s"}, nil, "").Builder
	whole, _ := agentstest.Convert(t, b, file)
	h := agentstest.New(t, "claude")
	h.Put("projects/"+session, strings.TrimSuffix(file, "\n"))
	h.Read(h.Sessions("")[0])
	return whole
}

// usagesOf returns a member of the usage of each answer of a session, with missing where an answer has none.
func usagesOf(session, member, missing string) string {
	var values []string
	for line := range strings.Lines(session) {
		message := rawjson.Value(line).Member("message")
		if !message.Member("role").Is("assistant") {
			continue
		}
		value := string(message.Member("usage").Member(member))
		if value == "" {
			value = missing
		}
		values = append(values, value)
	}
	return strings.Join(values, " ")
}

// TestUsage: all billed tokens are in the usage of an answer, and a part of other numbers is not there twice.
func TestUsage(t *testing.T) {
	tokens := func(input, output, cacheRead, cacheWrite int) string {
		total := input + output + cacheRead + cacheWrite
		return fmt.Sprintf(`"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":%d,"totalTokens":%d`,
			input, output, cacheRead, cacheWrite, total)
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
		message := `"message":{"id":"i","role":"assistant","model":"m","content":"x","usage":` + c.usage + `}`
		text := converted(t, rec("assistant", "a", "", message))
		_, answer, _ := strings.Cut(strings.TrimSpace(text), "\n") // behind the header
		require.True(t, rawjson.IsValidObject([]byte(answer)))
		usage := rawjson.Value(answer).Member("message").Member("usage")
		require.Equal(t, c.want, string(usage), c.usage)
	}
}

// partOf returns a record with a call of the answer of message m to a request, which may be "", with a number of input
// tokens.
func partOf(uuid, parent, request string, input int) string {
	if request != "" {
		request = fmt.Sprintf(`"requestId":%q,`, request)
	}
	message := fmt.Sprintf(`"message":{"id":"m","role":"assistant","model":"x","content":[%s],"usage":{"input_tokens":%d,"output_tokens":1}}`,
		callBlock("c"+uuid), input)
	return rec("assistant", uuid, parent, request+message)
}

// ofMessageN returns a record as one of the message n.
func ofMessageN(record string) string { return strings.Replace(record, `"m"`, `"n"`, 1) }

// withoutParent returns a record, which has no parent, without the member that would name it.
func withoutParent(record string) string { return strings.Replace(record, `"parentUuid":null,`, "", 1) }

// TestAnswersOfOneID: answers in a row that have one message id are told apart by their requests, or by their input.
func TestAnswersOfOneID(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string // the inputs of the answers
	}{
		"requests": {[]string{
			partOf("a", "", "r1", 1), result("b", "a", "ca", "x"),
			partOf("c", "b", "r2", 2), result("d", "c", "cc", "x"),
			partOf("e", "d", "r3", 3),
		}, "1 2 3"},
		"one request": {[]string{
			partOf("a", "", "r1", 1), result("b", "a", "ca", "x"),
			partOf("c", "b", "r1", 1), result("d", "c", "cc", "x"),
			partOf("e", "d", "r1", 1),
		}, "1"},
		"no request": {[]string{
			partOf("a", "", "", 1), result("b", "a", "ca", "x"),
			partOf("c", "b", "", 2),
		}, "1 2"},
		"no request, one input": {[]string{
			partOf("a", "", "", 1), result("b", "a", "ca", "x"),
			partOf("c", "b", "", 1),
		}, "1"},
		"beside the result": {[]string{
			partOf("a", "", "", 1), result("b", "a", "ca", "x"),
			partOf("c", "a", "", 2),
		}, "2"},
		"other requests, no end": {[]string{partOf("a", "", "r1", 1), partOf("c", "a", "r2", 2)}, "2"},
		"a prompt between": {[]string{
			partOf("a", "", "r1", 1), user("b", "a", "and"),
			partOf("c", "b", "r2", 2), user("d", "c", "on"),
			partOf("e", "d", "", 4),
		}, "1 2 4"},
		"another answer between": {[]string{
			partOf("a", "", "r1", 1),
			ofMessageN(partOf("b", "a", "r2", 2)),
			partOf("c", "b", "r3", 4),
		}, "1 2 4"},
		"the first names a request": {[]string{
			partOf("a", "", "r1", 1), result("b", "a", "ca", "x"),
			partOf("c", "b", "", 1), result("d", "c", "cc", "x"),
			partOf("e", "d", "", 3),
		}, "1 3"},
		"no parents": {[]string{
			withoutParent(partOf("a", "", "", 1)), withoutParent(result("b", "", "ca", "x")),
			withoutParent(partOf("c", "", "", 1)),
			withoutParent(partOf("d", "", "", 2)),
		}, "1 2"},
		"the largest": {[]string{partOf("a", "", "r1", 1), partOf("b", "a", "r1", 9), partOf("c", "b", "r1", 5)}, "9"},
		"the largest part, which is the first": {[]string{
			partOf("a", "", "r1", 9),
			ofMessageN(partOf("b", "a", "r2", 2)),
			partOf("c", "b", "r1", 5),
		}, "9 2 "},
		"the largest part, which is the second": {[]string{
			partOf("a", "", "r1", 1),
			ofMessageN(partOf("b", "a", "r2", 2)),
			partOf("c", "b", "r1", 5),
			ofMessageN(partOf("d", "c", "r2", 1)),
			partOf("e", "d", "r1", 4),
		}, " 2 5  "},
		"two records each": {[]string{
			partOf("a", "", "r1", 1), partOf("b", "a", "r1", 1), result("c", "b", "cb", "x"),
			partOf("d", "c", "r2", 5), partOf("e", "d", "r2", 5),
		}, "1 5"},
	} {
		text := converted(t, strings.Join(c.lines, "\n")+"\n")
		require.Equal(t, c.want, usagesOf(text, "input", ""), "%s: %s", name, text)
	}
}

// TestSessionCost: the session's cost that the client recorded stands in the usage of the answer
// before it, else in the next one.
func TestSessionCost(t *testing.T) {
	state := func(total, models string) string {
		return `{"type":"cost-state","sessionId":"s","totalCostUSD":` + total + `,"modelUsage":` + models + `}`
	}
	first := says("a", "", "m1", textBlock("x"), 1)
	second := says("b", "a", "m2", textBlock("y"), 2)
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
		text := converted(t, c.text+"\n")
		require.Equal(t, c.want, usagesOf(text, "sessionCost", "-"), name)
	}
}
