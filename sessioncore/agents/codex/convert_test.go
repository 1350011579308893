package codex

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

func line(typ, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-03-30T07:13:41.000Z","type":%q,"payload":{%s}}`, typ, payload)
}

func item(payload string) string { return line("response_item", payload) }

func said(role, kind, text string) string {
	return item(fmt.Sprintf(`"type":"message","role":%q,"content":[{"type":%q,"text":%q}]`, role, kind, text))
}

func user(text string) string { return said("user", "input_text", text) }

func answered(text string) string { return said("assistant", "output_text", text) }

func call(id string) string {
	return item(fmt.Sprintf(`"type":"function_call","name":"shell","arguments":"{\"command\":\"ls\"}","call_id":%q`, id))
}

func output(id, text string) string {
	return item(fmt.Sprintf(`"type":"function_call_output","call_id":%q,"output":%q`, id, text))
}

// script is a call of the tool that runs a script, which may call other tools.
func script(id string) string {
	return item(fmt.Sprintf(`"type":"custom_tool_call","call_id":%q,"name":"exec","input":"await x"`, id))
}

// ended is the event of the end of a call.
func ended(typ, id, more string) string {
	return line("event_msg", fmt.Sprintf(`"type":%q,"call_id":%q,%s`, typ, id, more))
}

// completed is the event of an item of the program.
func completed(members string) string {
	return line("event_msg", `"type":"item_completed","item":{`+members+`}`)
}

func patched(id string, success bool, changes string) string {
	return ended("patch_apply_end", id, fmt.Sprintf(`"stdout":"patched","stderr":"","success":%t,"changes":{%s}`, success, changes))
}

// counted is the event after an answer: in all, and of it.
func counted(total, input, cached, out int) string {
	return line("event_msg", fmt.Sprintf(`"type":"token_count",`+
		`"info":{"total_token_usage":{"total_tokens":%d},`+
		`"last_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`, total, input, cached, out, input+out))
}

const meta = `{"timestamp":"2026-03-30T07:13:41.000Z","type":"session_meta",` +
	`"payload":{"id":"s","timestamp":"2026-03-30T07:13:40.000Z","cwd":"/w","cli_version":"0.104.0"}}`

// converterOf returns a converter of a rollout that stands alone.
func converterOf(t testing.TB) *agents.Builder {
	b, _ := newConverter(New(sessiontest.OpenDir(t, t.TempDir()), "/"), agents.About{ID: "s"}, nil, nil)
	return b
}

var kit = agentstest.Kit{Agent: "codex", Place: func(string) string { return filepath.Join(days, name(1)) }}

// TestConvert: each case of testdata/convert is shown as it says.
func TestConvert(t *testing.T) { kit.Pages(t) }

func TestSamples(t *testing.T) { kit.Samples(t) }

// TestRequests: the words of a person are told from the program's, wherever they stand.
func TestRequests(t *testing.T) { kit.Requests(t) }

// TestRealRollouts: each text of somebody's own rollouts is in as many entries as messages have it.
func TestRealRollouts(t *testing.T) {
	kit.Own(t, "SESSIONFS_TEST_ROLLOUTS", func(r map[string]any) any {
		payload, _ := r["payload"].(map[string]any)
		if r["type"] != "response_item" || payload["type"] != "message" {
			return nil
		}
		return payload["content"]
	})
}

// TestFailures: outputs of a patch and of commands that say that they failed, and those that say otherwise.
func TestFailures(t *testing.T) {
	for text, want := range map[string]bool{
		"apply_patch verification failed: Failed to find expected lines in a.go:\nx": true,
		"Exit code: 1\nWall time: 0 seconds\nOutput:\nno":                            true, "Exit code: -1\n": true, "Exit code: 0\nOutput:\nyes": false,
		`{"output":"no","metadata":{"exit_code":2,"duration_seconds":0.1}}`:                                     true,
		`{"output": "no", "metadata": {"exit_code": 127, "duration_seconds": 0.0}}`:                             true,
		`{"output":"yes","metadata":{"exit_code":0,"duration_seconds":0.1}}`:                                    false,
		`{"output":"the text \"metadata\":{\"exit_code\":1}}","metadata":{"exit_code":0,"duration_seconds":1}}`: false,
		"Success. Updated the following files:\nM a.go\n":                                                       false,
	} {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		require.Equal(t, want, saysFailure(quoted), text)
	}
}

// memory is a file.
type memory struct{ *strings.Reader }

func (memory) Close() error { return nil }

func (m memory) Stat() (storage.Stat, error) { return storage.Stat{}, nil }

// palette is what a fuzzed rollout is made of, besides what is no record.
var palette = []string{
	meta, strings.Replace(meta, `"id":"s"`, `"id":"parent"`, 1), user("one"), user("two"), user("<turn_aborted>"), said("developer", "input_text", "rules"),
	answered("1"), answered("2"), call("c1"), call("c2"), output("c1", "x"), output("c3", "y"), counted(100, 90, 60, 10), counted(300, 190, 0, 10),
	item(`"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"`),
	item(`"type":"reasoning","summary":[],"encrypted_content":"x"`),
	item(`"type":"web_search_call","action":{"query":"q"}`), item(`"type":"local_shell_call","call_id":"c2","action":{"type":"exec"}`),
	item(`"type":"agent_message","author":"a","content":[{"type":"input_text","text":"go on"}]`), item(`"type":"function_call_output","call_id":7}`),
	line("event_msg", `"type":"agent_reasoning","text":"hm"`), line("event_msg", `"type":"agent_message","message":"1"`),
	line("event_msg", `"type":"user_message","message":"one"`),
	line("event_msg", `"type":"web_search_end","call_id":"w","query":"q"`), line("event_msg", `"type":"web_search_end","call_id":"c1","query":"q"`),
	script("c4"), patched("exec-1", true, `"/a":{"type":"update"}`), patched("exec-2", false, `"/b":7`), patched("c1", true, ""), output("c4", "z"),
	ended("mcp_tool_call_end", "exec-3", `"invocation":{"server":"s","tool":"t","arguments":{}},"result":{"Ok":{"content":[{"type":"text","text":"y"}]}}`),
	ended("exec_command_end", "c2", `"aggregated_output":"x","exit_code":1`), ended("dynamic_tool_call_response", "c1", `"content_items":7`),
	`{"id":"b","timestamp":"2025-06-03T09:00:00.000Z","instructions":null,"git":{}}`, `{"record_type":"state"}`,
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/x</cwd>"}]}`,
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}`,
	`{"type":"function_call","name":"f","namespace":"mcp__s","arguments":"{}","call_id":"c1"}`,
	line("event_msg", `"type":"thread_rolled_back","num_turns":1`), line("event_msg", `"type":"thread_rolled_back","num_turns":3`),
	line("event_msg", `"type":"turn_aborted"`),
	line("event_msg", `"type":"error","message":"no"`), line("event_msg", `"type":"task_complete"`),
	line("turn_context", `"model":"gpt","effort":"high"`), line("turn_context", `"model":"other"`),
	"\n" + markPrefix + "1}", "\n" + markPrefix + "2}",
	line("compacted", `"message":"In short",`+
		`"replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]},`+
		`{"type":"function_call","name":"f","call_id":"c1"}]`),
	completed(`"type":"FileChange","id":"exec-4","status":"completed","changes":{"/a":{"type":"add","content":"x"},"/b":7}`),
	completed(`"type":"CommandExecution","id":"c2","cwd":"file://%zz"`), completed(`"type":"McpToolCall","error":{},"result":7`),
	completed(`"type":"UserMessage","content":[{"type":"text","text":"one"}]`), completed(`"type":"AgentMessage","content":[{"text":"1"}]`),
	completed(`"type":"Reasoning","summary_text":["hm"],"raw_content":7`), completed(`"type":"Plan","text":"1"`),
	completed(`"type":"WebSearch","id":"w","query":"q"`),
	user("<b>one</b>"), user("<tide_table>x</tide_table>"), line("event_msg", `"type":"user_message","message":"<b>one</b>"`),
	line("event_msg", `"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"one"}]}`),
	user("<goal_context>\n<objective>one</objective>\n</goal_context>"),
	line("event_msg", `"type":"thread_goal_updated","goal":{"objective":"two","createdAt":1}`),
	line("realtime_item", `"type":"transcript_segment","role":"user","text":"one"`),
	line("realtime_item", `"type":"transcript_segment","role":"assistant","text":"1"`),
}

// FuzzConvert: whatever a rollout has, its session is a tree of whole entries at each line.
func FuzzConvert(f *testing.F) {
	all := make([]byte, len(palette))
	for i := range all {
		all[i] = byte(i)
	}
	f.Add(all, all[:9], `{"type":"event_msg"}`, uint8(0))
	f.Add([]byte{0, 1, 2, 6, 255, 20}, []byte{1, 2, 6}, "\x00", uint8(1))
	f.Add([]byte{0, 20, 22, 15, 14, 30, 23, 16, 27}, []byte{}, `{"type":"response_item","payload":{"type":"x_call"}}`, uint8(0))
	f.Add(all[len(all)-9:], all[len(all)-20:], `{"type":"event_msg","payload":{"type":"item_completed","item":[]}}`, uint8(0))
	last := byte(len(palette) - 8)
	f.Add([]byte{0, last, last + 1, 5, 2, last, last + 2, 3, last + 1, last + 3, 38, 6, last + 4, last + 5, last + 6, 7, last + 7},
		[]byte{0, last, 2, 6}, "x", uint8(0))
	f.Add([]byte{255}, []byte{}, `{"type":"session_meta","payload":{"cwd":5,"cli_version":[]}}`, uint8(0))
	home := New(sessiontest.OpenDir(f, f.TempDir()), "/")
	f.Fuzz(func(t *testing.T, own, theirs []byte, other string, before uint8) {
		write := func(lines []byte) string {
			var text strings.Builder
			for i, b := range lines[:min(len(lines), 40)] {
				line := other
				if int(b) < len(palette) {
					line = strings.Replace(palette[b], "13:41", fmt.Sprintf("13:%02d", i/3%60), 1)
				}
				text.WriteString(line + "\n")
			}
			return text.String()
		}
		parent := write(theirs)
		chained := &chain{}
		for n := range int(before) {
			chained.parts = append(chained.parts, rolloutPart{path: "/x", mark: fmt.Sprintf("\n%s%d}\n", markPrefix, n+1)})
		}
		c, _ := newConverter(home, agents.About{ID: "s"}, &joined{chain: chained}, func() *lineReader {
			return newLines(func() (storage.Object, error) { return memory{strings.NewReader(parent)}, nil }, nil)
		})
		whole, states := agentstest.Convert(t, c, write(own))
		for _, state := range append(states, whole) {
			requireTree(t, state)
		}
	})
}

// requireTree fails unless each entry has an id of its own, hangs on one before it, and says where it is from.
func requireTree(t *testing.T, session string) {
	ids := map[string]bool{"": true}
	require.True(t, session == "" || strings.HasPrefix(session, `{"type":"session",`), session)
	agentstest.Entries(t, session)
	for line := range strings.Lines(session) {
		var e struct {
			Type, ID, ParentID string
			Origin             struct{ Line int }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		if e.Type == "session" {
			continue
		}
		require.True(t, ids[e.ParentID] && !ids[e.ID] && e.Origin.Line > 0, line)
		ids[e.ID] = true
	}
}

// TestParentOf: a fork or a subagent names its parent in one of several places; the first id that is not its own counts.
func TestParentOf(t *testing.T) {
	for meta, want := range map[string]struct {
		parent string
		side   bool
	}{
		`{"id":"own","forked_from_id":"a"}`:                                                    {"a", false},
		`{"id":"own","forked_from_id":"own"}`:                                                  {"", false},
		`{"id":"own","forked_from_id":"own","parent_thread_id":"b"}`:                           {"b", false},
		`{"id":"own","forked_from_id":"a","history_base":{"thread_id":"c"}}`:                   {"c", false},
		`{"id":"own","source":{"subagent":{"thread_spawn":{"parent_thread_id":"a"}}}}`:         {"a", true},
		`{"id":"own","source":{"subagent":"review"}}`:                                          {"", true},
		`{"id":"own","thread_source":"subagent","parent_thread_id":"a"}`:                       {"a", true},
		`{"id":"own","source":"cli"}`:                                                          {"", false},
		`{"id":"own","forked_from_id":7,"source":{"subagent":{"parent_thread_id":"a","x":1}}}`: {"a", true},
	} {
		parent, side := parentOf(agents.Read(rawjson.Value(meta)), "own")
		require.Equal(t, want.parent, parent, meta)
		require.Equal(t, want.side, side, meta)
	}
}
