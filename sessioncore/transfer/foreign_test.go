package transfer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	_ "sessionfs/sessioncore/agents/all" // whose sessions these are
)

const (
	claudeID  = "0b7d7a4e-0000-4000-8000-000000000001"
	claudeDir = ".claude/projects/-w/"
	codexFile = ".codex/sessions/2026/02/16/rollout-2026-02-16T10-20-30-0b7d7a4e-0000-7000-8000-000000000002.jsonl"
)

// said is a record of Claude Code, of which rest are the members after those that all have.
func said(uuid, parent, rest string) string {
	if parent = `"` + parent + `"`; parent == `""` {
		parent = "null"
	}
	return `{"uuid":"` + uuid + `","parentUuid":` + parent + `,"sessionId":"` + claudeID + `","cwd":"/w","timestamp":"2026-02-16T10:20:30.000Z",` + rest + "}\n"
}

func asked(uuid, parent, text string) string {
	return said(uuid, parent, `"type":"user","message":{"role":"user","content":"`+text+`"}`)
}

func answered(uuid, parent, text string) string {
	return said(uuid, parent, `"type":"assistant","message":{"role":"assistant","id":"m-`+uuid+`","model":"m","content":[{"type":"text","text":"`+text+
		`"}],"usage":{"input_tokens":1,"output_tokens":2}}`)
}

var (
	picture    = strings.Repeat("a picture ", 200)
	claudeText = asked("u1", "", "one") + answered("a1", "u1", "first") +
		asked("u2", "a1", "two") + answered("a2", "u2", "second") +
		said("u3", "a1", `"type":"user","message":{"role":"user","content":[{"type":"text","text":"otherwise"},`+
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+base64.StdEncoding.EncodeToString([]byte(picture))+
			`"}},{"type":"document","title":"x"}]}`) +
		said("a3", "u3", `"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"third"}]}`)
	claudeMore = asked("u4", "a3", "four") + answered("a4", "u4", "fourth")
	codexText  = `{"timestamp":"2026-02-16T10:20:30.000Z","type":"session_meta",` +
		`"payload":{"id":"0b7d7a4e-0000-7000-8000-000000000002","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/w"}}
{"timestamp":"2026-02-16T10:20:31.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}
{"timestamp":"2026-02-16T10:20:32.000Z","type":"response_item",` +
		`"payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"first"}]}}
`
)

// madeIn returns the sessions of a store by their file names, each with its lines.
func madeIn(t *testing.T, s *store) map[string][]map[string]any {
	t.Helper()
	sessions := map[string][]map[string]any{}
	for name, text := range all(t, s.top) {
		if !strings.HasSuffix(name, ".jsonl") {
			continue
		}
		for line := range strings.Lines(text) {
			var object map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &object), line)
			sessions[name] = append(sessions[name], object)
		}
	}
	return sessions
}

// TestForeign: a session of another agent becomes one of omp, with its images as blobs, and ends as omp's own import does.
func TestForeign(t *testing.T) {
	s, elsewhere := newStore(t, nil), t.TempDir()
	elsewhere, err := filepath.EvalSymlinks(elsewhere)
	require.NoError(t, err)
	sub := strings.ReplaceAll(asked("s1", "", "sub"), `"cwd"`, `"isSidechain":true,"agentId":"x","cwd"`)
	put(t, elsewhere, map[string]string{
		claudeDir + claudeID + ".jsonl":                   claudeText + `{"torn`,
		claudeDir + claudeID + "/subagents/agent-x.jsonl": sub,
		claudeDir + claudeID + "/tool-results/r.txt":      "a result",
		claudeDir + "agent-y.jsonl":                       sub,
		claudeDir + "empty.jsonl":                         `{"type":"summary","sessionId":"x"}` + "\n",
		".claude/history.jsonl":                           "{}\n",
		".claude/.credentials.jsonl":                      "{}\n",
		codexFile:                                         codexText,
		".codex/history.jsonl":                            "{}\n",
	})
	said := s.take(filepath.Join(elsewhere, ".claude"), filepath.Join(elsewhere, ".codex"))
	require.Len(t, said, 3)
	require.Equal(t, "refused "+errEmpty.Error(), said[1])
	said[1] = said[2]
	require.Contains(t, said[0], "new sessions/--w--/2026-02-16T10-20-30-000Z_")
	require.Contains(t, said[0], "no records and left out: 1")
	require.Contains(t, said[0], "text now: 1")
	sessions := madeIn(t, s)
	require.Len(t, sessions, 4)
	name := strings.Fields(strings.ReplaceAll(said[0], ";", " "))[1]
	lines := sessions[name]
	require.Len(t, lines, 1+6+1)
	require.Equal(t, "session", lines[0]["type"])
	require.NotEqual(t, claudeID, lines[0]["id"], "it has an id of its own")
	require.Contains(t, name, lines[0]["id"])
	last := lines[7]
	require.Equal(t, "foreign_session_import", last["customType"])
	require.Equal(t, "a3", last["parentId"])
	require.Equal(t, map[string]any{
		"source": "claude", "sourceId": claudeID, "sourcePath": filepath.Join(elsewhere, claudeDir, claudeID+".jsonl"), "sourceCwd": "/w",
	}, last["data"])
	for _, line := range lines {
		if m, ok := line["message"].(map[string]any); ok && m["role"] == "assistant" {
			require.Contains(t, m["usage"], "cost", "the client adds it up without looking")
		}
	}
	there := all(t, s.top)
	require.Equal(t, picture, there["blobs/"+hashOf(picture)])
	require.Contains(t, there[name], `"blob:sha256:`+hashOf(picture)+`"`)
	require.Equal(t, "a result", there[strings.TrimSuffix(name, ".jsonl")+"/tool-results/r.txt"])
	for _, sub := range []string{"agent-x", "agent-y"} { // older clients write them beside the session
		require.Contains(t, there[strings.TrimSuffix(name, ".jsonl")+"/subagents/"+sub+".jsonl"], `"sub"`)
	}
	require.Contains(t, there[strings.Fields(said[1])[1]], `"first"`)

	again := s.take(filepath.Join(elsewhere, claudeDir, claudeID+".jsonl"), filepath.Join(elsewhere, codexFile))
	require.True(t, strings.HasPrefix(again[0], "same "+name) && strings.HasPrefix(again[1], "same "), again)
	require.Equal(t, there, all(t, s.top))

	alone := newStore(t, nil)
	require.Contains(t, alone.take(filepath.Join(elsewhere, claudeDir, "agent-y.jsonl"))[0], "new sessions/--w--/", "a subagent's, where it is named")
}

// TestForeignBranch: what is named with an entry is the branch to it, a session of its own.
func TestForeignBranch(t *testing.T) {
	s, elsewhere := newStore(t, nil), t.TempDir()
	put(t, elsewhere, map[string]string{"x.jsonl": claudeText, "y.jsonl": headerOf("y", "/w") + line, "z#1.jsonl": codexText})
	said := s.take(filepath.Join(elsewhere, "x.jsonl#a2"), filepath.Join(elsewhere, "x.jsonl"), filepath.Join(elsewhere, "x.jsonl#none"),
		filepath.Join(elsewhere, "y.jsonl#a"), filepath.Join(elsewhere, "z#1.jsonl"), elsewhere+"#a2", filepath.Join(elsewhere, "x.jsonl#a2"))
	for i, want := range []string{"new ", "new ", "refused no such entry", "refused only of sessions of other agents", "new ",
		"refused an entry is that of a session", "same "} {
		require.True(t, strings.HasPrefix(said[i], want), "%s: %s", want, said[i])
	}
	ids := func(said string) (ids []string) {
		for _, line := range madeIn(t, s)[strings.Fields(said)[1]][1:] {
			ids = append(ids, line["id"].(string))
		}
		return ids[:len(ids)-1]
	}
	require.Equal(t, []string{"u1", "a1", "u2", "a2"}, ids(said[0]))
	require.Equal(t, []string{"u1", "a1", "u2", "a2", "u3", "a3"}, ids(strings.ReplaceAll(said[1], ";", " ")))
}

// TestForeignGrows: what was imported grows with the session, unless it was gone on with.
func TestForeignGrows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(text string) string // of what was imported
		more   string                   // the session
		want   string
	}{
		"grown":                   {nil, claudeText + claudeMore, "longer "},
		"with a title":            {nil, claudeText + `{"type":"ai-title","aiTitle":"T","sessionId":"x"}` + "\n" + claudeMore, "longer "},
		"a title alone":           {nil, claudeText + `{"type":"ai-title","aiTitle":"T","sessionId":"x"}` + "\n", "same "},
		"shorter":                 {nil, strings.Split(claudeText, `{"uuid":"u3"`)[0], "same "},
		"another":                 {nil, strings.Replace(claudeText, "second", "other", 1) + claudeMore, "refused " + errGoneOn.Error()},
		"gone on with":            {func(text string) string { return text + line2 }, claudeText, "same "},
		"gone on with, and grown": {func(text string) string { return text + line2 }, claudeText + claudeMore, "refused " + errGoneOn.Error()},
		"with a title of its own": {func(text string) string { return strings.Replace(text, `"cwd"`, `"titleSource":"user","cwd"`, 1) },
			claudeText + claudeMore, "refused " + errGoneOn.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			s, file := newStore(t, nil), filepath.Join(t.TempDir(), claudeID+".jsonl")
			require.NoError(t, os.WriteFile(file, []byte(claudeText), 0o600))
			at := strings.Fields(strings.ReplaceAll(s.take(file)[0], ";", " "))[1]
			before := all(t, s.top)[at]
			if c.change != nil {
				before = c.change(before)
				put(t, s.top, map[string]string{at: before})
			}
			require.NoError(t, os.WriteFile(file, []byte(c.more), 0o600))
			said := s.take(file)
			require.True(t, strings.HasPrefix(said[0], c.want), said[0])
			after := all(t, s.top)[at]
			if !strings.HasPrefix(c.want, "longer ") {
				require.Equal(t, before, after)
				return
			}
			require.Equal(t, 1, strings.Count(after, "foreign_session_import"))
			lines := madeIn(t, s)[at]
			require.Equal(t, "a4", lines[len(lines)-1]["parentId"])
			require.True(t, strings.HasPrefix(s.take(file)[0], "same "))
		})
	}
}

// TestForeignJoined: a rollout that goes on from another one has what is in that, or is refused.
func TestForeignJoined(t *testing.T) {
	s, elsewhere := newStore(t, nil), t.TempDir()
	const id = "0b7d7a4e-0000-7000-8000-000000000003"
	later := strings.ReplaceAll(codexFile, "000000000002", "000000000003")
	text := fmt.Sprintf(`{"timestamp":"2026-02-17T10:20:30.000Z","type":"session_meta","payload":{"id":"%s","cwd":"/w",`+
		`"history_base":{"thread_id":"0b7d7a4e-0000-7000-8000-000000000002","end_ordinal_exclusive":3,"end_byte_offset":%d}}}
{"timestamp":"2026-02-17T10:20:31.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"two"}]}}
`, id, len(codexText))
	put(t, elsewhere, map[string]string{codexFile: codexText, later: text, "x.jsonl": text})
	packed, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	put(t, elsewhere, map[string]string{"y.jsonl.zst": string(packed.EncodeAll([]byte(codexText), nil))})
	require.Contains(t, s.take(filepath.Join(elsewhere, "y.jsonl.zst"))[0], "new sessions/--w--/")
	said := s.take(filepath.Join(elsewhere, later), filepath.Join(elsewhere, "x.jsonl"))
	require.Contains(t, said[1], "refused it goes on from another rollout")
	content := all(t, s.top)[strings.Fields(said[0])[1]]
	for _, want := range []string{`"one"`, `"first"`, `"two"`, `"sourceId":"` + id} {
		require.Contains(t, content, want)
	}
}

// TestForeignDocument: a session that is one object over many lines is imported, of any length, where it lies and elsewhere; a
// file that its agent does not show is left out.
func TestForeignDocument(t *testing.T) {
	text := "{\n\"sessionId\": \"d\",\n\"projectHash\": \"h\",\n\"startTime\": \"2026-02-16T10:20:30.000Z\",\n\"messages\": [\n" +
		`{"id":"u","type":"user","content":"<session_context>\n- **Workspace Directories:**\n  - /w\n"}` +
		strings.Repeat(",\n{\n\"id\":\n\"x\",\n\"type\": \"info\"\n}", 1000) +
		",\n{\"id\": \"u2\", \"type\": \"user\", \"content\": \"The last one\"}\n]\n}\n"
	const chats = ".gemini/tmp/w/chats/session-"
	for file, given := range map[string]string{chats + "dddddddd.json": ".gemini", "d.json": "d.json"} {
		s, from := newStore(t, nil), t.TempDir()
		put(t, from, map[string]string{
			file: text, ".gemini/tmp/w/logs.json": "[]",
			chats + "2-dddddddd.jsonl": `{"sessionId":"d","projectHash":"h","startTime":"2026-02-17T10:20:30.000Z"}` + "\n",
		})
		said := s.take(filepath.Join(from, given))
		require.Len(t, said, 1)
		require.Contains(t, said[0], "new sessions/--w--/", file)
		for _, lines := range madeIn(t, s) {
			require.Contains(t, fmt.Sprint(lines), "The last one", file)
		}
	}
}
