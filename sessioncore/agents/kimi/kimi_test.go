package kimi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
)

// id is the session that most tests have, and dir its directory.
const (
	id  = "session_852450d6-a764-4e14-9191-92af01591474"
	dir = "sessions/wd_pond_1/" + id
)

var kit = agentstest.Kit{
	Agent: "kimi",
	Prepare: func(h *agentstest.Home) {
		h.Put(dir+"/state.json", `{"cwd":"/srv/pond","title":"Pond life","titleKind":"custom"}`)
	},
	Place: func(string) string { return dir + "/agents/main/wire.jsonl" },
}

func TestSamples(t *testing.T) {
	kit.Samples(t)
}

// log returns the lines of a log with one prompt.
func log(text string) string {
	return `{"type":"metadata","protocol_version":"1.5","created_at":1795885836994}` + "\n" + prompt(text)
}

// prompt returns a line with a prompt.
func prompt(text string) string {
	return fmt.Sprintf(`{"type":"context.append_message","agentId":"main","time":1795885836995,`+
		`"message":{"role":"user","content":[{"type":"text","text":%q}],"origin":{"kind":"user"}}}`, text)
}

// TestHome: sessions and their subagents are shown, with the facts of state.json; a session without a log is not,
// until it has one.
func TestHome(t *testing.T) {
	const fork = "session_852450d6-a764-4e14-9191-000000000001"
	h := agentstest.New(t, "kimi")
	h.Put(dir+"/agents/main/wire.jsonl", log("Count the herons"))
	h.Put(dir+"/agents/agent-0/wire.jsonl", log("Find herons"))
	h.Put(dir+"/agents/agent-0/tasks/t/output.log", "x")
	h.Put(dir+"/state.json", `{"cwd":"/srv/pond","title":"Fork: x","titleKind":"replaceable"}`)
	h.Put("sessions/wd_pond_1/"+fork+"/state.json", `{"cwd":"/srv/pond","title":"Frogs","forkedFrom":"`+id+`"}`)
	h.Put("session_index.jsonl", `{}`)
	shown := []string{"wd_pond_1/" + id + ".jsonl", "wd_pond_1/" + id + "/subagents/agent-0.jsonl"}
	require.Equal(t, shown, h.Sessions(""))
	require.Contains(t, h.Read(shown[0]), `"id":"`+id+`","timestamp":"2026-11-28T17:10:36.994Z","cwd":"/srv/pond","title":"Count the herons"}`)
	require.Contains(t, h.Read(shown[1]), `"id":"`+id+`-agent-0"`)
	require.Contains(t, h.Read(shown[1]), `"subagent":"subagent"`)
	home := newHome(sessiontest.OpenDir(t, h.Dir))
	require.Equal(t, "/srv/pond", home.CwdBeside(shown[0]))
	require.Equal(t, "/srv/pond", home.CwdBeside(shown[1]))
	require.Equal(t, "Frogs", home.Beside("wd_pond_1/"+fork+".jsonl"))

	before, err := h.Stat("wd_pond_1")
	require.NoError(t, err)
	h.Put("sessions/wd_pond_1/"+fork+"/agents/main/wire.jsonl", log("Count the frogs"))
	after, err := h.Stat("wd_pond_1")
	require.NoError(t, err)
	require.NotEqual(t, before.Token, after.Token)
	require.Equal(t, "wd_pond_1/"+fork+".jsonl", h.Sessions("")[0])
	require.Contains(t, h.Read("wd_pond_1/"+fork+".jsonl"), `"title":"Frogs","parentSession":"`+id+`"`)
}

// TestNames: the path of each file in a home has the name under which it is shown.
func TestNames(t *testing.T) {
	for below, want := range map[string]string{
		"wd_w":                                  "wd_w",
		"wd_w/session_s/agents/main/wire.jsonl": "wd_w/session_s.jsonl",
		"wd_w/session_s/agents/agent-0/wire.jsonl":   "wd_w/session_s/subagents/agent-0.jsonl",
		"wd_w/session_s/agents/agent-0/output.jsonl": "wd_w/session_s/agents/agent-0/output.jsonl",
	} {
		require.Equal(t, want, nameOf(sessionsDir, below), below)
	}
	require.True(t, isPart("x/agents/agent-0/wire.jsonl"))
	require.False(t, isPart("x/agents/main/wire.jsonl"))
	for name, want := range map[string]agents.About{
		"wd_w/session_s.jsonl":                 {ID: "session_s"},
		"wd_w/session_s/subagents/agent.jsonl": {ID: "session_s-agent", Side: true},
		"got/session_s/agents/main/wire.jsonl": {ID: "session_s"},
		"got/wire.jsonl":                       {ID: "wire"},
	} {
		require.Equal(t, want, newHome(nil).FactsAbout(name), name)
	}
}

// TestImage: an image in a prompt or a result is shown, as the client writes it.
func TestImage(t *testing.T) {
	const image = `{"type":"image_url","imageUrl":{"url":"data:image/png;base64,aGVyb24="}}`
	h := agentstest.New(t, "kimi")
	h.Put(dir+"/agents/main/wire.jsonl", records[0],
		`{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"see"},`+image+`],"origin":{"kind":"user"}}}`,
		`{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"c","toolCallId":"call","result":{"output":[`+image+`]}}}`)
	text := h.Read("wd_pond_1/" + id + ".jsonl")
	require.Equal(t, 2, strings.Count(text, `{"type":"image","data":"aGVyb24=","mimeType":"image/png"}`), text)
}

// records are the kinds of records that a log may have, with IDs and TEXTs.
var records = []string{
	`{"type":"metadata","protocol_version":"1.5","created_at":1795885836994}`,
	`{"type":"context.append_message","message":{"role":"user","id":"mID","content":[{"type":"text","text":"TEXT"}],"origin":{"kind":"user"}}}`,
	`{"type":"context.append_message","message":{"role":"user","content":"TEXT","origin":{"kind":"injection"}}}`,
	`{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"sID"},"time":1795885837000}`,
	`{"type":"usage.record","usage":{"inputOther":7,"output":1,"inputCacheRead":2,"inputCacheCreation":3}}`,
	`{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"sID","part":{"type":"text","text":"TEXT"}}}`,
	`{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"sID","part":{"type":"think","think":"TEXT"}}}`,
	`{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"sID","uuid":"cID","toolCallId":"call","name":"Read"}}`,
	`{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"cID","toolCallId":"call","result":{"output":"TEXT"}}}`,
	`{"type":"context.undo","count":1}`,
	`{"type":"agent.switched","base":{"line":3},"legacyUndoLine":9}`,
	`{"type":"context.clear"}`,
	`{"type":"context.apply_compaction","summary":"TEXT"}`,
	`{"type":"turn.step.interrupted","reason":"cancelled"}`,
	`{"type":"turn.ended","reason":"failed","error":{"message":"TEXT"}}`,
	`{"type":"subagent.spawned","subagentId":"agent-ID","parentToolCallId":"call"}`,
}

func newTestConverter() *agents.Builder { return newHome(nil).Converter(agents.About{ID: "s"}, nil) }

// FuzzRecords checks that records in any order give a tree of whole entries, and the same one where the
// file grew.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x01\x09\x01\x0c\x0e\x0d\x0b\x0f\x0a"))
	f.Fuzz(func(t *testing.T, plan []byte) {
		var file strings.Builder
		for i, step := range plan[:min(len(plan), 30)] {
			kind := records[int(step)%len(records)]
			id := fmt.Sprint(int(step) / len(records) % 6)
			text := fmt.Sprint("t", i%3)
			record := strings.NewReplacer("ID", id, "TEXT", text).Replace(kind)
			file.WriteString(record + "\n")
		}
		agentstest.Prefixes(t, newTestConverter, file.String())
	})
}

// TestLinear: the work for records is linear, whatever they repeat.
func TestLinear(t *testing.T) {
	for _, record := range records[1:] {
		sessiontest.Linear(t, 500, func(n int) int64 {
			var file strings.Builder
			file.WriteString(records[0] + "\n" + records[3] + "\n")
			for i := range n {
				file.WriteString(strings.ReplaceAll(record, "ID", fmt.Sprint(i)) + "\n" + record + "\n")
			}
			return agentstest.ConvertWork(t, newTestConverter, file.String()).Scanned
		})
	}
}

// TestUndo: an undo that is told twice is made once, and one of old clients by its count. What was undone is a branch.
func TestUndo(t *testing.T) {
	outline := func(lines ...string) string {
		h := agentstest.New(t, "kimi")
		h.Put(dir+"/agents/main/wire.jsonl", append([]string{records[0]}, lines...)...)
		return strings.Join(h.Outline("wd_pond_1/" + id + ".jsonl")[1:], "\n")
	}
	old := outline(prompt("one"), prompt("two"), prompt("three"), `{"type":"context.undo","count":2}`, prompt("four"))
	told := outline(prompt("one"), prompt("two"), prompt("three"), `{"type":"agent.switched","base":{"line":2},"legacyUndoLine":6}`,
		`{"type":"context.undo","count":2}`, prompt("four"))
	const branches = "l2 <  message user \"one\" [2]\nl3 < l2 message user \"two\" [3]\nl4 < l3 message user \"three\" [4]\n"
	require.Equal(t, branches+`l6 < l2 message user "four" [6]`, old)
	require.Equal(t, branches+`l7 < l2 message user "four" [7]`, told)
	cleared := outline(prompt("one"), `{"type":"context.clear"}`, prompt("two"))
	require.Equal(t, "l2 <  message user \"one\" [2]\nl4 <  message user \"two\" [4]", cleared)
}
