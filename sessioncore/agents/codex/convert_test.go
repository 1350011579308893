package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
	"sessionfs/sessioncore/storage/foreign/foreigntest"
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

func patched(id string, success bool, changes string) string {
	return ended("patch_apply_end", id, fmt.Sprintf(`"stdout":"patched","stderr":"","success":%t,"changes":{%s}`, success, changes))
}

// counted is the event after an answer: in all, and of it.
func counted(total, input, cached, out int) string {
	return line("event_msg", fmt.Sprintf(`"type":"token_count","info":{"total_token_usage":{"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`, total, input, cached, out, input+out))
}

const meta = `{"timestamp":"2026-03-30T07:13:41.000Z","type":"session_meta","payload":{"id":"s","timestamp":"2026-03-30T07:13:40.000Z","cwd":"/w","cli_version":"0.104.0"}}`

// TestConvert: each case is what follows the first line of a rollout, and the outline of the session that it is shown as.
func TestConvert(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"what the model says up to a result is one message, with the tokens that follow": {
			[]string{
				user("hello"),
				item(`"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"`),
				answered("well"), call("c1"), counted(110, 100, 60, 10), output("c1", "out"), counted(110, 100, 60, 10),
				answered("done"), counted(150, 30, 0, 10),
			},
			[]string{
				`l2 <  message user "hello" [2]`,
				`l3 < l2 message assistant (hm) "well" c1:shell{"command":"ls"} toolUse 100+10 [3 4 5]`,
				`l7 < l3 message toolResult shell "out" [7]`,
				`l9 < l7 message assistant "done" stop 30+10 [9]`,
			},
		},
		"settings are recorded where they change, before what they are for": {
			[]string{
				line("turn_context", `"model":"gpt","effort":"medium"`), user("hello"),
				line("turn_context", `"model":"gpt","effort":"high"`), answered("hi"),
				line("turn_context", `"model":"other","effort":"high"`),
			},
			[]string{
				`l2 <  model_change openai-codex/gpt [2]`, `l2.2 < l2 thinking_level_change medium [2]`,
				`l3 < l2.2 message user "hello" [3]`,
				`l4.2 < l3 thinking_level_change high [4]`, `l5 < l4.2 message assistant "hi" stop [5]`,
			},
		},
		"turns that are rolled back stay as a branch": {
			[]string{
				user("<environment_context>x</environment_context>"), user("one"), answered("1"), user("two"), answered("2"),
				user("three"), answered("3"), line("event_msg", `"type":"thread_rolled_back","num_turns":2`), user("four"),
			},
			[]string{
				`l2 <  message user "<environment_context>x</environment_context>" [2]`,
				`l3 < l2 message user "one" [3]`, `l4 < l3 message assistant "1" stop [4]`,
				`l5 < l4 message user "two" [5]`, `l6 < l5 message assistant "2" stop [6]`,
				`l7 < l6 message user "three" [7]`, `l8 < l7 message assistant "3" stop [8]`,
				`l10 < l4 message user "four" [10]`,
			},
		},
		"turns that are rolled back at the end": {
			[]string{user("one"), answered("1"), user("two"), answered("2"), line("event_msg", `"type":"thread_rolled_back","num_turns":1`)},
			[]string{
				`l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" stop [3]`,
				`l4 < l3 message user "two" [4]`, `l5 < l4 message assistant "2" stop [5]`,
				`leaf < l3 custom l3 [6]`,
			},
		},
		"a compaction, and what follows it": {
			[]string{
				user("long"), answered("talk"),
				line("compacted", `"message":"In short","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"long"}]},{"type":"compaction","encrypted_content":"x"}]`),
				user("on"),
			},
			[]string{
				`l2 <  message user "long" [2]`, `l3 < l2 message assistant "talk" stop [3]`,
				`l4 < l3 compaction In short [4]`, `l4.2 < l4 message user "long" [4]`, `l5 < l4.2 message user "on" [5]`,
			},
		},
		"what tools are called with and give back": {
			[]string{
				item(`"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin Patch"`),
				item(`"type":"local_shell_call","call_id":"c2","action":{"type":"exec"}`),
				item(`"type":"web_search_call","id":"c3","action":{"query":"x"}`),
				item(`"type":"custom_tool_call_output","call_id":"c1","output":"ok"`),
				item(`"type":"local_shell_call_output","call_id":"c2","output":{"content":"no","success":false}`),
				item(`"type":"function_call_output","call_id":"c9","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,QUJD"}]`),
				item(`"type":"function_call_output","call_id":"c9","output":{"n":1}`),
			},
			[]string{
				`l2 <  message assistant c1:apply_patch{"input":"*** Begin Patch"} c2:local_shell{"type":"exec"} c3:web_search{"query":"x"} toolUse [2 3 4]`,
				`l5 < l2 message toolResult apply_patch "ok" [5]`,
				`l6 < l5 message toolResult local_shell "no" failed [6]`,
				`l7 < l6 message toolResult unknown "a" image image/png QUJD [7]`,
				`l8 < l7 message toolResult unknown "{\"n\":1}" [8]`,
			},
		},
		"what another turn says is another answer, without a message of the person before it": {
			[]string{
				user("one"), answered("1"), counted(20, 10, 0, 10), line("event_msg", `"type":"task_complete"`),
				line("event_msg", `"type":"task_started"`), counted(20, 10, 0, 10), answered("In short"), counted(40, 10, 0, 10),
				line("compacted", `"message":"In short"`),
			},
			[]string{
				`l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" stop 10+10 [3]`,
				`l8 < l3 message assistant "In short" stop 10+10 [8]`, `l10 < l8 compaction In short [10]`,
			},
		},
		"an answer that was broken off, and one that failed": {
			[]string{
				user("one"), answered("1"), line("event_msg", `"type":"turn_aborted","reason":"interrupted"`),
				user("two"), line("event_msg", `"type":"error","message":"no"`), line("event_msg", `"type":"agent_message","message":"1"`),
			},
			[]string{
				`l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" aborted [3]`,
				`l5 < l3 message user "two" [5]`, `l6 < l5 message assistant error [6]`,
			},
		},
		"thoughts that cannot be read": {
			[]string{
				user("one"), item(`"type":"reasoning","summary":[],"encrypted_content":"x"`), answered("1"),
				user("two"), item(`"type":"reasoning","summary":[],"encrypted_content":"x"`),
			},
			[]string{`l2 <  message user "one" [2]`, `l3 < l2 message assistant () "1" stop [3 4]`, `l5 < l3 message user "two" [5]`},
		},
		"what only events say, before the items that it came before": {
			[]string{
				line("event_msg", `"type":"user_message","message":"one"`), line("event_msg", `"type":"agent_reasoning","text":"hm"`), call("c1"), output("c1", "x"),
				line("event_msg", `"type":"agent_message","message":"1"`), answered("1"), user("two"), line("event_msg", `"type":"user_message","message":"two"`),
				line("event_msg", `"type":"agent_message","message":"2"`), line("event_msg", `"type":"task_complete"`), line("event_msg", `"type":"agent_message","message":"late"`),
			},
			[]string{
				`l2 <  message user "one" [2]`, `l3 < l2 message assistant (hm) c1:shell{"command":"ls"} toolUse [3 4]`, `l5 < l3 message toolResult shell "x" [5]`,
				`l7 < l5 message assistant "1" stop [7]`, `l8 < l7 message user "two" [8]`, `l10 < l8 message assistant "2" "late" stop [10 12]`,
			},
		},
		"searches": {
			[]string{
				user("one"), line("event_msg", `"type":"web_search_end","call_id":"w1","query":"q","action":{"query":"q"}`), item(`"type":"web_search_call","status":"completed","action":{"query":"q"}`),
				answered("1"), item(`"type":"tool_search_call","call_id":"t1","arguments":{"query":"x"}`), item(`"type":"tool_search_output","call_id":"t1","status":"failed","tools":[{"name":"y"}]`),
				line("event_msg", `"type":"web_search_end","call_id":"w2","query":"r"`), line("event_msg", `"type":"task_complete"`),
			},
			[]string{
				`l2 <  message user "one" [2]`, `l4 < l2 message assistant w1:web_search{"query":"q"} toolUse [4]`, `l3 < l4 message toolResult web_search "q" [3]`,
				`l5 < l3 message assistant "1" t1:tool_search{"query":"x"} toolUse [5 6]`, `l7 < l5 message toolResult tool_search "[{\"name\":\"y\"}]" failed [7]`,
				`l8 < l7 message assistant w2:web_search{"input":"r"} toolUse [8]`, `l8.2 < l8 message toolResult web_search "r" [8]`,
			},
		},
		"turns that are rolled back to before a compaction": {
			[]string{
				user("one"), answered("1"), user("two"), answered("2"),
				line("compacted", `"message":"In short","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"two"}]}]`),
				user("three"), line("event_msg", `"type":"thread_rolled_back","num_turns":2`), user("four"),
			},
			[]string{
				`l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" stop [3]`, `l4 < l3 message user "two" [4]`, `l5 < l4 message assistant "2" stop [5]`,
				`l6 < l5 compaction In short [6]`, `l6.2 < l6 message user "two" [6]`, `l7 < l6.2 message user "three" [7]`, `l9 < l3 message user "four" [9]`,
			},
		},
		"a turn that was broken off before it was answered": {
			[]string{user("one"), answered("1"), user("two"), line("event_msg", `"type":"turn_aborted"`)},
			[]string{`l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" stop [3]`, `l4 < l3 message user "two" [4]`},
		},
		"tokens before an answer, and totals alone": {
			[]string{
				user("one"), line("event_msg", `"type":"token_count","info":{"total_token_usage":{"input_tokens":15,"output_tokens":5,"total_tokens":20},"last_token_usage":{"input_tokens":15,"output_tokens":5,"total_tokens":20}}`),
				answered("1"), output("c9", "x"),
				line("event_msg", `"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"cached_input_tokens":10,"output_tokens":10,"total_tokens":40}}`),
				line("event_msg", `"type":"token_count","info":null`),
			},
			[]string{`l2 <  message user "one" [2]`, `l4 < l2 message assistant "1" stop 30+10 [4]`, `l5 < l4 message toolResult unknown "x" [5]`},
		},
		"tokens written to the cache": {
			[]string{
				user("one"), answered("1"),
				line("event_msg", `"type":"token_count","info":{"total_token_usage":{"input_tokens":20,"cached_input_tokens":4,"cache_write_input_tokens":6,"output_tokens":5,"total_tokens":25},"last_token_usage":{"input_tokens":20,"cached_input_tokens":4,"cache_write_input_tokens":6,"output_tokens":5,"total_tokens":25}}`),
				output("c9", "x"), answered("2"),
				line("event_msg", `"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"cached_input_tokens":4,"cache_write_input_tokens":9,"output_tokens":5,"total_tokens":35}}`),
			},
			[]string{`l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" stop 20+5 [3]`, `l5 < l3 message toolResult unknown "x" [5]`, `l6 < l5 message assistant "2" stop 10+0 [6]`},
		},
		"what another agent says": {
			[]string{item(`"type":"agent_message","author":"/root","content":[{"type":"input_text","text":"go on"}]`)},
			[]string{`l2 <  custom_message "go on" [2]`},
		},
		"what the program tells the model": {
			[]string{said("developer", "input_text", "rules"), user("one")},
			[]string{`l2 <  custom_message "rules" [2]`, `l3 < l2 message user "one" [3]`},
		},
		"a script whose patch is only named by an event": {
			[]string{
				user("one"), script("c1"), patched("exec-1", true, `"/a":{"type":"update"}`), patched("exec-2", true, `"/b":{"type":"add"},"/a":{"type":"delete"}`),
				patched("exec-3", false, `"/no":{}`), output("c1", "done"), patched("exec-4", true, `"/late":{}`), patched("c1", true, `"/again":{}`), answered("1"),
			},
			[]string{
				`l2 <  message user "one" [2]`, `l3 < l2 message assistant c1:exec{"input":"await x"} toolUse [3]`,
				`l7 < l3 message toolResult exec "done" {"changes":{"/a":{"type":"delete"},"/b":{"type":"add"}},"success":true} [7]`,
				`l8 < l7 message assistant exec-4:apply_patch{} toolUse [8]`,
				`l8.2 < l8 message toolResult apply_patch "patched" {"changes":{"/late":{}},"success":true} [8]`, `l10 < l8.2 message assistant "1" stop [10]`,
			},
		},
		"a patch that failed, and the results of calls that have no item": {
			[]string{
				user("one"), script("c1"), patched("exec-1", false, `"/a":{}`), call("c2"), ended("exec_command_end", "c2", `"aggregated_output":"pot","exit_code":1`),
				line("event_msg", `"type":"task_complete"`), user("two"), call("c3"), ended("exec_command_end", "c3", `"aggregated_output":"x"`), output("c3", "as the model has it"),
				ended("exec_command_end", "c3", `"aggregated_output":"late"`), call("c4"), ended("exec_command_end", "c4", `"stdout":"o","stderr":"e","exit_code":0`), answered("2"),
			},
			[]string{
				`l2 <  message user "one" [2]`, `l3 < l2 message assistant c1:exec{"input":"await x"} c2:shell{"command":"ls"} toolUse [3 5]`,
				`l4 < l3 message toolResult exec "patched" failed {"changes":{"/a":{}},"success":false} [4]`, `l6 < l4 message toolResult shell "pot" failed [6]`,
				`l8 < l6 message user "two" [8]`, `l9 < l8 message assistant c3:shell{"command":"ls"} toolUse [9]`,
				`l11 < l9 message toolResult shell "as the model has it" [11]`, `l13 < l11 message assistant c4:shell{"command":"ls"} toolUse [13]`,
				`l14 < l13 message toolResult shell "o" "e" [14]`, `l15 < l14 message assistant "2" stop [15]`,
			},
		},
		"calls that a script makes, and of which only events tell": {
			[]string{
				user("one"), script("c1"),
				ended("mcp_tool_call_end", "exec-1", `"invocation":{"server":"pantry","tool":"search","arguments":{"q":"x"}},"result":{"Ok":{"content":[{"type":"text","text":"shelf"}]}}`),
				ended("mcp_tool_call_end", "exec-2", `"invocation":{"server":"cellar","tool":"search"},"result":{"Err":"no"}`),
				ended("dynamic_tool_call_response", "exec-3", `"namespace":"codex_app","tool":"read","arguments":{"n":1},"content_items":[{"type":"inputText","text":"read"}],"success":true`),
				ended("exec_command_end", "exec-4", `"command":["ls"],"cwd":"/w","aggregated_output":"a b"`), ended("exec_command_end", "exec-5", `"source":"user_shell","aggregated_output":"mine"`),
				ended("mcp_tool_call_end", "exec-6", `"invocation":{"server":"s","tool":"t"},"result":{"Ok":{"content":[],"structuredContent":{"n":1},"isError":true}}`),
				output("c1", "done"), answered("1"),
			},
			[]string{
				`l2 <  message user "one" [2]`,
				`l3 < l2 message assistant c1:exec{"input":"await x"} exec-1:mcp__pantry__search{"q":"x"} exec-2:mcp__cellar__search{} exec-3:codex_app__read{"n":1} ` +
					`exec-4:exec_command{"command":["ls"],"type":"exec","workdir":"/w"} exec-6:mcp__s__t{} toolUse [3 4 5 6 7 9]`,
				`l4 < l3 message toolResult mcp__pantry__search "shelf" [4]`, `l5 < l4 message toolResult mcp__cellar__search "no" failed [5]`,
				`l6 < l5 message toolResult codex_app__read "read" [6]`, `l7 < l6 message toolResult exec_command "a b" [7]`,
				`l9 < l7 message toolResult mcp__s__t "{\"n\":1}" failed [9]`, `l10 < l9 message toolResult exec "done" [10]`, `l11 < l10 message assistant "1" stop [11]`,
			},
		},
		"a search that is a call like others": {
			[]string{
				item(`"type":"function_call","namespace":"web","name":"run","arguments":"{\"q\":1}","call_id":"w1"`), line("event_msg", `"type":"web_search_end","call_id":"w1","query":"q","action":{"query":"q"}`),
				output("w1", "found"), line("event_msg", `"type":"web_search_end","call_id":"w1","query":"q"`), line("event_msg", `"type":"web_search_end","call_id":"w2","query":"r"`),
				item(`"type":"function_call","namespace":"web","name":"run","arguments":"{}","call_id":"w2"`), output("w2", "found, too"),
			},
			[]string{
				`l2 <  message assistant w1:web__run{"q":1} toolUse [2]`, `l4 < l2 message toolResult web__run "found" [4]`,
				`l7 < l4 message assistant w2:web__run{} toolUse [7]`, `l8 < l7 message toolResult web__run "found, too" [8]`,
			},
		},
		"texts that events have without what only the program reads": {
			[]string{
				line("event_msg", `"type":"agent_message","message":"Nine."`), answered("Nine.\n\n<oai-mem-citation>\nM.md:1\n</oai-mem-citation>"),
				answered("Ten. <oai-mem-citation>a</oai-mem-citation>\n<proposed_plan>\nb\n</proposed_plan>\n"), line("event_msg", `"type":"agent_message","message":"Ten."`),
				answered("Open <oai-mem-citation> end"), line("event_msg", `"type":"agent_message","message":"Open"`), line("event_msg", `"type":"agent_message","message":"new"`),
				line("event_msg", `"type":"task_complete"`),
			},
			[]string{
				`l3 <  message assistant "Nine.\n\n<oai-mem-citation>\nM.md:1\n</oai-mem-citation>" ` +
					`"Ten. <oai-mem-citation>a</oai-mem-citation>\n<proposed_plan>\nb\n</proposed_plan>\n" "Open <oai-mem-citation> end" "new" stop [3 4 6 8]`,
			},
		},
		"results that belong to no call": {
			[]string{
				item(`"type":"function_call_output","id":"fco","name":"automation_update","namespace":"codex_app","output":"wake up"`),
				item(`"type":"function_call_output","call_id":"c8","name":"read","namespace":"mcp__docs","output":"x"`), item(`"type":"function_call_output","output":"of nobody"`),
			},
			[]string{`l2 <  custom_message "wake up" [2]`, `l3 < l2 message toolResult mcp__docs__read "x" [3]`, `l4 < l3 custom_message "of nobody" [4]`},
		},
		"tokens that were written to the cache": {
			[]string{
				answered("1"),
				line("event_msg", `"type":"token_count","info":{"total_token_usage":{"total_tokens":110},"last_token_usage":{"input_tokens":100,"cached_input_tokens":60,"cache_write_input_tokens":30,"output_tokens":10,"total_tokens":110}}`),
				answered("2"),
			},
			[]string{`l2 <  message assistant "1" "2" stop 100+10 [2 4]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := meta + "\n" + strings.Join(c.lines, "\n") + "\n"
			whole, states := foreigntest.Convert(t, newConverter(foreign.About{ID: "s"}, nil, nil), file)
			require.Equal(t, append([]string{"session s"}, c.want...), foreigntest.Outline(t, whole))
			for _, state := range states {
				foreigntest.Outline(t, state)
			}
			requireWhole(t, file, whole)
		})
	}
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
	item(`"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"`), item(`"type":"reasoning","summary":[],"encrypted_content":"x"`),
	item(`"type":"web_search_call","action":{"query":"q"}`), item(`"type":"local_shell_call","call_id":"c2","action":{"type":"exec"}`),
	item(`"type":"agent_message","author":"a","content":[{"type":"input_text","text":"go on"}]`), item(`"type":"function_call_output","call_id":7}`),
	line("event_msg", `"type":"agent_reasoning","text":"hm"`), line("event_msg", `"type":"agent_message","message":"1"`), line("event_msg", `"type":"user_message","message":"one"`),
	line("event_msg", `"type":"web_search_end","call_id":"w","query":"q"`), line("event_msg", `"type":"web_search_end","call_id":"c1","query":"q"`),
	script("c4"), patched("exec-1", true, `"/a":{"type":"update"}`), patched("exec-2", false, `"/b":7`), patched("c1", true, ""), output("c4", "z"),
	ended("mcp_tool_call_end", "exec-3", `"invocation":{"server":"s","tool":"t","arguments":{}},"result":{"Ok":{"content":[{"type":"text","text":"y"}]}}`),
	ended("exec_command_end", "c2", `"aggregated_output":"x","exit_code":1`), ended("dynamic_tool_call_response", "c1", `"content_items":7`),
	`{"id":"b","timestamp":"2025-06-03T09:00:00.000Z","instructions":null,"git":{}}`, `{"record_type":"state"}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/x</cwd>"}]}`,
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}`, `{"type":"function_call","name":"f","namespace":"mcp__s","arguments":"{}","call_id":"c1"}`,
	line("event_msg", `"type":"thread_rolled_back","num_turns":1`), line("event_msg", `"type":"thread_rolled_back","num_turns":3`), line("event_msg", `"type":"turn_aborted"`),
	line("event_msg", `"type":"error","message":"no"`), line("event_msg", `"type":"task_complete"`), line("turn_context", `"model":"gpt","effort":"high"`), line("turn_context", `"model":"other"`),
	line("compacted", `"message":"In short","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]},{"type":"function_call","name":"f","call_id":"c1"}]`),
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
	f.Add([]byte{255}, []byte{}, `{"type":"session_meta","payload":{"cwd":5,"cli_version":[]}}`, uint8(0))
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
		chained := &chain{lines: int64(before)}
		for n := range int64(before) { // with a line each
			chained.parts = append(chained.parts, part{path: "/x", lines: 1, lineAt: n, skipped: 1})
		}
		c := newConverter(foreign.About{ID: "s"}, chained, &lines{open: func() (storage.Object, error) {
			return memory{strings.NewReader(parent)}, nil
		}})
		whole, states := foreigntest.Convert(t, c, write(own))
		for _, state := range append(states, whole) {
			requireTree(t, state)
		}
	})
}

// requireTree fails unless each entry has an id of its own, hangs on one before it, and says where it is from.
func requireTree(t *testing.T, session string) {
	ids := map[string]bool{"": true}
	require.True(t, session == "" || strings.HasPrefix(session, `{"type":"session",`), session)
	foreigntest.Entries(t, session)
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
