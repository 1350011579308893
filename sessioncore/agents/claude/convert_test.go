package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
)

// rec returns a record of the conversation. parent may be empty.
func rec(typ, uuid, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"cwd":"/w","sessionId":"s","type":%q,"uuid":%q,"timestamp":"2026-03-30T07:13:41.000Z",%s}`,
		p, typ, uuid, rest)
}

func user(uuid, parent, text string) string {
	return rec("user", uuid, parent, fmt.Sprintf(`"message":{"role":"user","content":%q}`, text))
}

func result(uuid, parent, call, text string) string {
	return rec("user", uuid, parent, fmt.Sprintf(`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, call, text))
}

// says returns a record of an answer with one block and all of its tokens.
func says(uuid, parent, id, block string, out int) string {
	return rec("assistant", uuid, parent,
		fmt.Sprintf(`"message":{"id":%q,"role":"assistant","model":"m","content":[%s],"stop_reason":null,`+
			`"usage":{"input_tokens":3,"output_tokens":%d,"cache_read_input_tokens":5,"cache_creation_input_tokens":7}}`, id, block, out))
}

func textBlock(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

func callBlock(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"ls"}}`, id)
}

// leafOf returns a last-prompt record.
func leafOf(members string) string { return `{"type":"last-prompt","sessionId":"s",` + members + `}` }

func boundaryOf(uuid, logical, metadata string) string {
	return rec("system", uuid, "", `"subtype":"compact_boundary","logicalParentUuid":"`+logical+`","compactMetadata":{`+metadata+`}`)
}

func summaryOf(uuid, parent, text string) string {
	return rec("user", uuid, parent, `"isCompactSummary":true,"message":{"role":"user","content":"`+text+`"}`)
}

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

// TestConvert: each case of testdata/convert is shown as it says, whole and as it grows.
func TestConvert(t *testing.T) {
	agentstest.Pages(t, func(t *testing.T, file string, want []string) {
		whole, states := agentstest.Convert(t, newConverter(agents.About{ID: "s"}, nil, "").Builder, file)
		require.Equal(t, append([]string{"session s"}, want...), agentstest.Outline(t, whole))
		for _, state := range states {
			agentstest.Outline(t, state) // each is lines of whole entries
		}
		checkFile(t, "s.jsonl", file)
		checkGrowth(t, file, 400)
	})
}

// FuzzConvert: whatever a file has, what it is shown as is whole lines, each entry from lines of the file.
func FuzzConvert(f *testing.F) {
	for _, lines := range [][]string{
		{user("u1", "", "hello"), says("a1", "u1", "M", callBlock("c1"), 1), result("r1", "a1", "c1", "x"), says("a2", "a1", "M", textBlock("y"), 2)},
		{`{"type":"assistant","uuid":"a","message":{"content":[1,{"type":"text"}]}}`,
			`{"type":"user","uuid":"a","parentUuid":"a","cwd":5,"version":[],"gitBranch":{},"message":{"content":"x"}}`},
		{user("u1", "", "x"), boundaryOf("b", "u1", `"preservedSegment":{"headUuid":"u1","tailUuid":"u1"}`), summaryOf("s", "b", "y"),
			leafOf(`"leafUuid":"u1","explicit":true`)},
		{user("u1", "p", "x"), rec("progress", "p", "q", `"data":1`), rec("system", "q", "p", `"snipMetadata":{"removedUuids":["u1","p"]}`),
			user("u1", "q", "y")},
		{side(user("x1", "", "x")), side(says("x2", "x1", "X", task("c", "x"), 1)), says("a1", "", "A", task("c", "x"), 1), result("r", "a1", "c", "x")},
		{enqueue("x"), user("u1", "", "go"), enqueue("y"), queueOp("remove", ""), queueOp("remove", `,"content":"x","reason":"absorbed_mid_turn"`),
			withoutUUID(attached("", "", "y")),
			queueOp("dequeue", ""), user("u2", "u1", "y"), queueOp("popAll", "")},
		{user("u1", "", "x"), says("a1", "u1", "M", textBlock("y"), 1),
			rec("assistant", "a2", "a1", `"retractedMessageUuids":["a1","a2",1],"message":{"id":"M","content":"z"}`), leafOf(`"leafUuid":"a1"`)},
		{`{"type":"fork-context-ref","parentSessionId":"s","parentLastUuid":"p"}`, user("u1", "p", "x"),
			rec("system", "x", "u1", `"subtype":"away_summary","content":"y"`),
			rec("attachment", "f", "x", `"attachment":{"type":"file","filename":"a","content":{"file":{"content":"b"}}}`),
			`{"type":"relocated","relocatedCwd":"/x"}`},
	} {
		f.Add(strings.Join(lines, "\n"))
	}
	f.Fuzz(func(t *testing.T, file string) {
		for _, about := range []agents.About{{ID: "s", Title: "t"}, {ID: "s", Side: true}, {ID: "s", Side: true, Chain: "x1"}} {
			whole, _ := agentstest.Convert(t, newConverter(about, nil, "").Builder, file)
			agentstest.Entries(t, whole)
			if strings.HasPrefix(whole, "{") {
				require.True(t, strings.HasPrefix(whole, `{"type":"session"`))
			}
		}
	})
}
