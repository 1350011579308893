package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/foreign"
	"sessionfs/sessioncore/storage/foreign/foreigntest"
)

// rec returns a record of the conversation. parent may be empty.
func rec(typ, uuid, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"cwd":"/w","sessionId":"s","type":%q,"uuid":%q,"timestamp":"2026-03-30T07:13:41.000Z",%s}`, p, typ, uuid, rest)
}

func user(uuid, parent, text string) string {
	return rec("user", uuid, parent, fmt.Sprintf(`"message":{"role":"user","content":%q}`, text))
}

func result(uuid, parent, call, text string) string {
	return rec("user", uuid, parent, fmt.Sprintf(`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, call, text))
}

// says returns a record of an answer with one block and all of its tokens.
func says(uuid, parent, id, block string, out int) string {
	return rec("assistant", uuid, parent, fmt.Sprintf(`"message":{"id":%q,"role":"assistant","model":"m","content":[%s],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":%d,"cache_read_input_tokens":5,"cache_creation_input_tokens":7}}`, id, block, out))
}

func textBlock(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

func callBlock(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"ls"}}`, id)
}

// convertCase is a file and the outline of the session that it is shown as.
type convertCase struct{ lines, want []string }

func (c *convertCase) check(t *testing.T) {
	file := strings.Join(c.lines, "\n") + "\n"
	whole, states := foreigntest.Convert(t, newConverter(foreign.About{ID: "s"}, newLearned()), file)
	require.Equal(t, append([]string{"session s"}, c.want...), foreigntest.Outline(t, whole))
	for _, state := range states {
		foreigntest.Outline(t, state) // each is lines of whole entries
	}
	checkFile(t, "s.jsonl", file)
	checkGrowth(t, file, 400)
}

func TestConvert(t *testing.T) {
	for name, c := range map[string]convertCase{
		"an answer of several records is one message, with the usage of the last": {
			[]string{
				user("u1", "", "hello"),
				says("a1", "u1", "M", `{"type":"thinking","thinking":"hm","signature":"x"}`, 1),
				says("a2", "a1", "M", textBlock("well"), 1),
				says("a3", "a2", "M", callBlock("c1"), 40),
				result("r1", "a3", "c1", "out"),
				says("a4", "r1", "N", textBlock("done"), 9),
			},
			[]string{
				`u1 <  message user "hello" [1]`,
				`a1 < u1 message assistant (hm) "well" c1:Bash{"command":"ls"} toolUse 15+40 [2 3 4]`,
				`r1 < a1 message toolResult Bash "out" [5]`,
				`a4 < r1 message assistant "done" stop 15+9 [6]`,
			},
		},
		"results of parallel calls follow the answer one after the other": {
			[]string{
				user("u1", "", "go"),
				says("a1", "u1", "M", callBlock("c1"), 1),
				result("r1", "a1", "c1", "one"),
				says("a2", "a1", "M", callBlock("c2"), 2),
				result("r2", "a2", "c2", "two"),
				says("a3", "r1", "N", textBlock("both"), 3),
				user("u2", "a3", "thanks"),
			},
			[]string{
				`u1 <  message user "go" [1]`,
				`a1 < u1 message assistant c1:Bash{"command":"ls"} c2:Bash{"command":"ls"} toolUse 15+2 [2 4]`,
				`r1 < a1 message toolResult Bash "one" [3]`,
				`r2 < r1 message toolResult Bash "two" [5]`,
				`a3 < r2 message assistant "both" stop 15+3 [6]`,
				`u2 < a3 message user "thanks" [7]`,
			},
		},
		"a result that comes late belongs to the end of what is there": {
			[]string{
				user("u1", "", "go"),
				says("a1", "u1", "M", callBlock("c1")+","+callBlock("c2"), 1),
				result("r1", "a1", "c1", "one"),
				says("a2", "r1", "N", textBlock("so"), 1),
				result("r2", "a1", "c2", "late"),
				user("u2", "r2", "and"),
			},
			[]string{
				`u1 <  message user "go" [1]`,
				`a1 < u1 message assistant c1:Bash{"command":"ls"} c2:Bash{"command":"ls"} toolUse 15+1 [2]`,
				`r1 < a1 message toolResult Bash "one" [3]`,
				`a2 < r1 message assistant "so" stop 15+1 [4]`,
				`r2 < a2 message toolResult Bash "late" [5]`,
				`u2 < r2 message user "and" [6]`,
			},
		},
		"records that say nothing are passed through": {
			[]string{
				`{"type":"file-history-snapshot","messageId":"x","snapshot":{}}`,
				user("u1", "", "hello"),
				rec("progress", "p1", "u1", `"data":{}`),
				rec("attachment", "p2", "p1", `"attachment":{}`),
				rec("system", "p3", "p2", `"subtype":"turn_duration"`),
				says("a1", "p3", "M", textBlock("hi"), 1),
				rec("user", "u0", "a1", `"message":{"role":"user","content":[]}`),
				user("u2", "u0", "more"),
				rec("progress", "p4", "u2", `"data":{}`),
				`{"type":"queue-operation","operation":"enqueue"}`,
			},
			[]string{
				`u1 <  message user "hello" [2]`,
				`a1 < u1 message assistant "hi" stop 15+1 [6]`,
				`u2 < a1 message user "more" [8]`,
			},
		},
		"a record with texts and results becomes several entries, in their order": {
			[]string{
				says("a1", "", "M", callBlock("c1")+","+callBlock("c2"), 1),
				rec("user", "u1", "a1", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":"two"},{"type":"text","text":"stop"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}`),
				user("u2", "u1", "go on"),
			},
			[]string{
				`a1 <  message assistant c1:Bash{"command":"ls"} c2:Bash{"command":"ls"} toolUse 15+1 [1]`,
				`u1 < a1 message toolResult Bash "one" image image/png QUJD [2]`,
				`u1.2 < u1 message toolResult Bash "two" failed [2]`,
				`u1.3 < u1.2 message user "stop" image image/png QUJD [2]`,
				`u2 < u1.3 message user "go on" [3]`,
			},
		},
		"what the client puts in is no message of the person": {
			[]string{
				rec("user", "m1", "", `"isMeta":true,"message":{"role":"user","content":"Caveat"}`),
				user("u1", "m1", "hello"),
			},
			[]string{`m1 <  custom_message "Caveat" [1]`, `u1 < m1 message user "hello" [2]`},
		},
		"what is said while the agent works follows the results": {
			[]string{
				says("a1", "", "M", callBlock("c1"), 1),
				`{"type":"queue-operation","operation":"enqueue","content":"and the tests"}`,
				result("r1", "a1", "c1", "out"),
				rec("attachment", "p1", "r1", `"attachment":{"type":"date","date":"2026-03-30"}`),
				rec("attachment", "q1", "p1", `"attachment":{"type":"queued_command","prompt":"and the tests","commandMode":"prompt"},"rendered":[]`),
				`{"type":"queue-operation","operation":"remove","content":"and the tests","reason":"absorbed_mid_turn"}`,
				rec("attachment", "q2", "q1", `"attachment":{"type":"queued_command","prompt":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}`),
				rec("attachment", "q3", "q2", `"attachment":{"type":"queued_command","prompt":"a task ended","commandMode":"task-notification"}`),
				says("a2", "q3", "N", textBlock("so"), 1),
			},
			[]string{
				`a1 <  message assistant c1:Bash{"command":"ls"} toolUse 15+1 [1]`,
				`r1 < a1 message toolResult Bash "out" [3]`,
				`q1 < r1 message user "and the tests" [5]`,
				`q2 < q1 message user "look" image image/png QUJD [7]`,
				`q3 < q2 custom_message "a task ended" [8]`,
				`a2 < q3 message assistant "so" stop 15+1 [9]`,
			},
		},
		"an error of the API": {
			[]string{
				user("u1", "", "hello"),
				rec("assistant", "a1", "u1", `"isApiErrorMessage":true,"error":"overloaded","message":{"id":"E","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"stop_reason":"stop_sequence"}`),
			},
			[]string{`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "API Error" error [2]`},
		},
		"a compaction hangs on what it summarizes": {
			[]string{
				user("u1", "", "long"),
				says("a1", "u1", "M", textBlock("talk"), 1),
				rec("system", "b1", "", `"subtype":"compact_boundary","logicalParentUuid":"a1","compactMetadata":{"trigger":"auto","preTokens":1000}`),
				rec("user", "s1", "b1", `"isCompactSummary":true,"message":{"role":"user","content":"In short"}`),
				user("u2", "s1", "on"),
			},
			[]string{
				`u1 <  message user "long" [1]`,
				`a1 < u1 message assistant "talk" stop 15+1 [2]`,
				`b1 < a1 compaction In short [3 4]`,
				`u2 < b1 message user "on" [5]`,
			},
		},
		"a compaction that keeps the last messages": {
			[]string{
				user("u1", "", "long"),
				says("a1", "u1", "M", textBlock("talk"), 1),
				user("u2", "a1", "last"),
				says("a2", "u2", "N", callBlock("c1"), 1),
				result("r2", "a2", "c1", "out"),
				rec("system", "b1", "", `"subtype":"compact_boundary","logicalParentUuid":"r2","compactMetadata":{"preTokens":1000,"preservedSegment":{"headUuid":"a2","anchorUuid":"s1","tailUuid":"r2"}}`),
				rec("user", "s1", "b1", `"isCompactSummary":true,"message":{"role":"user","content":"In short"}`),
				says("a3", "r2", "O", textBlock("so"), 1),
			},
			[]string{
				`u1 <  message user "long" [1]`,
				`a1 < u1 message assistant "talk" stop 15+1 [2]`,
				`u2 < a1 message user "last" [3]`,
				`a2 < u2 message assistant c1:Bash{"command":"ls"} toolUse 15+1 [4]`,
				`r2 < a2 message toolResult Bash "out" [5]`,
				`b1 < r2 compaction In short kept a2 [6 7]`,
				`a3 < b1 message assistant "so" stop 15+1 [8]`,
			},
		},
		"sidechains are not in it": {
			[]string{
				user("u1", "", "hello"),
				strings.Replace(user("x1", "", "sub"), `"isSidechain":false`, `"isSidechain":true`, 1),
				strings.Replace(says("x2", "x1", "X", textBlock("sub"), 1), `"isSidechain":false`, `"isSidechain":true`, 1),
				says("a1", "u1", "M", textBlock("hi"), 1),
			},
			[]string{`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [4]`},
		},
		"a parent that is not there": {
			[]string{user("u1", "gone", "hello")},
			[]string{`u1 < gone message user "hello" [1]`},
		},
		"a rewind that is pinned": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("hi"), 1), user("u2", "a1", "one way"),
				`{"type":"last-prompt","leafUuid":"a1","explicit":true}`,
			},
			[]string{
				`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`, `u2 < a1 message user "one way" [3]`,
				`leaf < a1 custom a1 [4]`,
			},
		},
		"a pin that the conversation goes on from": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("hi"), 1), user("u2", "a1", "one way"),
				leafOf(`"leafUuid":"a1","explicit":true`), user("u3", "a1", "another"),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`, `u2 < a1 message user "one way" [3]`,
				`u3 < a1 message user "another" [5]`,
			},
		},
		"a rewind that is not pinned is a branch": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("hi"), 1), user("u2", "a1", "one way"),
				`{"type":"last-prompt","leafUuid":"a1"}`, user("u3", "a1", "another"),
			},
			[]string{
				`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`, `u2 < a1 message user "one way" [3]`,
				`u3 < a1 message user "another" [5]`,
			},
		},
		"a pin that a later leaf takes away": {
			[]string{
				user("u1", "", "hello"), says("a1", "u1", "M", textBlock("hi"), 1), user("u2", "a1", "one way"),
				`{"type":"last-prompt","leafUuid":"a1","explicit":true}`, `{"type":"last-prompt","leafUuid":"u2"}`,
			},
			[]string{`u1 <  message user "hello" [1]`, `a1 < u1 message assistant "hi" stop 15+1 [2]`, `u2 < a1 message user "one way" [3]`},
		},
	} {
		t.Run(name, c.check)
	}
}

// FuzzConvert: whatever a file has, what it is shown as is whole lines, each entry from lines of the file.
func FuzzConvert(f *testing.F) {
	for _, lines := range [][]string{
		{user("u1", "", "hello"), says("a1", "u1", "M", callBlock("c1"), 1), result("r1", "a1", "c1", "x"), says("a2", "a1", "M", textBlock("y"), 2)},
		{`{"type":"assistant","uuid":"a","message":{"content":[1,{"type":"text"}]}}`, `{"type":"user","uuid":"a","parentUuid":"a","cwd":5,"version":[],"gitBranch":{},"message":{"content":"x"}}`},
		{user("u1", "", "x"), boundaryOf("b", "u1", `"preservedSegment":{"headUuid":"u1","tailUuid":"u1"}`), summaryOf("s", "b", "y"), leafOf(`"leafUuid":"u1","explicit":true`)},
		{user("u1", "p", "x"), rec("progress", "p", "q", `"data":1`), rec("system", "q", "p", `"snipMetadata":{"removedUuids":["u1","p"]}`), user("u1", "q", "y")},
		{side(user("x1", "", "x")), side(says("x2", "x1", "X", task("c", "x"), 1)), says("a1", "", "A", task("c", "x"), 1), result("r", "a1", "c", "x")},
		{enqueue("x"), user("u1", "", "go"), enqueue("y"), queueOp("remove", ""), queueOp("remove", `,"content":"x","reason":"absorbed_mid_turn"`), withoutUUID(attached("", "", "y")),
			queueOp("dequeue", ""), user("u2", "u1", "y"), queueOp("popAll", "")},
		{user("u1", "", "x"), says("a1", "u1", "M", textBlock("y"), 1), rec("assistant", "a2", "a1", `"retractedMessageUuids":["a1","a2",1],"message":{"id":"M","content":"z"}`), leafOf(`"leafUuid":"a1"`)},
		{`{"type":"fork-context-ref","parentSessionId":"s","parentLastUuid":"p"}`, user("u1", "p", "x"), rec("system", "x", "u1", `"subtype":"away_summary","content":"y"`),
			rec("attachment", "f", "x", `"attachment":{"type":"file","filename":"a","content":{"file":{"content":"b"}}}`), `{"type":"relocated","relocatedCwd":"/x"}`},
	} {
		f.Add(strings.Join(lines, "\n"))
	}
	f.Fuzz(func(t *testing.T, file string) {
		for _, about := range []foreign.About{{ID: "s", Title: "t"}, {ID: "s", Side: true}, {ID: "s", Side: true, Chain: "x1"}} {
			whole, _ := foreigntest.Convert(t, newConverter(about, newLearned()), file)
			foreigntest.Entries(t, whole)
			if strings.HasPrefix(whole, "{") {
				require.True(t, strings.HasPrefix(whole, `{"type":"session"`))
			}
		}
	})
}
