package view

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

const (
	testImage = "d5e9708f929211b07a346e9be72de4357afb42e14b5ee48d84adb432e0622e74"
	asks      = `{"role":"assistant","provider":"p","model":"m","content":[`
	assistant = "\n## Assistant · 2026-01-05 09:00:00 · e0 · `p/m`\n"
)

// TestMessagesInTranscripts: each role and each kind of block, in both spellings, reads as it should.
func TestMessagesInTranscripts(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{`{"role":"user","content":"Hello,\n\n*you*."}`, "\n## User · 2026-01-05 09:00:00 · e0\n\nHello,\n\n*you*.\n"},
		{`{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`, "\n## User · 2026-01-05 09:00:00 · e0\n\none\n\ntwo\n"},
		{`{"role":"user","synthetic":true,"content":"go on"}`, "\n## User (automatic) · 2026-01-05 09:00:00 · e0\n\ngo on\n"},
		{`{"role":"developer","content":"rules"}`, "\n## Developer · 2026-01-05 09:00:00 · e0\n\nrules\n"},
		{`{"role":"user","content":[]}`, ""},
		{`{"role":"user","content":42}`, "\n## User · 2026-01-05 09:00:00 · e0\n\n```\n42\n```\n"},
		{`{"role":"user","content":{"type":"text","text":"an object"}}`, "\n## User · 2026-01-05 09:00:00 · e0\n\nan object\n"},
		{`{"role":"martian","content":"beep"}`, "\n## Message · 2026-01-05 09:00:00 · e0 · `martian`\n\nbeep\n"},
		{`"only text"`, "\n## Message · 2026-01-05 09:00:00 · e0\n\n```\nonly text\n```\n"},
		{`null`, ""},
		{asks + `{"type":"thinking","thinking":"Hm.\n\n# So"},{"type":"text","text":"Yes."}]}`, assistant + "\n> *Thinking*\n>\n> Hm.\n>\n> ### So\n\nYes.\n"},
		{asks + `{"type":"thinking","thinking":"","thinkingSignature":"x"},{"type":"redacted_thinking","data":"AAAA"}]}`, ""},
		{asks + `],"stopReason":"aborted","errorMessage":"Request <was> aborted."}`, assistant + "\n*Stopped:* `aborted` Request \\<was\\> aborted.\n"},
		{asks + `],"stop_reason":"tool_use"}`, ""},
		{`{"role":"assistant","content":"plain","model":"m"}`, "\n## Assistant · 2026-01-05 09:00:00 · e0 · `m`\n\nplain\n"},
		{`{"role":"assistant","content":"plain"}`, "\n## Assistant · 2026-01-05 09:00:00 · e0\n\nplain\n"},
		{asks + `{"type":"toolCall","name":"bash","arguments":{"command":"ls -l\nid","_i":"Looking *around*"}}]}`,
			assistant + "\n**`bash`** — Looking \\*around\\*\n\n```sh\nls -l\nid\n```\n"},
		{asks + `{"type":"tool_use","name":"read","input":{"path":"a b.go"}}]}`, assistant + "\n**`read`**\n\n```\na b.go\n```\n"},
		{asks + `{"type":"tool_call","name":"edit","intent":"Mending","arguments":{"path":"a.go","new":"x\n` + "```" + `\n"}}]}`,
			assistant + "\n**`edit`** — Mending\n\n````\npath: a.go\nnew:\n  x\n  ```\n````\n"},
		{asks + `{"type":"toolCall","name":"Bash","arguments":{"description":"Look","command":"ls","timeout":5000}}]}`,
			assistant + "\n**`Bash`** — Look\n\n```sh\nls\n```\n\n*timeout:* `5000`\n"},
		{asks + `{"type":"toolCall","name":"shell","arguments":{"command":["bash","-lc","a\nb"],"work_dir":"/w"}}]}`,
			assistant + "\n**`shell`**\n\n```sh\na\nb\n```\n\n*work\\_dir:* `/w`\n"},
		{asks + `{"type":"toolCall","name":"shell","arguments":{"command":["ls","-l"]}}]}`,
			assistant + "\n**`shell`**\n\n```\ncommand: [\"ls\",\"-l\"]\n```\n"},
		{asks + `{"type":"toolCall","name":"Task","arguments":{"description":"Look","prompt":"go"}}]}`,
			assistant + "\n**`Task`**\n\n```\ndescription: Look\nprompt: go\n```\n"},
		{asks + `{"type":"toolCall","name":"todo","arguments":{}}]}`, assistant + "\n**`todo`**\n"},
		{asks + `{"type":"functionCall","name":"f","arguments":"{\"a\":1}"}]}`, assistant + "\n**`f`**\n\n```\n{\"a\":1}\n```\n"},
		{asks + `{"type":"toolCall"}]}`, assistant + "\n**`?`**\n"},
		{asks + `{"type":"anthropicServerTool","block":{"type":"server_tool_use","name":"web_search","input":{"query":"tides"}}}]}`,
			assistant + "\n**`web_search`**\n\n```\ntides\n```\n"},
		{asks + `{"type":"fallback","to":{"model":"m2"}}]}`, assistant + "\n*Model after a fallback:* `m2`\n"},
		{asks + `{"type":"new thing","x":[1]}]}`, assistant + "\n```\ntype: new thing\nx: [1]\n```\n"},
		{`{"role":"toolResult","toolName":"apply_patch","content":[{"type":"text","text":"{\"output\":\"a\\nb\",\"metadata\":{\"exit_code\":1}}"}]}`,
			"\n## Tool result · 2026-01-05 09:00:00 · e0\n\n**Result** · `apply_patch` · 09:00:00 · e0\n\n```\na\nb\n```\n\n*Exit status* `1`\n"},
		{`{"role":"toolResult","content":"{\"output\":7}"}`,
			"\n## Tool result · 2026-01-05 09:00:00 · e0\n\n**Result** · 09:00:00 · e0\n\n```\n{\"output\":7}\n```\n"},
		{`{"role":"toolResult","toolName":"bash","toolCallId":"c","content":[{"type":"text","text":"out\n"}],"isError":true}`,
			"\n## Tool result · 2026-01-05 09:00:00 · e0\n\n**Result** · `bash` · 09:00:00 · e0 · **error**\n\n```\nout\n```\n"},
		{`{"role":"tool_result","tool_name":"bash","tool_call_id":"c","content":"out","is_error":false}`,
			"\n## Tool result · 2026-01-05 09:00:00 · e0\n\n**Result** · `bash` · 09:00:00 · e0\n\n```\nout\n```\n"},
		{`{"role":"toolResult","toolName":"x","content":[]}`,
			"\n## Tool result · 2026-01-05 09:00:00 · e0\n\n**Result** · `x` · 09:00:00 · e0\n\n*No output.*\n"},
		{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"out"}]}`,
			"\n## User · 2026-01-05 09:00:00 · e0\n\n**Result** · 09:00:00\n\n```\nout\n```\n"},
		{`{"role":"user","content":[{"type":"image","data":"blob:sha256:` + testImage + `","mimeType":"image/png"}]}`,
			"\n## User · 2026-01-05 09:00:00 · e0\n\n![Image: image/png](../../../blobs/" + testImage + ")\n"},
		{`{"role":"user","content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}`,
			"\n## User · 2026-01-05 09:00:00 · e0\n\n*An image in the entry,* `image/png` `14 bytes` [the entry](entries/e0.json)\n"},
		{`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lG"}}]}`,
			"\n## User · 2026-01-05 09:00:00 · e0\n\n*An image in the entry,* `image/gif` `6 bytes` [the entry](entries/e0.json)\n"},
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"blob:sha256:` + testImage + `"}}]}`,
			"\n## User · 2026-01-05 09:00:00 · e0\n\n![Image: ](../../../blobs/" + testImage + ")\n"},
		{`{"role":"user","content":[{"type":"image","data":"blob:sha256:../../x","mimeType":"](x)"}]}`,
			"\n## User · 2026-01-05 09:00:00 · e0\n\n*An image in the entry,* `](x)` `21 bytes` [the entry](entries/e0.json)\n"},
		{`{"role":"bashExecution","command":"make","output":"no rule","exitCode":2,"truncated":true,"excludeFromContext":true}`,
			"\n## User ran a command · 2026-01-05 09:00:00 · e0\n\n```sh\nmake\n```\n\n```\nno rule\n```\n\n*Exit status* `2`\n\n" +
				"*The output was truncated when it was recorded.*\n\n*The model was not told.*\n"},
		{`{"role":"pythonExecution","code":"print(1)","output":"1\n","exitCode":0,"cancelled":true}`,
			"\n## User ran Python · 2026-01-05 09:00:00 · e0\n\n```python\nprint(1)\n```\n\n```\n1\n```\n\n*Cancelled.*\n"},
		{`{"role":"custom","customType":"ci","content":"green","display":true}`, "\n## Extension · 2026-01-05 09:00:00 · e0 · `ci`\n\ngreen\n"},
		{`{"role":"hookMessage","customType":"ci","content":"green","display":false}`, "\n*Not displayed:* `ci` [the entry](entries/e0.json)\n"},
		{`{"role":"fileMention","files":[{"path":"a.go","content":"x"},{"path":"big","skippedReason":"tooLarge"}]}`,
			"\n## Files that the user mentioned · 2026-01-05 09:00:00 · e0\n\n*File* `a.go`\n\n```\nx\n```\n\n*File that was not read* `big` `tooLarge`\n"},
		{`{"role":"branchSummary","fromId":"x9","summary":"Left it."}`,
			"\n## Branch summary · 2026-01-05 09:00:00 · e0\n\n*What happened on the branch that was left at entry* `x9`\n\nLeft it.\n"},
		{`{"role":"compactionSummary","summary":"All.","tokensBefore":12}`,
			"\n## Compaction · 2026-01-05 09:00:00 · e0\n\n" +
				"*The model goes on from this summary of what was said before, 12 tokens, and from the turns that were kept.*\n\nAll.\n"},
	} {
		require.Equal(t, c.want, transcriptBody(t, sessiontest.MessageLine(0, c.message)), c.message)
	}
}

// TestEntriesInTranscripts: entries that are no messages, in both dialects.
func TestEntriesInTranscripts(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{`"type":"model_change","model":"p/m"`, "\n*Model:* `p/m`\n"},
		{`"type":"model_change","model":"p/m","role":"smol"`, "\n*Model for* `smol` `p/m`\n"},
		{`"type":"model_change","provider":"p","model_id":"m"`, "\n*Model:* `p/m`\n"},
		{`"type":"thinking_level_change","thinkingLevel":null`, "\n*Thinking level:* `off`\n"},
		{`"type":"thinking_level_change","thinking_level":"high"`, "\n*Thinking level:* `high`\n"},
		{`"type":"service_tier_change","serviceTier":{"openai":"flex"}`, "\n*Service tier:* `{\"openai\":\"flex\"}`\n"},
		{`"type":"mode_change","mode":"plan"`, "\n*Mode:* `plan`\n"},
		{`"type":"title_change","title":"A ` + "`" + `title"`, "\n*Title:* ``A `title``\n"},
		{`"type":"session_info","name":"A name"`, "\n*Title:* `A name`\n"},
		{`"type":"label","targetId":"e0","label":"here"`, "\n*Label* `here` *on entry* `e0`\n"},
		{`"type":"label","target_id":"e0"`, "\n*Label taken from entry* `e0`\n"},
		{`"type":"mcp_tool_selection","selectedToolNames":["a","b"]`, "\n*Tools:* `a, b`\n"},
		{`"type":"ttsr_injection","injectedRules":["r"]`, "\n*Rules brought to mind:* `r`\n"},
		{`"type":"session_init","tools":["read"],"systemPrompt":"x","task":"y"`,
			"\n*A task for a subagent, with the tools* `read` [system prompt and task](entries/a%20%28b%29%2525.json)\n"},
		{`"type":"reset_boundary"`, "\n*The context was cleared.*\n"},
		{`"type":"archive","targetId":"e0","archived":true`, "\n*Archived, with all that follows it, entry* `e0`\n"},
		{`"type":"archive","targetId":"e0","archived":false`, "\n*Brought back from the archive, with all that follows it, entry* `e0`\n"},
		{`"type":"branch_summary","fromId":"e0","summary":"","details":{"kind":"discarded-entry-branch"}`, "\n*Without a summary was left entry* `e0`\n"},
		{`"type":"compaction","summary":"","short_summary":"Short.","tokens_before":7,"first_kept_entry_id":"e0"`,
			"\n## Compaction · 2026-01-05 09:00:01 · `a (b)%25`\n\n" +
				"*The model goes on from this summary of what was said before, 7 tokens, and from the turns that were kept.*\n\nShort.\n"},
		{`"type":"branch","from_id":"e0","summary":"S"`,
			"\n## Branch summary · 2026-01-05 09:00:01 · `a (b)%25`\n\n*What happened on the branch that was left at entry* `e0`\n\nS\n"},
		{`"type":"custom_message","custom_type":"ci","content":[{"type":"text","text":"green"}]`,
			"\n## Extension · 2026-01-05 09:00:01 · `a (b)%25` · `ci`\n\ngreen\n"},
		{`"type":"custom","customType":"x","data":{"big":"state"}`, ""},
		{`"type":"custom_info","custom_type":"x"`, ""},
		{`"type":"sessionfs/<new>"`, "\n*An entry of type* `sessionfs/<new>` [the entry](entries/a%20%28b%29%2525.json)\n"},
		{`"type":7`, "\n*An entry of type* [the entry](entries/a%20%28b%29%2525.json)\n"},
	} {
		line := `{"id":"a (b)%","parentId":null,"timestamp":"2026-01-05T09:00:01.000Z",` + c.fields + "}\n"
		require.Equal(t, c.want, transcriptBody(t, line), c.fields)
	}
}

// TestTurns: a heading for each turn, and what belongs together under one.
func TestTurns(t *testing.T) {
	call := func(id, path string) string {
		return fmt.Sprintf(`{"type":"toolCall","id":"%s","name":"read","arguments":{"path":"%s"}}`, id, path)
	}
	body := transcriptBody(t,
		sessiontest.MessageLine(0, `{"role":"user","content":"q"}`),
		sessiontest.MessageLine(1, `{"role":"user","content":"and"}`),
		sessiontest.MessageLine(2, asks+`{"type":"text","text":"- a list"},`+
			call("1", "/a/very/long/path/to/some/directory/that/goes/on/and/on/until/one.go")+","+call("2", "two.go")+"]}"),
		sessiontest.MessageLine(3, `{"role":"toolResult","toolName":"read","toolCallId":"2","content":"2"}`),
		sessiontest.MessageLine(4, `{"role":"toolResult","toolName":"read","toolCallId":"1","content":"1"}`),
		sessiontest.MessageLine(5, asks+`{"type":"text","text":"    not a part of the list"}]}`),
		sessiontest.MessageLine(6, asks+call("3", "three.go")+"]}"),
		sessiontest.MessageLine(7, `{"role":"toolResult","toolName":"read","toolCallId":"3","content":"3"}`),
		sessiontest.MessageLine(8, `{"role":"assistant","model":"other","content":"me too"}`),
		sessiontest.MessageLine(9, `{"role":"assistant","model":"other","content":"  - and more"}`),
	)
	require.Equal(t, "\n## User · 2026-01-05 09:00:00 · e0\n\nq\n\n## User · 2026-01-05 09:00:01 · e1\n\nand\n\n"+
		"## Assistant · 2026-01-05 09:00:02 · e2 · `p/m`\n\n- a list\n\n"+
		"**`read`**\n\n```\n/a/very/long/path/to/some/directory/that/goes/on/and/on/until/one.go\n```\n\n**`read`**\n\n```\ntwo.go\n```\n\n"+
		"**Result** · `read` · `two.go` · 09:00:03 · e3\n\n```\n2\n```\n\n"+
		"**Result** · `read` · `…long/path/to/some/directory/that/goes/on/and/on/until/one.go` · 09:00:04 · e4\n\n```\n1\n```\n\n"+
		"*09:00:05 · e5*\n\nnot a part of the list\n\n*09:00:06 · e6*\n\n**`read`**\n\n```\nthree.go\n```\n\n"+
		"**Result** · `read` · 09:00:07 · e7\n\n```\n3\n```\n\n"+
		"## Assistant · 2026-01-05 09:00:08 · e8 · `other`\n\nme too\n\n*09:00:09 · e9*\n\n- and more\n", body)
}

func TestTranscriptHeads(t *testing.T) {
	head := func(header string, lines ...string) string {
		s := newTestSession(t, header+"\n"+strings.Join(lines, ""))
		snap := sessiontest.Snapshot(t, s.session)
		checkTranscript(t, snap, sessiontest.Leaf(t, snap))
		text, _ := transcriptOf(t, snap, sessiontest.Leaf(t, snap), testLinks)
		head, _, _ := strings.Cut(string(text), "\n\n## ")
		return strings.TrimSuffix(head, "\n")
	}
	require.Empty(t, head(`{"type":"session","version":3,"id":"s"}`), "the first prompt will be the title")
	note := `{"type":"model_change","id":"m","parentId":null,"model":"p/m"}` + "\n"
	require.Equal(t, "# Session s\n\nSession `s`, times in `UTC`.\n\n*Model:* `p/m`", head(`{"type":"session","version":3,"id":"s"}`, note))
	require.Equal(t, "# Session\n\nSession `?`, times in `UTC`.\n\n*Model:* `p/m`", head(`{"type":"session","version":3,"id":""}`, note))
	require.Equal(t, "# A \\<b\\> \\# ␛ title\n\nSession `s` in ``/w`\u007b``, begun 2026-01-05 09:00:00 UTC.",
		head(`{"type":"session","version":3,"id":"s","title":"A <b>\r\n# \u001b title","cwd":"/w`+"`"+`{","timestamp":"2026-01-05T09:00:00Z"}`,
			sessiontest.MessageLine(0, `{"role":"user","content":"q"}`)))
	require.Equal(t, "# First line\n\nSession `s`, times in `UTC`.",
		head(`{"type":"session","version":3,"id":"s","title":7}`, sessiontest.MessageLine(0, `{"role":"user","content":[{"type":"image"}]}`),
			sessiontest.MessageLine(1, `{"role":"user","content":[{"type":"text","text":"\n\nFirst line\nsecond"}]}`)))
	require.Equal(t, "# Slot\n\nSession `s`, times in `UTC`.",
		head(`{"type":"title","v":1,"title":"Slot","updatedAt":"","pad":""}`+"\n"+`{"type":"session","version":3,"id":"s","title":"old"}`))
}

// TestLongOutputIsCut: head and tail are shown, with a link to the entry between them.
func TestLongOutputIsCut(t *testing.T) {
	sessiontest.NotUnderRace(t)
	output := strings.Repeat(`a line of output\n`, 500_000/17)
	body := transcriptBody(t, sessiontest.MessageLine(0, `{"role":"toolResult","toolName":"bash","content":[{"type":"text","text":"first\n`+output+`last"}]}`))
	require.Less(t, len(body), 8<<10)
	require.Contains(t, body, "```\nfirst\na line of output\n")
	require.Contains(t, body, "a line of output\n```\n\n*… 523 KB left out:* [the whole entry](entries/e0.json)\n\n```\na line")
	require.True(t, strings.HasSuffix(body, "a line of output\nlast\n```\n"))
	// Prose is not.
	prose := strings.Repeat(`some words. `, 80_000)
	require.Equal(t, "\n## User · 2026-01-05 09:00:00 · e0\n\n"+strings.TrimSpace(prose)+"\n",
		transcriptBody(t, sessiontest.MessageLine(0, `{"role":"user","content":"`+prose+`"}`)))
	// Unless it is absurd.
	body = transcriptBody(t, sessiontest.MessageLine(0, `{"role":"user","content":"`+prose+prose+`"}`))
	require.Less(t, len(body), maxProse+1000)
	require.True(t, strings.HasSuffix(body, "\n\n*Not all of it is shown:* [the whole entry](entries/e0.json)\n"))
	// Nor is base64 ever shown.
	body = transcriptBody(t, sessiontest.MessageLine(0, `{"role":"toolResult","content":[{"type":"text","text":"`+strings.Repeat("iVBORw0KGgo", 500)+`"}]}`))
	require.Less(t, len(body), 500)
	// Many small ones come to an end too.
	body = transcriptBody(t, sessiontest.MessageLine(0,
		`{"role":"user","content":[`+strings.Repeat(`{"type":"image"},`, 5000)+`{"type":"text","text":"end"}]}`))
	require.Equal(t, maxBlocks, strings.Count(body, "An image in the entry"))
	body = transcriptBody(t, sessiontest.MessageLine(0,
		`{"role":"toolResult","content":[`+strings.Repeat(`{"type":"text","text":"`+strings.Repeat("x ", 3000)+`"},`, 500)+`""]}`))
	require.Less(t, len(body), maxOutput+10_000)
	body = transcriptBody(t, sessiontest.MessageLine(0,
		asks+strings.Repeat(`{"type":"toolCall","name":"t","arguments":{"a":"`+strings.Repeat("x ", 3000)+`","b":1}},`, 500)+`""]}`))
	require.Less(t, len(body), maxOutput+500*7000)
}

// TestExcerptCutsAnywhere: wherever a string is cut, what is shown is the beginning and the end of its text,
// without halves of characters or escapes.
func TestExcerptCutsAnywhere(t *testing.T) {
	body := `a\"\\\\\u0041ä\ud83d\ude00 語\n` + "\xff" + `\/z\\`
	whole := string(markdown.Visible(rawjson.AppendDecoded(nil, []byte(body))))
	v := rawjson.Value(`"` + body + `"`)
	for head := range len(body) {
		for tail := range len(body) - head {
			e := excerptOf(v, excerptLimits{whole: head + tail, head: head, tail: tail})
			require.Equal(t, e.left > 0, e.cut)
			require.True(t, strings.HasPrefix(whole, string(e.head)), "%d: %q", head, e.head)
			require.True(t, strings.HasSuffix(whole, string(e.tail)), "%d: %q", tail, e.tail)
			require.True(t, utf8.Valid(e.head) && utf8.Valid(e.tail))
			require.LessOrEqual(t, len(e.head), 3*head)
		}
	}
	e := excerptOf(v, excerptLimits{whole: len(body)})
	require.Equal(t, whole, string(e.head))
	require.Zero(t, e.left)
}

func TestBase64IsLeftOut(t *testing.T) {
	picture := strings.Repeat("iVBORw0KGgo/+", 500)
	for _, c := range []struct{ in, want string }{
		{"see data:image/png;base64," + picture + " there",
			"see data:image/png;base64," + picture[:kept64-len("base64,")+len("base64,")] + "…{6 KB of base64} there"},
		{picture, picture[:kept64] + "…{6 KB of base64}"},
		{strings.Repeat("=", 3000), strings.Repeat("=", 3000)},
		{strings.Repeat("word ", 3000), strings.Repeat("word ", 3000)},
		{picture[:shortest64-1], picture[:shortest64-1]},
		{picture + "\n" + picture, picture[:kept64] + "…{6 KB of base64}\n" + picture[:kept64] + "…{6 KB of base64}"},
	} {
		got, _ := withoutBase64([]byte(c.in))
		require.Equal(t, c.want, string(got))
	}
}

func shownValueText(text string) (string, bool) {
	v := valueText{b: &builder{}, left: maxValue}
	v.write(rawjson.Value(text))
	return string(v.out), v.b.cut
}

func TestValueText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"path":"main.go","timeout":300,"none":null}`, "path: main.go\ntimeout: 300\nnone: null\n"},
		{`{"new":"a\n\n\tb\n"}`, "new:\n  a\n\n  \tb\n"},
		{`{"edits": [ {"old":"a \"b\" c", "n": [1.50, {}]},{"new":"x\n\ty"},{} ],"o":{ },"e":"","l":[{},1]}`,
			"edits:\n- old: a \"b\" c\n  n: [1.50,{}]\n- new:\n    x\n    \ty\n- {}\no: {}\ne: \nl: [{},1]\n"},
		{`{"\u001b[0m":"\u001b[31mred"}`, "␛[0m: ␛[31mred\n"},
		{`[ 1, "a b", { "c" : null } ]`, "[1,\"a b\",{\"c\":null}]\n"},
		{`"two\nlines"`, "two\nlines\n"},
		{`42`, "42\n"},
	} {
		got, cut := shownValueText(c.in)
		require.Equal(t, c.want, got)
		require.False(t, cut, c.in)
	}
}

func TestValueTextIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"deep":    strings.Repeat(`{"k":[`, 5000) + strings.Repeat(`]}`, 5000),
		"wide":    "[" + strings.Repeat(`"an element",`, 50_000) + "0]",
		"members": "{" + strings.Repeat(`"an element":1,`, 50_000) + `"last":0}`,
		"long":    `{"content":"` + strings.Repeat(`line\n`, 100_000) + `"}`,
		"list":    `{"edits":[` + strings.Repeat(`{"old":"a\nb"},`, 50_000) + `{}]}`,
		"key":     `{"` + strings.Repeat(`k`, 100_000) + `":1}`,
	} {
		got, cut := shownValueText(text)
		require.Less(t, len(got), 2*maxValue, name)
		require.Equal(t, name != "key", cut, name)
	}
}
