package qwen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
)

// chats is the directory of a project's sessions, and id the session that most tests have there.
const (
	chats = "projects/-srv-garden/chats/"
	id    = "7a1c0d52-3b84-4e0f-9c2d-5f6e7a8b9c0d"
)

var kit = agentstest.Kit{Agent: "qwen", Place: func(string) string { return chats + id + ".jsonl" }}

func TestSamples(t *testing.T) {
	kit.Samples(t)
}

// prompt returns a line with a prompt.
func prompt(uuid, text string) string {
	return fmt.Sprintf(`{"uuid":%q,"parentUuid":null,"sessionId":%q,"timestamp":"2026-11-20T08:00:00.000Z","type":"user",`+
		`"provenance":"real_user","cwd":"/srv/garden","message":{"role":"user","parts":[{"text":%q}]}}`, uuid, id, text)
}

// TestHome: sessions, archived ones, and the subagents of both and of none are shown; other files are not.
func TestHome(t *testing.T) {
	const archived, gone = "7a1c0d52-3b84-4e0f-9c2d-000000000001", "7a1c0d52-3b84-4e0f-9c2d-000000000002"
	h := agentstest.New(t, "qwen")
	put := func(file, text string) { h.Put("projects/-srv-garden/"+file, prompt(file, text)) }
	put("chats/"+id+".jsonl", "plain")
	put("chats/archive/"+archived+".jsonl", "archived")
	put("chats/archive/"+id+".jsonl", "an older copy")
	put("chats/notes.jsonl", "no session")
	h.Put(chats+id+".runtime.json", `{"pid":1}`)
	require.Equal(t, []string{"-srv-garden/" + archived + ".jsonl", "-srv-garden/" + id + ".jsonl"}, h.Sessions(""))
	require.Contains(t, h.Read("-srv-garden/"+id+".jsonl"), "plain")
	require.Contains(t, h.Read("-srv-garden/"+archived+".jsonl"), `"text":"archived"`)

	put("subagents/"+id+"/agent-Explore-c1.jsonl", "of the session")
	put("subagents/"+archived+"/agent-Explore-c2.jsonl", "of the archived one")
	put("subagents/"+gone+"/agent-Explore-c3.jsonl", "of none")
	h.Put("projects/-srv-garden/subagents/"+id+"/agent-Explore-c1.meta.json", `{}`)
	require.Equal(t, []string{
		"-srv-garden/" + archived + ".jsonl", "-srv-garden/" + archived + "/subagents/agent-Explore-c2.jsonl",
		"-srv-garden/" + id + ".jsonl", "-srv-garden/" + id + "/subagents/agent-Explore-c1.jsonl",
		"-srv-garden/agent-Explore-c3.jsonl",
	}, h.Sessions(""))
	require.Contains(t, h.Read("-srv-garden/"+id+"/subagents/agent-Explore-c1.jsonl"), `"id":"agent-Explore-c1"`)

	orphans := newHome(sessiontest.OpenDir(t, h.Dir))
	shown, ok := orphans.Orphan(nameOf(projectsDir, "-srv-garden/subagents/"+gone+"/agent-Explore-c3.jsonl"))
	require.True(t, ok)
	require.Equal(t, "-srv-garden/agent-Explore-c3.jsonl", shown)
	_, ok = orphans.Orphan(nameOf(projectsDir, "-srv-garden/subagents/"+id+"/agent-Explore-c1.jsonl"))
	require.False(t, ok)
}

// TestSubagentModel: the file beside a subagent's names its model, in a bill too.
func TestSubagentModel(t *testing.T) {
	h := agentstest.New(t, "qwen")
	at := "projects/-srv-garden/subagents/" + id + "/agent-Explore-c1"
	answer := fmt.Sprintf(`{"uuid":"r1","parentUuid":null,"sessionId":%q,"timestamp":"2026-11-20T08:00:00.000Z","type":"assistant","isSidechain":true,`+
		`"cwd":"/srv/garden","message":{"role":"model","parts":[{"text":"Two herons"}]},"usageMetadata":{"promptTokenCount":7}}`, id)
	h.Put(chats+id+".jsonl", prompt("p1", "Count the herons"))
	h.Put(at+ending, answer)
	name := "-srv-garden/" + id + "/subagents/agent-Explore-c1.jsonl"
	require.Contains(t, h.Read(name), `"model":"unknown"`)
	h.Put(at+factsEnding, `{"agentId":"Explore-c1","model":"qwen3-coder"}`)
	again := agentstest.Open(t, "qwen", h.Dir, sessiontest.OpenDir(t, h.Dir))
	require.Contains(t, again.Read(name), `"model":"qwen3-coder"`)
	text := storagetest.Read(t, again.Facts(), name)
	require.Contains(t, text, `"model":"qwen3-coder"`)
}

// TestNames: the path of each file in a home has the name under which it is shown.
func TestNames(t *testing.T) {
	for below, want := range map[string]string{
		"-w":                            "-w",
		"-w/chats":                      "-w",
		"-w/chats/s.jsonl":              "-w/s.jsonl",
		"-w/chats/archive/s.jsonl":      "-w/s.jsonl",
		"-w/subagents/s/agent-x.jsonl":  "-w/s/subagents/agent-x.jsonl",
		"-w/subagents/s":                "-w/s/subagents",
		"-archive/chats/archive.jsonl":  "-archive/archive.jsonl",
		"-w/chats/archive/chats/s.json": "-w/chats/s.json",
		"-w/s.jsonl":                    "-w/s",
	} {
		require.Equal(t, want, nameOf(projectsDir, below), below)
	}
	require.True(t, isPart("/home/u/.qwen/projects/-w/subagents/s/agent-x.jsonl"))
	require.False(t, isPart("/home/u/.qwen/projects/-w/chats/agent-x.jsonl"))
}

// TestUsage: thoughts are in the answer's tokens, unless the total says that they are not.
func TestUsage(t *testing.T) {
	for tokens, want := range map[string]agents.Usage{
		`{"promptTokenCount":1001,"candidatesTokenCount":40,"thoughtsTokenCount":7,"totalTokenCount":1041,"cachedContentTokenCount":600}`: {
			Input: 401, CacheRead: 600, Output: 40, Total: 1041,
		},
		`{"promptTokenCount":1001,"candidatesTokenCount":40,"thoughtsTokenCount":7,"totalTokenCount":1048}`: {Input: 1001, Output: 47, Total: 1048},
		`{"promptTokenCount":5,"candidatesTokenCount":40,"cachedContentTokenCount":9}`:                      {CacheRead: 9, Output: 40, Total: 49},
		`7`: {},
	} {
		require.Equal(t, want, usageOf(rawjson.Value(tokens)), tokens)
	}
}

// FuzzRecords checks that records in any order give a tree of whole entries, and the same one where the
// file grew.
func FuzzRecords(f *testing.F) {
	kinds := []string{
		`"type":"user","provenance":"real_user","message":{"parts":[{"text":"TEXT"},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}`,
		`"type":"user","message":{"parts":"TEXT"}`,
		`"type":"user","message":{"parts":[{"text":"t0"},{"text":"--- Content from referenced files ---"},{"text":"TEXT"}]}`,
		`"type":"user","provenance":"system","subtype":"cron","message":{"parts":[{"text":"TEXT"}]}`,
		`"type":"assistant","model":"TEXT","message":{"parts":[{"text":"TEXT","thought":true},{"text":"TEXT"}]},"usageMetadata":{"promptTokenCount":7}`,
		`"type":"assistant","message":{"parts":[{"functionCall":{"id":"c0","name":"edit","args":7}}]},"forkedFrom":{"sessionId":"TEXT"}`,
		`"type":"tool_result","message":{"parts":[{"functionResponse":{"id":"c0","response":{"output":7}}}]}`,
		`"type":"tool_result","message":{"parts":[{"functionResponse":{}},{"functionResponse":{"id":"TEXT"}}]},"toolCallResult":{"status":"error"}`,
		`"type":"system","subtype":"custom_title","systemPayload":{"customTitle":"TEXT"}`,
		`"type":"system","subtype":"rewind"`,
		`"type":"system","subtype":"at_command","systemPayload":{"userText":"TEXT"}`,
		`"type":"system","subtype":"parent_session","systemPayload":{"parentSessionId":"TEXT"}`,
		`"type":"system","subtype":"chat_compression","systemPayload":{"compressedHistory":[{"parts":[{"text":"TEXT"}]}]}`,
		`"type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_error","error_message":"TEXT"}}`,
	}
	f.Add([]byte("\x00\x05\x06\x0c\x0d\x09\x04\x02\x0a\x02\x0b\x07\x01\x03"))
	f.Fuzz(func(t *testing.T, plan []byte) {
		var file strings.Builder
		for i, step := range plan[:min(len(plan), 30)] {
			kind := kinds[int(step)%len(kinds)]
			parent := fmt.Sprint("r", int(step)/len(kinds)%6)
			text := fmt.Sprint("t", i%3)
			record := strings.ReplaceAll(kind, "TEXT", text)
			fmt.Fprintf(&file, `{"uuid":"r%d","parentUuid":%q,"sessionId":"s","cwd":"/w",%s}`+"\n", i%25, parent, record)
		}
		converter := func() *agents.Builder { return newHome(nil).Converter(agents.About{ID: "s"}, nil) }
		agentstest.Prefixes(t, converter, file.String())
	})
}

// TestLinear: the work for records is linear, also where all have one id, one parent, or many parts.
func TestLinear(t *testing.T) {
	converter := func() *agents.Builder { return newHome(nil).Converter(agents.About{ID: "s"}, nil) }
	answer := `{"uuid":%q,"parentUuid":%q,"sessionId":"s","cwd":"/w","type":"assistant","message":{"parts":[%s]}}` + "\n"
	for name, line := range map[string]func(i int) string{
		"one id":     func(int) string { return fmt.Sprintf(answer, "r", "", `{"text":"x"}`) },
		"one parent": func(i int) string { return fmt.Sprintf(answer, fmt.Sprint(i), "0", `{"text":"x"}`) },
		"a chain":    func(i int) string { return fmt.Sprintf(answer, fmt.Sprint(i), fmt.Sprint(i-1), `{"text":"x"}`) },
	} {
		sessiontest.Linear(t, 500, func(n int) int64 {
			var file strings.Builder
			for i := range n {
				file.WriteString(line(i))
			}
			require.NotEmpty(t, name)
			return agentstest.ConvertWork(t, converter, file.String()).Scanned
		})
	}
	sessiontest.Linear(t, 2000, func(n int) int64 {
		parts := strings.Repeat(`{"functionResponse":{"id":"c","response":{"output":"x"}}},`, n) + "{}"
		line := fmt.Sprintf(`{"uuid":"r","sessionId":"s","cwd":"/w","type":"tool_result","message":{"parts":[%s]}}`+"\n", parts)
		return agentstest.ConvertWork(t, converter, line).Scanned
	})
}

// TestReadOnce: a fork is converted once, as its first record names the original. A later record that names one
// changes the header.
func TestReadOnce(t *testing.T) {
	begun := func() *agents.Builder {
		return agents.NewBuilder(agents.About{ID: id, Title: "Beds"}, agents.Provider{}, newConverter)
	}
	add := func(b *agents.Builder, record string) { b.Add(nil, rawjson.Value(record), 1) }
	b := begun()
	add(b, strings.Replace(prompt("u1", "Beds"), `{`, `{"forkedFrom":{"sessionId":"original"},`, 1))
	require.Nil(t, b.Restart())
	require.Equal(t, "original", b.About.Parent)

	b = begun()
	add(b, prompt("u1", "Beds"))
	add(b, `{"uuid":"u2","parentUuid":"u1","type":"system","subtype":"parent_session","systemPayload":{"parentSessionId":"original"}}`)
	require.NotNil(t, b.Restart())
}
