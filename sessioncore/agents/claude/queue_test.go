package claude

import (
	"fmt"
	"strings"
	"testing"
)

// queueOp returns a record of the client's queue.
func queueOp(op, members string) string {
	return fmt.Sprintf(`{"type":"queue-operation","operation":%q,"timestamp":"2026-03-30T07:13:42.000Z","sessionId":"s"%s}`, op, members)
}

func enqueue(text string) string { return queueOp("enqueue", fmt.Sprintf(`,"content":%q`, text)) }

func attached(uuid, parent, prompt string) string {
	return rec("attachment", uuid, parent, fmt.Sprintf(`"attachment":{"type":"queued_command","prompt":%q,"commandMode":"prompt"}`, prompt))
}

// withoutUUID returns a record that has no uuid and names no parent.
func withoutUUID(record string) string {
	return strings.Replace(strings.Replace(record, `"parentUuid":null,`, "", 1), `"uuid":"",`, "", 1)
}

// TestQueue: each prompt that was typed while the client worked is one entry, in whichever records it is.
func TestQueue(t *testing.T) {
	begun := []string{user("u1", "", "go"), says("a1", "u1", "M", callBlock("c1"), 1)}
	shown := []string{`u1 <  message user "go" [1]`, `a1 < u1 message assistant c1:Bash{"command":"ls"} toolUse 15+1 [2]`}
	out, so := result("r1", "a1", "c1", "out"), says("a2", "r1", "N", textBlock("so"), 1)
	remove, absorbed := queueOp("remove", ""), func(text string) string {
		return queueOp("remove", fmt.Sprintf(`,"content":%q,"reason":"absorbed_mid_turn"`, text))
	}
	for name, c := range map[string]convertCase{
		"a prompt that was sent with a result": {
			append(begun[:2:2], enqueue("one"), out, remove, so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `l5 < r1 message user "one" [3 5]`, `a2 < l5 message assistant "so" stop 15+1 [6]`),
		},
		"before the result was written": {
			append(begun[:2:2], enqueue("one"), remove, out, so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [5]`, `l4 < r1 message user "one" [3 4]`, `a2 < l4 message assistant "so" stop 15+1 [6]`),
		},
		"no answer has come yet": {
			append(begun[:2:2], enqueue("one"), out, remove),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `l5 < r1 message user "one" [3 5]`),
		},
		"with its words in the second record too": {
			append(begun[:2:2], enqueue("one"), enqueue("two"), out, absorbed("two"), absorbed("one"), so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [5]`, `l6 < r1 message user "two" [4 6]`, `l7 < l6 message user "one" [3 7]`,
				`a2 < l7 message assistant "so" stop 15+1 [8]`),
		},
		"in the second record alone": {
			append(begun[:2:2], out, absorbed("one"), so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [3]`, `l4 < r1 message user "one" [4]`, `a2 < l4 message assistant "so" stop 15+1 [5]`),
		},
		"an attachment has the words too, before": {
			append(begun[:2:2], enqueue("one"), out, attached("q1", "r1", "one"), absorbed("one"), says("a2", "q1", "N", textBlock("so"), 1)),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `q1 < r1 message user "one" [5]`, `a2 < q1 message assistant "so" stop 15+1 [7]`),
		},
		"an attachment has the words too, behind": {
			append(begun[:2:2], enqueue("one"), out, remove, attached("q1", "r1", "one"), says("a2", "q1", "N", textBlock("so"), 1)),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `q1 < r1 message user "one" [6]`, `a2 < q1 message assistant "so" stop 15+1 [7]`),
		},
		"an attachment and a record of the queue without a first one": {
			append(begun[:2:2], out, attached("q1", "r1", "one"), absorbed("one"), says("a2", "q1", "N", textBlock("so"), 1)),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [3]`, `q1 < r1 message user "one" [4]`, `a2 < q1 message assistant "so" stop 15+1 [6]`),
		},
		"an attachment without a uuid": {
			append(begun[:2:2], enqueue("one"), out, withoutUUID(attached("", "", "one")), remove, so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `l5 < r1 message user "one" [5]`, `a2 < l5 message assistant "so" stop 15+1 [7]`),
		},
		"a prompt that comes as a message of its own": {
			append(begun[:2:2], enqueue("one"), out, so, queueOp("dequeue", ""), user("u2", "a2", "one")),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `a2 < r1 message assistant "so" stop 15+1 [5]`, `u2 < a2 message user "one" [7]`),
		},
		"a prompt that comes as a message although it was sent": {
			append(begun[:2:2], enqueue("one"), out, remove, user("u2", "r1", "one")),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `u2 < r1 message user "one" [6]`),
		},
		"the same words are said again later": {
			append(begun[:2:2], enqueue("one"), out, remove, so, user("u2", "a2", "one")),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `l5 < r1 message user "one" [3 5]`, `a2 < l5 message assistant "so" stop 15+1 [6]`,
				`u2 < a2 message user "one" [7]`),
		},
		"the second prompt was sent, and the first came as a message": {
			append(begun[:2:2], enqueue("one"), enqueue("two"), out, remove, so, queueOp("dequeue", ""), user("u2", "a2", "one")),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [5]`, `l6 < r1 message user "two" [4 6]`, `a2 < l6 message assistant "so" stop 15+1 [7]`,
				`u2 < a2 message user "one" [9]`),
		},
		"a command waits until the client has done": {
			append(begun[:2:2], enqueue("/compact"), enqueue("one"), out, remove, so, queueOp("dequeue", "")),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [5]`, `l6 < r1 message user "one" [4 6]`, `a2 < l6 message assistant "so" stop 15+1 [7]`),
		},
		"prompts that went back into the editor": {
			append(begun[:2:2], enqueue("one"), enqueue("two"), queueOp("popAll", `,"content":"one"`), queueOp("popAll", `,"content":"two"`), out, remove, so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [7]`, `a2 < r1 message assistant "so" stop 15+1 [9]`),
		},
		"all went back into the editor": {
			append(begun[:2:2], enqueue("one"), enqueue("two"), queueOp("popAll", ""), out, remove, so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [6]`, `a2 < r1 message assistant "so" stop 15+1 [8]`),
		},
		"a prompt that was thrown away": {
			append(begun[:2:2], enqueue("one"), out, queueOp("remove", `,"content":"one","reason":"cleared_on_cancel"`), so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `a2 < r1 message assistant "so" stop 15+1 [6]`),
		},
		"the client's own news": {
			append(begun[:2:2], enqueue("<task-notification>done</task-notification>"), out, remove, so),
			append(shown[:2:2], `r1 < a1 message toolResult Bash "out" [4]`, `l5 < r1 custom_message "<task-notification>done</task-notification>" [3 5]`,
				`a2 < l5 message assistant "so" stop 15+1 [6]`),
		},
		"results of parallel calls come first": {
			[]string{
				user("u1", "", "go"), says("a1", "u1", "M", callBlock("c1")+","+callBlock("c2"), 1), enqueue("one"), result("r1", "a1", "c1", "out"), remove,
				result("r2", "a1", "c2", "more"), says("a2", "r2", "N", textBlock("so"), 1),
			},
			[]string{
				shown[0], `a1 < u1 message assistant c1:Bash{"command":"ls"} c2:Bash{"command":"ls"} toolUse 15+1 [2]`, `r1 < a1 message toolResult Bash "out" [4]`,
				`r2 < r1 message toolResult Bash "more" [6]`, `l5 < r2 message user "one" [3 5]`, `a2 < l5 message assistant "so" stop 15+1 [7]`,
			},
		},
		"a queue before the conversation": {
			append([]string{enqueue("go"), queueOp("dequeue", ""), remove, queueOp("remove", `,"content":7`), queueOp("dequeue", `,"content":{}`)}, begun...),
			[]string{`u1 <  message user "go" [6]`, `a1 < u1 message assistant c1:Bash{"command":"ls"} toolUse 15+1 [7]`},
		},
	} {
		t.Run(name, c.check)
	}
}
