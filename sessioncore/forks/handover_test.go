package forks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/sessiontest"
)

// receivers are the agents that take conversations.
var receivers = []string{"claude", "codex", "copilot", "opencode"}

// given returns the session of a text in omp's form.
func given(t testing.TB, text string) *sessioncore.Session {
	store := sessioncore.NewStore(sessiontest.Memory(t, []byte(text)))
	t.Cleanup(store.Close)
	store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
	return store.Session(sessiontest.FileName)
}

// emptyHome returns the home of an agent without sessions.
func emptyHome(t testing.TB, agent string) *home {
	if agent == "opencode" {
		return newOpenCode(t).home
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, agents.Find(agent).Dirs[0]), 0o700))
	return openHome(t, agent, dir)
}

// receive hands a branch of a session in omp's form over to the home's agent, and returns the new session's
// name.
func (h *home) receive(snap *sessioncore.Snapshot, entry sessioncore.Entry) (name string, err error) {
	_, name, err = h.forks.Receive(context.Background(), &SourceBranch{Snapshot: snap, Entry: entry, Agent: "omp", CWD: "/srv/pier"})
	return name, err
}

// samples returns the files of testdata that are sessions in omp's form: omp's own, and the conversions of
// those of all agents.
func samples(t testing.TB) (files []string) {
	require.NoError(t, filepath.WalkDir(sessiontest.TestData(t), func(file string, _ fs.DirEntry, err error) error {
		isOthers := filepath.Ext(file) == ".want" && filepath.Base(filepath.Dir(filepath.Dir(file))) == "agents"
		if isOthers || strings.Contains(file, "/sessions/") && filepath.Ext(file) == ".jsonl" {
			files = append(files, file)
		}
		return err
	}))
	return files
}

// message is a message of a context.
type message struct {
	Role, Summary, ToolCallID string
	Content                   any
}

// contextOf returns the messages at an entry.
func contextOf(t testing.TB, snap *sessioncore.Snapshot, at sessioncore.Entry) []message {
	doc, err := snap.Context(context.Background(), at, nil)
	var of struct{ Messages []message }
	require.NoError(t, json.Unmarshal(sessiontest.ReadExactly(t, doc, err), &of))
	return of.Messages
}

// blocks returns the blocks of a message.
func (m *message) blocks() (all []map[string]any) {
	if text, isText := m.Content.(string); isText {
		return []map[string]any{{"type": "text", "text": text}}
	}
	list, _ := m.Content.([]any)
	for _, b := range list {
		block, _ := b.(map[string]any)
		all = append(all, block)
	}
	return all
}

// wordsOf returns the texts and calls of a conversation in order, and those of results by themselves,
// sorted. Where no service takes a part as it is, it is left out.
func wordsOf(messages []message) (said, results []string) {
	for i := range messages {
		m := &messages[i]
		for _, b := range m.blocks() {
			text, _ := b["text"].(string)
			words := strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
			isNote := words == firstText || words == lackedResult || strings.HasPrefix(words, "[An image could not")
			if b["type"] == "toolCall" {
				arguments, _ := json.Marshal(b["arguments"])
				words = "call " + string(arguments)
			}
			switch {
			case words == "" || isNote:
			case m.Role == "toolResult":
				results = append(results, words)
			case m.Role != "compactionSummary":
				said = append(said, words)
			}
		}
	}
	slices.Sort(results)
	return said, results
}

var (
	plainName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	plainID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{0,63}[a-zA-Z-][a-zA-Z0-9-]*$`) // ends in no _ and a number
	knownKind = regexp.MustCompile(`^image/(png|jpeg|gif|webp)$`)
)

// checkServed checks that a service takes a conversation: each call is answered next, ids and names have
// known characters, no text is empty, and a person begins.
func checkServed(t testing.TB, messages []message) {
	open := []string{}
	ids := map[any]bool{}
	require.NotEqual(t, "assistant", messages[0].Role)
	for i := range messages {
		m := &messages[i]
		if m.Role == "toolResult" {
			require.Contains(t, open, m.ToolCallID)
			open = slices.DeleteFunc(open, func(id string) bool { return id == m.ToolCallID })
		} else {
			require.Empty(t, open, "message %d", i+1)
		}
		for _, b := range m.blocks() {
			switch b["type"] {
			case "text":
				require.True(t, m.Role == "toolResult" || strings.TrimSpace(b["text"].(string)) != "")
			case "toolCall":
				require.Regexp(t, plainID, b["id"])
				require.Regexp(t, plainName, b["name"])
				require.False(t, ids[b["id"]], "%v", b["id"])
				ids[b["id"]] = true
				open = append(open, b["id"].(string))
			case "image":
				require.Regexp(t, knownKind, b["mimeType"])
			default:
				t.Fatalf("a block %v", b["type"])
			}
		}
	}
	require.Empty(t, open)
}

// refusals are the reasons for which a sample is not handed over.
var refusals = regexp.MustCompile(`nothing was said up to here|sessions of operator|line \d+ is damaged`)

// TestReceiveEverywhere hands the samples of all agents over, at entries all over them: the new session has the same
// words, calls and results, and a service takes them.
func TestReceiveEverywhere(t *testing.T) {
	sessiontest.NotUnderRace(t)
	total := 0
	for _, file := range samples(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		rel, _ := filepath.Rel(sessiontest.TestData(t), file)
		t.Run(rel, func(t *testing.T) {
			snap, err := sessiontest.Acquire(t, given(t, string(text)))
			if err != nil {
				return // it is no session
			}
			for _, agent := range receivers {
				total += receiveEverywhere(t, emptyHome(t, agent), snap)
			}
		})
	}
	require.Greater(t, total, 300)
}

// receiveEverywhere hands a session over at a sample of its entries, checks each new session, and returns
// their number. A refusal must be one of refusals.
func receiveEverywhere(t *testing.T, h *home, snap *sessioncore.Snapshot) (total int) {
	header, _, err := snap.ReadHeader()
	require.NoError(t, err)
	id, _ := header.Member("id").Text()
	step := 1 + snap.Len()/10
	for e := 0; e < snap.Len(); e += step {
		name, err := h.receive(snap, sessioncore.Entry(e))
		if err != nil {
			require.Regexp(t, refusals, err.Error())
			require.ErrorIs(t, err, sessioncore.ErrInvalid)
			continue
		}
		total++
		got := sessiontest.Snapshot(t, h.store.Session(name))
		now := contextOf(t, got, sessiontest.Leaf(t, got))
		checkServed(t, now)
		checkCopies(t, snap, got)
		before := contextOf(t, snap, sessioncore.Entry(e))
		if !hasOddities(before) {
			said, results := wordsOf(before)
			newSaid, newResults := wordsOf(now)
			if h.Agent == "copilot" { // the texts of a message are one, before its calls
				said = sortedLines(said)
				newSaid = sortedLines(newSaid)
			}
			require.Equal(t, said, newSaid)
			require.Equal(t, results, newResults)
		}
		made, _, err := got.ReadHeader()
		require.NoError(t, err)
		require.True(t, made.Member("parentSession").Is(id))
		require.True(t, made.Member("cwd").Is("/srv/pier"))
		if h.Agent != "opencode" {
			require.NoError(t, os.Remove(h.path(name)))
		}
	}
	return total
}

// identities returns the number of answers and results with each pair of an id and a time.
func identities(snap *sessioncore.Snapshot) map[string]int {
	all := map[string]int{}
	for e := range sessioncore.Entry(snap.Len()) {
		id, _ := snap.ID(e)
		at, isTimed := snap.OwnTime(e)
		isCounted := snap.IsMessage(e, sessioncore.RoleAssistant) || snap.IsMessage(e, sessioncore.RoleToolResult)
		if isCounted && isTimed {
			all[fmt.Sprint(id, " ", at)]++
		}
	}
	return all
}

// checkCopies checks that the answers and results of a new session are those of the original, so that they
// count once. Results that nobody recorded are new.
func checkCopies(t testing.TB, original, made *sessioncore.Snapshot) {
	before := identities(original)
	for identity, times := range identities(made) {
		require.Equal(t, 1, times, identity)
		if before[identity] == 0 {
			id, _, _ := strings.Cut(identity, " ")
			e, err := made.Find(id)
			require.NoError(t, err)
			text, err := made.EntryText(e)
			require.NoError(t, err)
			require.Contains(t, string(text), lackedResult, identity)
		}
	}
}

// sortedLines returns the lines of texts, sorted, without notes.
func sortedLines(texts []string) (lines []string) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "[An image could not") {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// hasOddities reports whether a conversation has parts whose words are other ones in the new session:
// those of other roles, results without their calls, and blocks of other kinds.
func hasOddities(messages []message) bool {
	calls := map[string]int{}
	for i := range messages {
		m := &messages[i]
		for _, b := range m.blocks() {
			typ, _ := b["type"].(string)
			id, _ := b["id"].(string)
			calls[id]++
			isKnown := slices.Contains([]string{"text", "image", "thinking", "redactedThinking", "toolCall"}, typ)
			arguments, _ := b["arguments"].(map[string]any)
			lacksArguments := typ == "toolCall" && arguments == nil
			if !isKnown || lacksArguments {
				return true
			}
		}
		calls[m.ToolCallID]--
		if m.ToolCallID != "" && calls[m.ToolCallID] < 0 {
			return true
		}
		isPlain := slices.Contains([]string{"user", "assistant", "toolResult", "compactionSummary"}, m.Role)
		if !isPlain {
			return true
		}
	}
	return false
}

const dot = "iVBORw0KGgo="

// talk is a session of omp with all kinds of messages.
func talk() string {
	session := `{"type":"session","version":3,"id":"s1","timestamp":"2026-03-01T10:00:00Z","cwd":"/w","title":"Tides"}` + "\n"
	for i, message := range []string{
		`"role":"user","content":"old"`,
		`"role":"assistant","content":[{"type":"text","text":"kept"},{"type":"text","text":" \n"}]`,
		`"role":"user","content":[{"type":"text","text":"both"},{"type":"image","data":"` + dot + `","mimeType":"image/jpeg"}]`,
		`"role":"assistant","model":"m1","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"a|1","name":"x.read","arguments":{"s":"\ud800"}},` +
			`{"type":"text","text":"beside"},{"type":"toolCall","id":"b","name":"bash","arguments":{}},{"type":"toolCall","id":"b","name":"bash","arguments":{}}]`,
		`"role":"toolResult","toolCallId":"b","toolName":"bash","content":[],"isError":false`,
		`"role":"custom","customType":"note","content":"wait","display":false`,
		`"role":"toolResult","toolCallId":"a|1","toolName":"x.read","content":[{"type":"text","text":"one"},{"type":"image","data":"` + dot + `"}],"isError":true`,
		`"role":"toolResult","toolCallId":"gone","toolName":"bash","content":[{"type":"text","text":"two"}],"isError":false`,
		`"role":"bashExecution","command":"ls","output":"x"`,
		`"role":"bashExecution","command":"secret","output":"x","excludeFromContext":true`,
		`"role":"fileMention","files":[{"path":"a.go","content":"package a"}]`,
		`"role":"developer","content":"be short"`,
		`"role":"user","synthetic":true,"content":[{"type":"image","data":"bm9uZQ=="}]`,
		`"role":"assistant","content":[{"type":"toolCall","id":"c","name":"","arguments":7}],"stopReason":"aborted"`,
	} {
		parent := "null"
		if i > 0 {
			parent = fmt.Sprintf(`"e%02d"`, i-1)
		}
		at := fmt.Sprintf("2026-03-01T10:00:%02dZ", i)
		session += fmt.Sprintf(`{"type":"message","id":"e%02d","parentId":%s,"timestamp":"%s","message":{%s,"timestamp":%d}}`+"\n",
			i, parent, at, message, 1772359200000+1000*i)
		if i == 1 {
			session += `{"type":"compaction","id":"c","parentId":"e01","timestamp":"2026-03-01T10:00:01Z","summary":"Sum.","firstKeptEntryId":"e01"}` + "\n"
			session = strings.ReplaceAll(session, `"parentId":"c0"`, "")
		}
	}
	return strings.Replace(session, `"id":"e02","parentId":"e01"`, `"id":"e02","parentId":"c"`, 1)
}

// TestReceived: the records of a new session, without ids and times.
func TestReceived(t *testing.T) {
	for agent, want := range map[string][]string{
		"claude": {
			`system compact_boundary`,
			`user summary "This conversation goes on from an earlier one. Its summary:\n\nSum."`,
			`assistant [{"text":"kept","type":"text"}]`,
			`user [{"text":"both","type":"text"},{"source":{"data":"` + dot + `","media_type":"image/png","type":"base64"},"type":"image"}]`,
			`assistant [{"id":"call1","input":{"s":"\ufffd"},"name":"x_read","type":"tool_use"}]`,
			`assistant [{"text":"beside","type":"text"}]`,
			`assistant [{"id":"b","input":{},"name":"bash","type":"tool_use"}]`,
			`assistant [{"id":"call3","input":{},"name":"bash","type":"tool_use"}]`,
			`user [{"content":[{"text":"one","type":"text"},{"source":{"data":"` + dot + `","media_type":"image/png","type":"base64"},"type":"image"}],` +
				`"tool_use_id":"call1","type":"tool_result"}]`,
			`user [{"content":"` + lackedResult + `","is_error":true,"tool_use_id":"b","type":"tool_result"}]`,
			`user [{"content":"","tool_use_id":"call3","type":"tool_result"}]`,
			`user meta "wait"`,
			`user meta [{"text":"Result of the tool bash:","type":"text"},{"text":"two","type":"text"}]`,
			`user "I ran this command:\nls\nIts output:\nx"`,
			`user meta "The file a.go:\npackage a"`,
			`user meta "[An image could not be handed over: it is not there, or of a kind that models do not take.]"`,
			`assistant [{"id":"c","input":{"input":7},"name":"unknown","type":"tool_use"}]`,
			`user [{"content":"` + lackedResult + `","is_error":true,"tool_use_id":"c","type":"tool_result"}]`,
			`custom-title Tides`,
		},
		"codex": {
			`session_meta cli`,
			`thread_name_updated Tides`,
			`compacted "This conversation goes on from an earlier one. Its summary:\n\nSum."`,
			`assistant [{"text":"kept","type":"output_text"}]`,
			`agent_message kept`,
			`user [{"text":"both","type":"input_text"},{"image_url":"data:image/png;base64,` + dot + `","type":"input_image"}]`,
			`user_message both`,
			`function_call call1 x_read {"s":"\ufffd"}`,
			`assistant [{"text":"beside","type":"output_text"}]`,
			`agent_message beside`,
			`function_call b bash {}`,
			`function_call call3 bash {}`,
			`function_call_output call1 [{"text":"one","type":"input_text"},{"image_url":"data:image/png;base64,` + dot + `","type":"input_image"}]`,
			`function_call_output b "` + lackedResult + `"`,
			`function_call_output call3 ""`,
			`user [{"text":"wait","type":"input_text"}]`,
			`user [{"text":"Result of the tool bash:","type":"input_text"},{"text":"two","type":"input_text"}]`,
			`user [{"text":"I ran this command:\nls\nIts output:\nx","type":"input_text"}]`,
			`user_message I ran this command:` + "\nls\nIts output:\nx",
			`user [{"text":"The file a.go:\npackage a","type":"input_text"}]`,
			`user [{"text":"[An image could not be handed over: it is not there, or of a kind that models do not take.]","type":"input_text"}]`,
			`function_call c unknown {"input":7}`,
			`function_call_output c "` + lackedResult + `"`,
		},
	} {
		h := emptyHome(t, agent)
		snap := sessiontest.Snapshot(t, given(t, talk()))
		of := &SourceBranch{Snapshot: snap, Entry: sessiontest.Leaf(t, snap), Agent: "omp", CWD: "/srv/a é.𝛽"}
		id, name, err := h.forks.Receive(context.Background(), of)
		require.NoError(t, err)
		require.Equal(t, []string{"images that models do not take, and are a text now: 1"}, of.Notes)
		require.Contains(t, name, id)
		info, err := os.Stat(h.path(name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		var got []string
		for _, r := range h.records(name) {
			got = append(got, outlineOf(r))
		}
		require.Equal(t, want, got)
		origin := map[string]any{"source": "omp", "sourceId": "s1", "sourceEntry": "e13", "sourceCwd": "/w", "session": id}
		first := h.records(name)[0]
		if agent == "claude" {
			require.Equal(t, "-srv-a-----", filepath.Base(filepath.Dir(h.path(name))))
			require.Equal(t, origin, first["handedOverFrom"])
		} else {
			require.Equal(t, origin, first["payload"].(map[string]any)["handedOverFrom"])
		}
	}
}

// outlineOf returns the type and the content of a record of Codex or Claude Code.
func outlineOf(record map[string]any) string {
	payload, isCodex := record["payload"].(map[string]any)
	if isCodex {
		return codexOutline(record, payload)
	}
	return claudeOutline(record)
}

// jsonOf returns a value as JSON, with U+FFFD as an escape.
func jsonOf(value any) string {
	out, _ := json.Marshal(value)
	return strings.NewReplacer(`\u003c`, "<", "\uFFFD", `\ufffd`).Replace(string(out))
}

// claudeOutline is outlineOf for a record of Claude Code.
func claudeOutline(record map[string]any) string {
	switch {
	case record["type"] == "custom-title":
		return fmt.Sprint("custom-title ", record["customTitle"])
	case record["subtype"] != nil:
		return fmt.Sprint(record["type"], " ", record["subtype"])
	}
	kind := fmt.Sprint(record["type"])
	if record["isCompactSummary"] == true {
		kind += " summary"
	}
	if record["isMeta"] == true {
		kind += " meta"
	}
	message := record["message"].(map[string]any)
	return kind + " " + jsonOf(message["content"])
}

// codexOutline is outlineOf for a record of Codex.
func codexOutline(record, payload map[string]any) string {
	switch {
	case record["type"] == "session_meta":
		return fmt.Sprint("session_meta ", payload["source"])
	case record["type"] == "compacted":
		return "compacted " + jsonOf(payload["message"])
	}
	switch payload["type"] {
	case "message":
		return fmt.Sprint(payload["role"], " ", jsonOf(payload["content"]))
	case "function_call":
		return fmt.Sprint("function_call ", payload["call_id"], " ", payload["name"], " ", payload["arguments"])
	case "function_call_output":
		return fmt.Sprint("function_call_output ", payload["call_id"], " ", jsonOf(payload["output"]))
	case "thread_name_updated":
		return fmt.Sprint("thread_name_updated ", payload["thread_name"])
	}
	return fmt.Sprint(payload["type"], " ", payload["message"])
}

// spoiled is a Receiver that changes the words of a new session.
type spoiled struct {
	agents.Forker
	old, new string
}

// Receive implements agents.Receiver.
func (s spoiled) Receive(h *agents.Handover, out io.Writer) (agents.ForkPlace, error) {
	var text strings.Builder
	place, err := s.Forker.(agents.Receiver).Receive(h, &text)
	_, failed := io.WriteString(out, strings.Replace(text.String(), s.old, s.new, 1))
	return place, errors.Join(err, failed)
}

// SessionID implements agents.OwnIDs where the Receiver does.
func (s spoiled) SessionID(uuid string, at time.Time) string {
	own, hasOwn := s.Forker.(agents.OwnIDs)
	if hasOwn {
		return own.SessionID(uuid, at)
	}
	return uuid
}

// TestReceivedOtherwise: a new session with another conversation does not appear.
func TestReceivedOtherwise(t *testing.T) {
	snap := sessiontest.Snapshot(t, given(t, talk()))
	for _, agent := range receivers {
		for words, message := range map[string]int{
			"Sum.": 1, "both": 3, "beside": 4, `"x_read"`: 4, `one"`: 7, dot: 3, "wait": 6, "call3": 6,
			"two": 8, "package a": 11,
		} {
			if agent == "opencode" && words == "call3" { // a result is a part of its call
				continue
			}
			h := emptyHome(t, agent)
			before := files(t, h.Dir)
			h.forks.Format = spoiled{Forker: h.forks.Format, old: words, new: strings.Replace(words, words[1:3], "ZZ", 1)}
			_, err := h.receive(snap, sessiontest.Leaf(t, snap))
			require.ErrorContains(t, err, fmt.Sprintf("would differ in message %d", message), "%s %s", agent, words)
			require.ErrorIs(t, err, sessioncore.ErrInvalid)
			require.Equal(t, before, files(t, h.Dir))
		}
	}
}

// TestReceiveRefused: what cannot be handed over is refused, and nothing is made.
func TestReceiveRefused(t *testing.T) {
	record := func(uuid, parent, more string) string {
		return `{"type":"user","uuid":"` + uuid + `","parentUuid":` + parent + `,"sessionId":"s","timestamp":"2026-11-28T10:00:00Z",` +
			`"message":{"role":"user","content":"words of ` + uuid + `"}` + more + "}\n"
	}
	item := func(text string) string {
		return `{"timestamp":"2026-11-28T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user",` +
			`"content":[{"type":"input_text","text":"` + text + `"}]}}` + "\n"
	}
	meta := func(more string) string {
		return `{"timestamp":"2026-11-28T10:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/w"` + more + "}}\n"
	}
	long := strings.Repeat("x", agents.MaxForkedRecord)
	for name, test := range map[string]struct{ agent, file, text, want string }{
		"before a cut": {"claude", claudeFile, record("a", "null", "") + "{\"torn\n" + record("c", `"b"`, ""), "line 2 is damaged"},
		"beside it":    {"claude", claudeFile, record("a", "null", "") + "{\"torn\n" + record("c", `"a"`, ""), ""},
		"in a log":     {"codex", codexFile, meta("") + item("a") + "{\"torn\n" + item("b"), "line 3 is damaged"},
		"behind it":    {"codex", codexFile, meta("") + item("a") + "{\"torn\n", ""},
		"long":         {"claude", claudeFile, record("a", "null", `,"more":"`+long+`"`), "line 1 cannot be read whole"},
		"subagent":     {"codex", codexFile, meta(`,"source":{"subagent":"review"}`) + item("a"), "it is a subagent's"},
		"empty":        {"codex", codexFile, meta(""), "no entry yet"},
	} {
		t.Run(name, func(t *testing.T) {
			from := newHome(t, test.agent, test.file, test.text)
			snap := sessiontest.Snapshot(t, from.store.Session(from.Sessions("")[0]))
			of := &SourceBranch{Snapshot: snap, Entry: sessiontest.Leaf(t, snap), Agent: test.agent, Foreign: agents.Find(test.agent), CWD: "/w"}
			to := emptyHome(t, "claude")
			_, _, err := to.forks.Receive(context.Background(), of)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.ErrorIs(t, err, sessioncore.ErrInvalid)
			require.Empty(t, files(t, to.Dir))
		})
	}
	snap := sessiontest.Snapshot(t, given(t, talk()))
	of := &SourceBranch{Snapshot: snap, Entry: sessiontest.Leaf(t, snap), Agent: "omp", CWD: "/" + strings.Repeat("w", 200)}
	to := emptyHome(t, "claude")
	_, _, err := to.forks.Receive(context.Background(), of)
	require.ErrorContains(t, err, "more than 200 characters")
	of.CWD = of.CWD[:200]
	_, _, err = to.forks.Receive(context.Background(), of)
	require.NoError(t, err)
	_, err = emptyHome(t, "qwen").receive(snap, of.Entry)
	require.ErrorContains(t, err, "takes no conversations of other agents")
	to.forks.Closed = sessioncore.ErrReadOnly
	_, err = to.receive(snap, of.Entry)
	require.ErrorIs(t, err, sessioncore.ErrReadOnly)
}
