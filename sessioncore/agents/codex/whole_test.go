package codex

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
)

// rolloutsVariable names a directory of rollouts that TestRollouts looks at besides those in testdata.
const rolloutsVariable = "SESSIONFS_TEST_ROLLOUTS"

// TestRollouts: what is in a rollout is in exactly one entry of its session.
func TestRollouts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	if dir := os.Getenv(rolloutsVariable); dir != "" {
		require.NoError(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, ending) {
				names = append(names, name)
			}
			return err
		}))
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			session, _ := agentstest.Convert(t, converterOf(t), string(text))
			requireWhole(t, string(text), session)
		})
	}
}

// node is an entry, with what it says in words.
type node struct {
	ID, ParentID, Type string
	CustomType         string
	Content            any
	Summary            string
	Message            struct {
		Role, ToolCallID, ErrorMessage string
		Content                        any
		Usage                          struct{ TotalTokens int }
	}
	Origin struct {
		Line  int
		Lines []int
	}
}

// lines returns the lines that the entry is made of.
func (n *node) lines() []int {
	if len(n.Origin.Lines) > 0 {
		return n.Origin.Lines
	}
	return []int{n.Origin.Line}
}

// words returns what is said in content, a word for each block.
func words(content any) (all []string) {
	if text, ok := content.(string); ok && text != "" {
		return []string{"text " + text}
	}
	blocks, _ := content.([]any)
	for _, b := range blocks {
		block, _ := b.(map[string]any)
		text, _ := block["text"].(string)
		thinking, _ := block["thinking"].(string)
		switch {
		case text != "":
			all = append(all, "text "+text)
		case thinking != "":
			all = append(all, "thinking "+thinking)
		case block["type"] == "toolCall":
			all = append(all, fmt.Sprintf("call %v", block["name"]))
		case block["type"] == "image", block["type"] == "input_image":
			all = append(all, "image")
		}
	}
	return all
}

// raw is a line of a rollout.
type raw struct {
	Type    string
	Payload map[string]any
}

// wordsOfItem returns what an item says, in the words of words.
func wordsOfItem(p map[string]any) (all []string) {
	typ, _ := p["type"].(string)
	switch {
	case typ == "message", typ == "agent_message":
		return words(p["content"])
	case typ == "reasoning":
		for _, text := range append(words(p["summary"]), words(p["content"])...) {
			all = append(all, "thinking "+strings.TrimPrefix(text, "text "))
		}
		return all
	case strings.HasSuffix(typ, "_call"):
		name := p["name"]
		if name == nil {
			name = strings.TrimSuffix(typ, "_call")
		}
		if space, ok := p["namespace"].(string); ok {
			name = fmt.Sprintf("%s__%s", space, name)
		}
		return []string{fmt.Sprintf("call %v", name)}
	case strings.HasSuffix(typ, "_output"):
		output := p["output"]
		if typ == "tool_search_output" {
			output = p["tools"]
		}
		if object, ok := output.(map[string]any); ok && object["content"] != nil {
			output = object["content"]
		}
		if said := words(output); len(said) > 0 {
			return said
		}
		text, err := json.Marshal(output)
		if err != nil || output == "" || output == nil {
			return nil
		}
		return []string{"text " + string(text)}
	}
	return nil
}

// wordsOfEnd returns the texts of an event of the end of a call, if no item has them.
func wordsOfEnd(rollout []raw, at int) (all []string) {
	p := rollout[at].Payload
	isCall, hasOutput, script, scriptDone := false, false, any(nil), false
	for i, r := range rollout {
		typ, _ := r.Payload["type"].(string)
		same := r.Payload["call_id"] == p["call_id"]
		switch {
		case strings.HasSuffix(typ, "_output"):
			hasOutput = hasOutput || same
			scriptDone = scriptDone || i < at && script != nil && r.Payload["call_id"] == script
		case strings.HasSuffix(typ, "_call"):
			isCall = isCall || same
			if i < at && typ == "custom_tool_call" {
				script, scriptDone = r.Payload["call_id"], false
			}
		}
	}
	var of struct {
		Invocation                                    struct{ Server, Tool string }
		Result                                        struct{ Ok, Err any }
		ContentItems                                  any `json:"content_items"`
		Namespace, Tool, Source, Stdout, Stderr, Type string
		Aggregated                                    string `json:"aggregated_output"`
	}
	text, _ := json.Marshal(p)
	_ = json.Unmarshal(text, &of)
	name := "apply_patch"
	switch isPatch := of.Type == "patch_apply_end"; {
	case hasOutput, of.Source == "user_shell", isPatch && !isCall && script != nil && !scriptDone && hasOutputOf(rollout, script):
		return nil
	case isPatch && !isCall && script != nil && !scriptDone:
		isCall = true
	case of.Type == "mcp_tool_call_end":
		name = "mcp__" + of.Invocation.Server + "__" + of.Invocation.Tool
	case of.Type == "exec_command_end":
		name = "exec_command"
	case of.Type == "dynamic_tool_call_response":
		name = of.Namespace + "__" + of.Tool
	}
	if !isCall {
		all = []string{"call " + name}
	}
	if ok, _ := of.Result.Ok.(map[string]any); ok != nil {
		if all = append(all, words(ok["content"])...); ok["structuredContent"] != nil {
			text, _ := json.Marshal(ok["structuredContent"])
			all = append(all, "text "+string(text))
		}
	}
	all = append(append(all, words(of.Result.Err)...), words(of.ContentItems)...)
	if of.Aggregated != "" {
		return append(all, "text "+of.Aggregated)
	}
	return append(append(all, words(of.Stdout)...), words(of.Stderr)...)
}

func hasOutputOf(rollout []raw, call any) bool {
	return slices.ContainsFunc(rollout, func(r raw) bool {
		typ, _ := r.Payload["type"].(string)
		return strings.HasSuffix(typ, "_output") && r.Payload["call_id"] == call
	})
}

// requireWhole fails unless everything that is said in a rollout is in exactly one entry of the session, which is made of that
// line, and nothing else is; unless the tips are something that was said; and unless the tokens are those of the totals.
func requireWhole(t *testing.T, file, session string) {
	var nodes []*node
	byLine, byID := map[int][]string{}, map[string]*node{}
	isParent := map[string]bool{}
	total := 0
	begin := strings.SplitN(file, "\n", 3)
	forked := len(begin) > 1 && strings.Contains(begin[1], `"type":"session_meta"`)
	for line := range strings.Lines(session) {
		n := &node{}
		require.NoError(t, json.Unmarshal([]byte(line), n))
		if n.Type == "session" || n.CustomType == "sessionfs/leaf" {
			continue
		}
		require.Nil(t, byID[n.ID], "id %s twice", n.ID)
		require.True(t, n.ParentID == "" || byID[n.ParentID] != nil, "%s comes before its parent", n.ID)
		nodes, byID[n.ID], isParent[n.ParentID] = append(nodes, n), n, true
		total += n.Message.Usage.TotalTokens
		require.True(t, slices.IsSorted(n.lines()))
		number := n.lines()[0]
		if forked {
			number-- // as in the rollout that it was forked from
		}
		require.True(t, strings.HasPrefix(n.ID+".", fmt.Sprintf("l%d.", number)), "%s is of %d", n.ID, n.lines())
		said := append(words(n.Content), words(n.Message.Content)...)
		for _, line := range n.lines() {
			byLine[line] = append(byLine[line], said...)
		}
	}
	texts := map[string]bool{}
	var rollout []raw
	for line := range strings.Lines(file) {
		var r raw
		_ = json.Unmarshal([]byte(line), &r)
		rollout = append(rollout, r)
		if r.Type == "response_item" {
			said := wordsOfItem(r.Payload)
			for _, text := range said {
				text = text[strings.IndexByte(text, ' ')+1:]
				texts[text] = true
				shown, _, _ := strings.Cut(text, "<oai-mem-citation>")
				texts[strings.TrimSpace(shown)] = true
			}
			texts[strings.ReplaceAll(strings.Join(said, ""), "text ", "")] = true
		}
	}
	wanted, rolledBack := 0, false
	var want []string
	totals, counted := map[string]any{}, false
	for i, r := range rollout {
		said := []string(nil)
		typ, _ := r.Payload["type"].(string)
		switch r.Type {
		case "response_item":
			said = wordsOfItem(r.Payload)
		case "compacted":
			history, _ := r.Payload["replacement_history"].([]any)
			for _, item := range history {
				p, _ := item.(map[string]any)
				said = append(said, wordsOfItem(p)...)
			}
		case "event_msg":
			text, _ := r.Payload["message"].(string)
			if text == "" {
				text, _ = r.Payload["text"].(string)
			}
			switch {
			case typ == "thread_rolled_back":
				rolledBack = true
			case typ == "token_count":
				info, _ := r.Payload["info"].(map[string]any)
				all, _ := info["total_token_usage"].(map[string]any)
				if info == nil || counted && fmt.Sprint(all) == fmt.Sprint(totals) {
					continue
				}
				last, ok := info["last_token_usage"].(map[string]any)
				n, _ := last["total_tokens"].(float64)
				if !ok {
					now, _ := all["total_tokens"].(float64)
					was, _ := totals["total_tokens"].(float64)
					n = now - was
				}
				wanted, totals, counted = wanted+int(n), all, true
			case typ == "web_search_end" && hasOutputOf(rollout, r.Payload["call_id"]):
			case typ == "mcp_tool_call_end", typ == "exec_command_end", typ == "dynamic_tool_call_response", typ == "patch_apply_end":
				said = wordsOfEnd(rollout, i)
			case typ == "web_search_end":
				said = []string{fmt.Sprintf("text %v", r.Payload["query"])}
				if !slices.ContainsFunc(rollout[i:], func(r raw) bool { return r.Payload["type"] == "web_search_call" }) {
					said = append(said, "call web_search")
				}
			case text == "" || texts[text] || typ == "error":
			case typ == "agent_reasoning", typ == "agent_reasoning_raw_content":
				said = []string{"thinking " + text}
			case typ == "user_message", typ == "agent_message":
				said = []string{"text " + text}
			}
		}
		have := slices.Clone(byLine[i+1])
		for _, text := range said {
			at := slices.Index(have, text)
			require.GreaterOrEqual(t, at, 0, "line %d: %.200s is not in %.500q", i+1, text, have)
			have = slices.Delete(have, at, at+1)
		}
		want = append(want, said...)
	}
	var have []string
	for _, n := range nodes {
		have = append(have, append(words(n.Content), words(n.Message.Content)...)...)
	}
	slices.Sort(have)
	slices.Sort(want)
	require.Equal(t, want, have)
	if forked { // what it cost before is the other's
		require.LessOrEqual(t, total, wanted)
	} else {
		require.Equal(t, wanted, total, "tokens")
	}
	tips := 0
	for _, n := range nodes {
		if isParent[n.ID] {
			continue
		}
		tips++
		require.NotContains(t, []string{"model_change", "thinking_level_change"}, n.Type)
		if n.Type == "message" && n.Message.Role == "assistant" {
			require.True(t, len(words(n.Message.Content)) > 0 || n.Message.ErrorMessage != "", "%s says nothing", n.ID)
		}
	}
	if !rolledBack {
		require.LessOrEqual(t, tips, 1)
	}
}
