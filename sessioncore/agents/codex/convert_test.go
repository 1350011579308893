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

// line returns a record of a type with the members of its payload.
func line(typ, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-03-30T07:13:41.000Z","type":%q,"payload":{%s}}`, typ, payload)
}

func item(payload string) string { return line("response_item", payload) }

// said returns a message of a role, with one text of a type.
func said(role, textType, text string) string {
	return item(fmt.Sprintf(`"type":"message","role":%q,"content":[{"type":%q,"text":%q}]`, role, textType, text))
}

func user(text string) string { return said("user", "input_text", text) }

func answered(text string) string { return said("assistant", "output_text", text) }

// call returns a call of a shell's command.
func call(id string) string {
	return item(fmt.Sprintf(`"type":"function_call","name":"shell","arguments":"{\"command\":\"ls\"}","call_id":%q`, id))
}

// output returns the result of a call.
func output(id, text string) string {
	return item(fmt.Sprintf(`"type":"function_call_output","call_id":%q,"output":%q`, id, text))
}

// script is a call of the tool that runs a script, which may call other tools.
func script(id string) string {
	return item(fmt.Sprintf(`"type":"custom_tool_call","call_id":%q,"name":"exec","input":"await x"`, id))
}

// ended is the event of the end of a call, with more members.
func ended(typ, id, more string) string {
	return line("event_msg", fmt.Sprintf(`"type":%q,"call_id":%q,%s`, typ, id, more))
}

// completed is the event of an item of the program.
func completed(members string) string {
	return line("event_msg", `"type":"item_completed","item":{`+members+`}`)
}

// patched is the event of the end of a patch.
func patched(id string, isSuccess bool, changes string) string {
	members := fmt.Sprintf(`"stdout":"patched","stderr":"","success":%t,"changes":{%s}`, isSuccess, changes)
	return ended("patch_apply_end", id, members)
}

// counted is the event with the tokens after an answer: total is the number so far, the others are the answer's.
func counted(total, input, cached, out int) string {
	last := fmt.Sprintf(`{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"total_tokens":%d}`,
		input, cached, out, input+out)
	info := fmt.Sprintf(`"info":{"total_token_usage":{"total_tokens":%d},"last_token_usage":%s}`, total, last)
	return line("event_msg", `"type":"token_count",`+info)
}

const meta = `{"timestamp":"2026-03-30T07:13:41.000Z","type":"session_meta",` +
	`"payload":{"id":"s","timestamp":"2026-03-30T07:13:40.000Z","cwd":"/w","cli_version":"0.104.0"}}`

// converterOf returns a converter of a rollout that stands alone.
func converterOf(t testing.TB) *agents.Builder {
	home := New(sessiontest.OpenDir(t, t.TempDir()), "/")
	b, _ := newConverter(home, agents.About{ID: "s"}, nil, nil)
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

// memory is an open file with a text.
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
	f.Fuzz(func(t *testing.T, own, theirs []byte, other string, parts uint8) {
		parent := rolloutOf(theirs, other)
		file := &joined{chain: chainOfMarks(int(parts))}
		openParent := func() *lineReader {
			open := func() (storage.Object, error) {
				return memory{strings.NewReader(parent)}, nil
			}
			return newLines(open, nil)
		}
		b, _ := newConverter(home, agents.About{ID: "s"}, file, openParent)
		whole, states := agentstest.Convert(t, b, rolloutOf(own, other))
		for _, state := range append(states, whole) {
			requireTree(t, state)
		}
	})
}

// rolloutOf returns a rollout of lines of the palette, by their indexes, with a time that grows. Other indexes stand for
// the line other.
func rolloutOf(indexes []byte, other string) string {
	const maxLines = 40 // else a run takes too long
	var text strings.Builder
	for i, index := range indexes[:min(len(indexes), maxLines)] {
		line := other
		if int(index) < len(palette) {
			second := fmt.Sprintf("13:%02d", i/3%60)
			line = strings.Replace(palette[index], "13:41", second, 1)
		}
		text.WriteString(line + "\n")
	}
	return text.String()
}

// chainOfMarks returns a chain of n parts, of which only the marks count.
func chainOfMarks(n int) *chain {
	c := &chain{}
	for i := range n {
		c.parts = append(c.parts, rolloutPart{
			path: "/x",
			mark: fmt.Sprintf("\n%s%d}\n", markPrefix, i+1),
		})
	}
	return c
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
		require.True(t, ids[e.ParentID], line)
		require.False(t, ids[e.ID], line)
		require.Positive(t, e.Origin.Line, line)
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
