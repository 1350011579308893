package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
)

// rec returns a record of the conversation with the members in rest. parent may be empty.
func rec(typ, uuid, parent, rest string) string {
	parentUUID := "null"
	if parent != "" {
		parentUUID = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"cwd":"/w","sessionId":"s","type":%q,%s,"uuid":%q,`+
		`"timestamp":"2026-03-30T07:13:41.000Z"}`, parentUUID, typ, rest, uuid)
}

// user returns a message of the person.
func user(uuid, parent, text string) string {
	message := fmt.Sprintf(`"message":{"role":"user","content":%q}`, text)
	return rec("user", uuid, parent, message)
}

// result returns a record with the result of a call.
func result(uuid, parent, call, text string) string {
	block := fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%q}`, call, text)
	return rec("user", uuid, parent, `"message":{"role":"user","content":[`+block+`]}`)
}

// says returns a record of an answer, the message id, with one block and all of its tokens, of which out are output.
func says(uuid, parent, id, block string, out int) string {
	usage := fmt.Sprintf(`{"input_tokens":3,"output_tokens":%d,"cache_read_input_tokens":5,"cache_creation_input_tokens":7}`, out)
	message := fmt.Sprintf(`{"id":%q,"role":"assistant","model":"m","content":[%s],"stop_reason":null,"usage":%s}`, id, block, usage)
	return rec("assistant", uuid, parent, `"message":`+message)
}

func textBlock(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

// callBlock returns a block with the call of a command.
func callBlock(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"ls"}}`, id)
}

// leafOf returns a last-prompt record.
func leafOf(members string) string { return `{"type":"last-prompt","sessionId":"s",` + members + `}` }

// boundaryOf returns the boundary of a compaction, which hangs on the record logical, with members of its metadata.
func boundaryOf(uuid, logical, metadata string) string {
	compaction := `"subtype":"compact_boundary","logicalParentUuid":"` + logical + `","compactMetadata":{` + metadata + `}`
	return rec("system", uuid, "", compaction)
}

// summaryOf returns the summary of a compaction, which hangs on its boundary.
func summaryOf(uuid, parent, text string) string {
	return rec("user", uuid, parent, `"isCompactSummary":true,"message":{"role":"user","content":"`+text+`"}`)
}

// side returns a record as that of a subagent.
func side(record string) string {
	return strings.Replace(record, `"isSidechain":false`, `"isSidechain":true`, 1)
}

var kit = agentstest.Kit{Agent: "claude", Place: func(sample string) string { return "projects/-w/" + sample }}

// TestConvert: each case of testdata/convert is shown as it says, whole and as it grows.
func TestConvert(t *testing.T) { kit.Pages(t) }

func TestSamples(t *testing.T) { kit.Samples(t) }

// TestRequests: the words of a person are told from the client's, wherever they stand.
func TestRequests(t *testing.T) { kit.Requests(t) }

// TestRealFiles: each text of somebody's own files is in as many entries as records have it.
func TestRealFiles(t *testing.T) {
	kit.Own(t, "SESSIONFS_CLAUDE_FILES", func(r map[string]any) any {
		if r["type"] == "user" || r["type"] == "assistant" {
			return r["message"]
		}
		attachment, _ := r["attachment"].(map[string]any)
		return attachment["prompt"]
	})
}

// FuzzConvert: whatever a file has, its sessions are whole lines.
func FuzzConvert(f *testing.F) {
	agentstest.Seeds(f, func(file string) { f.Add(file) })
	f.Add(`{"type":"assistant","uuid":"a","message":{"content":[1,{"type":"text"}]}}` + "\n" +
		`{"type":"user","uuid":"a","parentUuid":"a","cwd":5,"version":[],"gitBranch":{},"message":{"content":"x"}}`)
	kinds := []agents.About{
		{ID: "s", Title: "t"},
		{ID: "s", Side: true},
		{ID: "s", Side: true, Chain: "x1"},
	}
	f.Fuzz(func(t *testing.T, file string) {
		for _, about := range kinds {
			b := newConverter(about, nil, "").Builder
			whole, _ := agentstest.Convert(t, b, file)
			agentstest.Entries(t, whole)
			if strings.HasPrefix(whole, "{") {
				require.True(t, strings.HasPrefix(whole, `{"type":"session"`))
			}
		}
	})
}
