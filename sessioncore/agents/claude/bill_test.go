package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
)

// answerTo returns a record of an answer to a request, all of which have one message id.
func answerTo(request, uuid, parent string, tokens int) string {
	record := says(uuid, parent, "m", textBlock(uuid), tokens)
	typ := fmt.Sprintf(`"type":"assistant","requestId":%q`, request)
	return strings.Replace(record, `"type":"assistant"`, typ, 1)
}

// callOf returns a record of an answer with the call c of a tool.
func callOf(uuid, tool string) string {
	block := fmt.Sprintf(`{"type":"tool_use","id":"c","name":%q,"input":{}}`, tool)
	return says(uuid, "", "n", block, 2)
}

// withMembers returns a record with more members at its end.
func withMembers(record, members string) string {
	return strings.TrimSuffix(record, "}") + "," + members + "}"
}

// TestBill: a bill, which leaves out the lines of people and tools, has the answers of the text. Home.Read compares
// both.
func TestBill(t *testing.T) {
	for name, lines := range map[string][]string{
		"a prompt and a result": {
			user("a", "", "go"),
			callOf("b", "Bash"),
			result("c", "b", "c", "done"),
			answerTo("r", "d", "c", 1),
		},
		"a request between": {
			answerTo("r", "a", "", 1),
			user("b", "a", "go"),
			answerTo("q", "c", "b", 2),
		},
		"no request, a prompt between": {
			says("a", "", "m", textBlock("1"), 1),
			user("b", "a", "go"),
			strings.Replace(says("c", "b", "m", textBlock("2"), 2), `"input_tokens":3`, `"input_tokens":4`, 1),
		},
		"a summary between": {
			answerTo("r", "a", "", 1),
			withMembers(user("b", "a", "so far"), `"isCompactSummary":true`),
			answerTo("r", "c", "b", 2),
		},
		"a retracted record": {
			answerTo("r", "a", "", 1),
			answerTo("r", "b", "a", 2),
			withMembers(user("c", "b", "again"), `"retractedMessageUuids":["b"]`),
		},
		"a removed record": {
			answerTo("r", "a", "", 1),
			answerTo("r", "b", "a", 2),
			withMembers(user("c", "b", "again"), `"snipMetadata":{"removedUuids":["b"]}`),
		},
		"a result with a usage": {
			callOf("a", "task"),
			withMembers(result("b", "a", "c", "done"), `"toolUseResult":{"usage":{"input":1,"totalTokens":1}}`),
		},
		"words that lines are chosen by": {
			user("a", "", `"isCompactSummary" "removedUuids" "task"`),
			callOf("b", "Task"),
			result("c", "b", "c", `"type":"assistant"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := agentstest.New(t, "claude")
			h.Put("projects/"+session, lines...)
			require.NotEmpty(t, h.Read(h.Sessions("")[0]))
		})
	}
}

// TestChargeless: most lines of a file are skipped for a bill.
func TestChargeless(t *testing.T) {
	skip := chargeless(false)
	for line, isSkipped := range map[string]bool{
		user("a", "", "go"):                          true,
		result("a", "b", "c", "done"):                true,
		says("a", "b", "m", textBlock("hi"), 1):      false,
		rec("system", "a", "", `"content":"x"`):      false,
		strings.Repeat(" ", 9) + user("a", "", "go"): false,
		"": false,
	} {
		require.Equal(t, isSkipped, skip([]byte(line)), line)
	}
}
