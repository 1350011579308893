package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
)

// longName is a session of an agent, whose text has TOOL, MODEL and LABEL in the places of these names.
type longName struct {
	home  string
	file  string // of a session, by its number
	names string // those that the text has
	text  string
}

// longNames are sessions of each agent that is read from files.
var longNames = []longName{
	{
		home:  ".omp/agent",
		file:  "sessions/p/2026-02-16T10-20-30-000Z_0123456789abcde%x.jsonl",
		names: "TOOL MODEL LABEL",
		text: `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z","message":{"role":"user","content":"hello"}}
{"type":"model_change","id":"b","parentId":"a","timestamp":"2026-02-16T10:20:32.000Z","model":"MODEL"}
{"type":"message","id":"c","parentId":"b","timestamp":"2026-02-16T10:20:33.000Z","message":{"role":"assistant","model":"MODEL","provider":"p","content":[{"type":"toolCall","id":"t","name":"TOOL","arguments":{"command":"ls"}}],"usage":{"input":1,"output":2}}}
{"type":"message","id":"d","parentId":"c","timestamp":"2026-02-16T10:20:34.000Z","message":{"role":"toolResult","toolCallId":"t","toolName":"TOOL","content":[{"type":"text","text":"x"}]}}
{"type":"label","id":"e","parentId":"d","timestamp":"2026-02-16T10:20:35.000Z","targetId":"a","label":"LABEL"}
`,
	},
	{
		home:  ".claude",
		file:  "projects/-w/s%x.jsonl",
		names: "MODEL",
		text: `{"parentUuid":null,"cwd":"/w","sessionId":"s","uuid":"u1","timestamp":"2026-03-30T07:13:41.000Z","type":"user","message":{"role":"user","content":"hello"}}
{"parentUuid":"u1","sessionId":"s","uuid":"u2","timestamp":"2026-03-30T07:13:42.000Z","type":"assistant","message":{"role":"assistant","id":"m","model":"MODEL","content":[{"type":"tool_use","id":"c","name":"TOOL","input":{"command":"ls"}}],"usage":{"output_tokens":2}}}
`,
	},
	{
		home:  ".codex",
		file:  "sessions/2026/03/30/rollout-2026-03-30T07-13-41-0195e5d0-7e0b-7aaa-8bbb-00000000000%x.jsonl",
		names: "TOOL MODEL",
		text: `{"timestamp":"2026-03-30T07:13:41.100Z","type":"session_meta","payload":{"id":"0195e5d0-7e0b-7aaa-8bbb-00000000000N","timestamp":"2026-03-30T07:13:41.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.104.0","source":"cli","model_provider":"openai"}}
{"timestamp":"2026-03-30T07:13:41.201Z","type":"turn_context","payload":{"turn_id":"t1","cwd":"/w","model":"MODEL"}}
{"timestamp":"2026-03-30T07:13:41.202Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}
{"timestamp":"2026-03-30T07:13:45.000Z","type":"response_item","payload":{"type":"function_call","name":"TOOL","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}
{"timestamp":"2026-03-30T07:13:45.300Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":900,"output_tokens":60,"total_tokens":960},"last_token_usage":{"input_tokens":900,"output_tokens":60,"total_tokens":960}}}}
{"timestamp":"2026-03-30T07:13:45.400Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"one"}}
`,
	},
	{
		home:  ".gemini",
		file:  "tmp/garden/chats/session-2026-10-06T09-00-d1d1d1d%x.jsonl",
		names: "TOOL MODEL",
		text: `{"sessionId":"d1d1d1dN-bbbb-4000-8000-000000000001","projectHash":"5ad8","startTime":"2026-10-06T09:00:01.000Z","lastUpdated":"2026-10-06T09:00:02.000Z","kind":"main"}
{"id":"u1","timestamp":"2026-10-06T09:00:05.000Z","type":"user","content":[{"text":"hello"}]}
{"id":"a1","timestamp":"2026-10-06T09:00:07.000Z","type":"gemini","content":"I look.","tokens":{"input":900,"output":10,"cached":0,"thoughts":15,"tool":0,"total":925},"model":"MODEL","toolCalls":[{"id":"v1","name":"TOOL","args":{"file_path":"a"},"status":"success"}]}
{"id":"fr-a1","timestamp":"2026-10-06T09:00:11.000Z","type":"user","content":[{"functionResponse":{"id":"v1","name":"TOOL","response":{"output":"leek"}}}]}
`,
	},
	{
		home:  ".copilot",
		file:  "session-state/d1d1d1d1-0000-4000-8000-00000000000%x/events.jsonl",
		names: "TOOL MODEL",
		text: `{"type":"session.start","data":{"sessionId":"d1d1d1d1-0000-4000-8000-00000000000N","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102","startTime":"2026-10-08T09:00:01.000Z","selectedModel":"m1","context":{"cwd":"/w"}},"id":"e0","timestamp":"2026-10-08T09:00:02.000Z","parentId":null}
{"type":"user.message","data":{"content":"hello","messageId":"m1"},"id":"e1","timestamp":"2026-10-08T09:00:03.000Z","parentId":"e0"}
{"type":"assistant.message","data":{"messageId":"am4","model":"MODEL","content":"I check.","toolRequests":[{"toolCallId":"c1","name":"TOOL","arguments":{"path":"a"},"type":"function"}],"outputTokens":3},"id":"e2","timestamp":"2026-10-08T09:00:04.000Z","parentId":"e1"}
{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"TOOL","arguments":{"path":"a"}},"id":"e3","timestamp":"2026-10-08T09:00:07.000Z","parentId":"e2"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"open"}},"id":"e4","timestamp":"2026-10-08T09:00:09.000Z","parentId":"e3"}
`,
	},
	{
		home:  ".qwen",
		file:  "projects/-w/chats/7a1c0d52-3b84-4e0f-9c2d-5f6e7a8b9c0%x.jsonl",
		names: "TOOL",
		text: `{"uuid":"u1","parentUuid":null,"sessionId":"7a1c0d52-3b84-4e0f-9c2d-5f6e7a8b9c0N","timestamp":"2026-11-20T08:00:00.000Z","type":"user","cwd":"/w","version":"0.24.4","message":{"role":"user","parts":[{"text":"hello"}]},"provenance":"real_user"}
{"uuid":"u2","parentUuid":"u1","sessionId":"7a1c0d52-3b84-4e0f-9c2d-5f6e7a8b9c0N","timestamp":"2026-11-20T08:00:03.000Z","type":"assistant","cwd":"/w","provenance":"assistant_output","model":"MODEL","message":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"TOOL","args":{"file_path":"a"}}}]},"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":12}}
{"uuid":"u3","parentUuid":"u2","sessionId":"7a1c0d52-3b84-4e0f-9c2d-5f6e7a8b9c0N","timestamp":"2026-11-20T08:00:04.000Z","type":"tool_result","cwd":"/w","provenance":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"TOOL","response":{"output":"x"}}}]}}
`,
	},
	{
		home:  ".kimi-code",
		file:  "sessions/wd_pond_1/session_852450d6-a764-4e14-9191-92af0159147%x/agents/main/wire.jsonl",
		names: "TOOL MODEL",
		text: `{"type":"metadata","protocol_version":"1.5","created_at":1795916112631}
{"type":"context.append_message","agentId":"main","message":{"role":"user","content":[{"type":"text","text":"hello"}],"id":"m1","toolCalls":[],"origin":{"kind":"user"}},"time":1795916112989}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"step.begin","uuid":"e1","turnId":"0","step":1},"time":1795916113042}
{"type":"llm.request","agentId":"main","kind":"loop","provider":"openai","model":"MODEL","turnStep":"0.1","time":1795916113052}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"content.part","uuid":"e2","turnId":"0","step":1,"stepUuid":"e1","part":{"type":"text","text":"Answer"}},"time":1795916113151}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"tool.call","uuid":"e3","turnId":"0","step":1,"stepUuid":"e1","toolCallId":"c1","name":"TOOL","args":{"path":"a"}},"time":1795916113251}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"tool.result","parentUuid":"e3","toolCallId":"c1","result":{"output":"x"}},"time":1795916113360}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"step.end","uuid":"e1","turnId":"0","step":1,"finishReason":"tool_use","usage":{"inputOther":401,"output":40,"inputCacheRead":600,"inputCacheCreation":0}},"time":1795916113376}
`,
	},
}

// TestLongNamesOfAgents: sessions with long names of tools, models and labels do not fill the memory, nor do they keep it.
func TestLongNamesOfAgents(t *testing.T) {
	notUnderRace(t)
	const sessions = 12
	text := strings.Repeat("x", sized(20<<20, 3<<20))
	for _, agent := range longNames {
		for _, long := range strings.Fields(agent.names) {
			t.Run(agent.home+"/"+long, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), agent.home)
				for n := range sessions {
					file := filepath.Join(dir, fmt.Sprintf(agent.file, n))
					require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
					number := fmt.Sprintf("%x", n)
					fill := strings.NewReplacer(long, text, "TOOL", "read", "MODEL", "m1", "LABEL", "good",
						"00N", "00"+number, "dN-", "d"+number+"-", "c0N", "c0"+number)
					require.NoError(t, os.WriteFile(file, []byte(fill.Replace(agent.text)), 0o600))
				}
				m := mountForTest(t, dir, func(o *daemonOptions) { o.Memory = budget.Min })
				require.Equal(t, sessions, strings.Count(string(read(t, m.path("index.jsonl"))), "\n"))
				shell(t, `ls "$1/recent"; cat "$1"/by-id/*/title "$1"/by-id/*/transcript.md | wc -c`, m.dir)
				require.Empty(t, read(t, m.path("last-error")))
				peak := m.procNumber("status", "VmHWM") - m.procNumber("status", "RssFile")
				kept := func() int { return m.procNumber("status", "VmRSS") }
				assert.Eventually(t, func() bool { return kept() <= 72<<10 }, time.Minute, time.Second)
				t.Logf("at most %d kB were resident, %d are", peak, kept())
				require.Less(t, peak, 128<<10)
			})
		}
	}
}
