package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
)

// TestBill: a bill, which leaves out the lines of people and tools, has the answers of the text. Home.Read compares
// both.
func TestBill(t *testing.T) {
	answer := func(uuid, parent, request string, tokens int) string {
		return strings.Replace(says(uuid, parent, "m", textBlock(uuid), tokens), `"type":"assistant"`,
			fmt.Sprintf(`"type":"assistant","requestId":%q`, request), 1)
	}
	with := func(line, members string) string { return strings.TrimSuffix(line, "}") + "," + members + "}" }
	call := func(uuid, name string) string {
		return says(uuid, "", "n", fmt.Sprintf(`{"type":"tool_use","id":"c","name":%q,"input":{}}`, name), 2)
	}
	for name, lines := range map[string][]string{
		"a prompt and a result": {user("a", "", "go"), call("b", "Bash"), result("c", "b", "c", "done"), answer("d", "c", "r", 1)},
		"a request between":     {answer("a", "", "r", 1), user("b", "a", "go"), answer("c", "b", "q", 2)},
		"no request, a prompt between": {says("a", "", "m", textBlock("1"), 1), user("b", "a", "go"),
			strings.Replace(says("c", "b", "m", textBlock("2"), 2), `"input_tokens":3`, `"input_tokens":4`, 1)},
		"a summary between": {answer("a", "", "r", 1),
			with(user("b", "a", "so far"), `"isCompactSummary":true`), answer("c", "b", "r", 2)},
		"a retracted record": {answer("a", "", "r", 1), answer("b", "a", "r", 2),
			with(user("c", "b", "again"), `"retractedMessageUuids":["b"]`)},
		"a removed record": {answer("a", "", "r", 1), answer("b", "a", "r", 2),
			with(user("c", "b", "again"), `"snipMetadata":{"removedUuids":["b"]}`)},
		"a result with a usage": {call("a", "task"),
			with(result("b", "a", "c", "done"), `"toolUseResult":{"usage":{"input":1,"totalTokens":1}}`)},
		"words that lines are chosen by": {user("a", "", `"isCompactSummary" "removedUuids" "task"`), call("b", "Task"),
			result("c", "b", "c", `"type":"assistant"`)},
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
