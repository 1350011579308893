package all

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/sessiontest"
)

// records are the first lines of files, by their kind.
var records = map[string]string{
	"claude":   `{"type":"user","uuid":"u1","sessionId":"s","message":{"role":"user","content":"Ducks"}}`,
	"summary":  `{"type":"summary","summary":"Ducks","leafUuid":"u1"}`,
	"snapshot": `{"type":"file-history-snapshot","messageId":"u1","snapshot":{}}`,
	"qwen":     `{"uuid":"u1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Ducks"}]}}`,
	"system":   `{"uuid":"u1","parentUuid":null,"sessionId":"s","type":"system","subtype":"ui_telemetry","systemPayload":{}}`,
	"kimi":     `{"type":"metadata","protocol_version":"1.5","created_at":1795885836994}`,
	"amp":      `{"role":"user","content":[{"type":"text","text":"Ducks"}],"messageId":0}`,
	"turn":     `{"type":"turn.prompt","agentId":"main","input":[],"time":1795885836994}`,
	"goose":    `{"working_dir":"/w","description":"Ducks","message_count":2}`,
	"codex":    `{"type":"session_meta","payload":{"id":"s","cwd":"/w"}}`,
	"long":     `{"type":"session_meta","payload":{"id":"s","base_instructions":"` + strings.Repeat("duck ", 2000) + `"}}`,
	"bare":     `{"id":"s","timestamp":"2025-06-03T09:00:00.000Z","instructions":null,"git":{}}`,
	"item":     `{"timestamp":"2025-06-03T09:00:00.000Z","type":"response_item","payload":{"type":"message"}}`,
	"gemini":   `{"sessionId":"s","projectHash":"h","kind":"main"}`,
	"message": `{"sessionId":"s","startTime":"2026-01-05T10:00:00.000Z"}` + "\n" +
		`{"id":"m","type":"user","timestamp":"2026-01-05T10:00:00.000Z","content":` + strings.Repeat("[", 5000) + "\"Ducks",
	"document": "{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"h\",\n  \"messages\": [" + strings.Repeat("\n  {},", 2000) + "\n  {}]\n}",
	"copilot":  `{"type":"session.start","data":{},"id":"e","parentId":null}`,
	"start": `{"type":"session.start","data":{"sessionId":"s","context":{"cwd":"/w","branch":"` + strings.Repeat("duck-", 2000) + `"}},` +
		`"id":"e","parentId":null}`,
	"legacy": `{"type":"session.import_legacy","data":{"legacySession":{"sessionId":"s","chatMessages":[{"role":"user","content":"` +
		strings.Repeat("duck ", 2000) + `"}]}},"id":"e","parentId":null}`,
	"log":      `{"type":"session.start","data":{"session":"` + strings.Repeat("duck ", 2000) + `"}}`,
	"omp":      `{"type":"session","version":3,"id":"s","cwd":"/w"}`,
	"slot":     `{"type":"title","v":1,"title":"Ducks","updatedAt":"","pad":""}`,
	"entry":    `{"type":"message","id":"e","parentId":null,"message":{"role":"user"}}`,
	"operator": `{"type":"session_header","id":"s"}`,
	"damaged":  "\x00\x00{\"type\":\nducks\n",
	"torn":     `{"uuid":"u1","sessionId":"s","message":{"role":"user","content":"` + strings.Repeat("duck ", 2000) + `"},"type":"user"}`,
	"half": `{"uuid":"u1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Ducks"}]}}` + "\n" +
		`{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"tool_result","cwd":"/` + strings.Repeat("duck/", 2000),
	"empty":   "",
	"members": "{}\n",
}

// TestOwner: one record tells whose a directory is; without any its names do. Files that no agent wrote are counted.
func TestOwner(t *testing.T) {
	for _, c := range []struct {
		files  string // path=kind of records, separated by blanks
		want   string // the agent, "" for omp
		unread int
	}{
		{"projects/-w/s.jsonl=claude", "claude", 0},
		{"projects/-w/s.jsonl=summary", "claude", 0},
		{"projects/-w/s.jsonl=snapshot", "claude", 0},
		{"projects/-w/s.jsonl=torn", "claude", 0},
		{"projects/-w/s.jsonl=empty", "claude", 0},
		{"projects/-w/s/subagents/agent-a.jsonl=claude", "claude", 0},
		{"projects/-w/chats/s.jsonl=amp projects/-w/chats/t.jsonl=goose", "", 2},
		{"projects/-w/chats/s.jsonl=goose tmp/h/chats/x=empty", "", 1},
		{"projects/-w/chats/s.jsonl=amp tmp/h/chats/session-s.json=document", "gemini", 0},
		{"projects/-w/s.jsonl=amp projects/-x/t.jsonl=claude", "claude", 0},
		{"projects/-w/chats/s.jsonl=qwen", "qwen", 0},
		{"projects/-w/chats/s.jsonl=system tmp/h/chats/x=empty", "qwen", 0},
		{"projects/-w/chats/s.jsonl=half", "qwen", 0},
		{"projects/-w/chats/s.jsonl=qwen projects/-w/t.jsonl=claude", "claude", 0},
		{"sessions/wd_w_1/session_s/agents/main/wire.jsonl=kimi", "kimi", 0},
		{"sessions/wd_w_1/session_s/agents/main/wire.jsonl=turn", "kimi", 0},
		{"sessions/wd_w_1/session_s/agents/main/wire.jsonl=goose", "", 1},
		{"sessions/20250101_1.jsonl=goose", "", 1},
		{"sessions/20250101_1.jsonl=empty", "", 0},
		{"sessions/2026/05/12/rollout-s.jsonl=codex", "codex", 0},
		{"sessions/2026/05/12/rollout-s.jsonl=long", "codex", 0},
		{"sessions/2026/05/12/rollout-s.jsonl=bare", "codex", 0},
		{"sessions/2026/05/12/rollout-s.jsonl=item", "codex", 0},
		{"sessions/2026/05/12/rollout-s.jsonl.zst=damaged", "codex", 0},
		{"sessions/2026/05/12/rollout-s.jsonl=amp", "", 1},
		{"tmp/garden/chats/session-s.jsonl=gemini", "gemini", 0},
		{"tmp/garden/chats/session-s.json=document tmp/garden/other.jsonl=amp", "gemini", 0},
		{"tmp/garden/chats/session-s.jsonl=message", "gemini", 0},
		{"tmp/garden/chats/session-s.json=members", "gemini", 0},
		{"tmp/garden/chats/session-s.json=goose", "", 1},
		{"session-state/s/events.jsonl=copilot", "copilot", 0},
		{"session-state/s/events.jsonl=start", "copilot", 0},
		{"session-state/s.jsonl=legacy", "copilot", 0},
		{"session-state/s/events.jsonl=log", "", 1},
		{"session-state/s/files/ducks.jsonl=goose session-state/t/events.jsonl=copilot", "copilot", 0},
		{"sessions/-w/s.jsonl=omp projects/-w/s.jsonl=claude", "", 0},
		{"sessions/-w/s.jsonl=amp projects/-w/s.jsonl=claude", "claude", 0},
		{"sessions/-w/s.jsonl=slot", "", 0},
		{"sessions/-w/s.jsonl=entry", "", 0},
		{"sessions/s.jsonl=operator", "", 0},
		{"sessions/-w/1.jsonl=damaged", "", 0},
		{"sessions/-w/1.jsonl=damaged sessions/-w/2.jsonl=omp", "", 0},
		{"sessions/-w/1.jsonl=goose sessions/-w/2.jsonl=omp", "", 0},
		{"sessions/-w/1.jsonl=damaged sessions/-w/2.jsonl=amp", "", 2},
	} {
		dir := t.TempDir()
		for file := range strings.FieldsSeq(c.files) {
			name, kind, _ := strings.Cut(file, "=")
			text, isKnown := records[kind]
			require.True(t, isKnown, kind)
			sessiontest.WriteFile(t, filepath.Join(dir, name), text)
		}
		require.Equal(t, c.want, ownerName(dir), c.files)
		require.Equal(t, c.unread, agents.Unread(dir), c.files)
	}
}

// TestOwnerIsBounded: files of others are sampled up to a limit, links and pipes are not opened, and a file that was replaced is
// read again.
func TestOwnerIsBounded(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "projects/-w")
	require.NoError(t, os.MkdirAll(project, 0o700))
	write := func(name, kind string) {
		require.NoError(t, os.WriteFile(filepath.Join(project, name), []byte(records[kind]), 0o600))
	}
	for i := range 40 {
		write(fmt.Sprintf("%02d.jsonl", i), "amp")
	}
	write("99.jsonl", "claude")
	require.Nil(t, agents.Of(dir), "the 41st file")
	write("00.jsonl", "claude")
	require.NotNil(t, agents.Of(dir), "the first one")

	require.NoError(t, os.RemoveAll(project))
	require.NoError(t, os.Mkdir(project, 0o700))
	elsewhere := filepath.Join(dir, "elsewhere.jsonl")
	require.NoError(t, os.WriteFile(elsewhere, []byte(records["amp"]), 0o600))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(project, "1.jsonl")))
	require.NotNil(t, agents.Of(dir), "a link is no record")
	require.Zero(t, agents.Unread(dir))
}

// TestUnderstood: a beginning is understood if an agent wrote one of its records, or if it has none.
func TestUnderstood(t *testing.T) {
	const beginning = 4096 // as ReadBeginning reads
	for kind, text := range records {
		isOfOthers := kind == "amp" || kind == "goose" || kind == "log"
		isWhole := len(text) < beginning
		read := text[:min(len(text), beginning)]
		require.Equal(t, !isOfOthers, agents.IsUnderstood([]byte(read), isWhole), kind)
	}
	const typed, untyped = `{"type":"user","message":{"pieces":[{"text":"ducks`, `{"message":{"parts":[{"text":"ducks`
	require.False(t, agents.IsUnderstood([]byte(typed), false), "a record that is cut tells by its type")
	require.True(t, agents.IsUnderstood([]byte(untyped), false), "or not at all")
}

// TestUnreadHomes: directories of agents that are not read are named, unless an agent reads them.
func TestUnreadHomes(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "XDG_DATA_HOME": filepath.Join(home, "d")}
	getenv := func(name string) string { return env[name] }
	require.Empty(t, agents.UnreadHomes(getenv))
	for _, dir := range []string{".qwen", ".kimi", "d/amp", ".local/share/goose", ".cursor", ".claude/projects"} {
		require.NoError(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	var found []string
	for _, h := range agents.UnreadHomes(getenv) {
		below, _ := filepath.Rel(home, h.Dir)
		found = append(found, h.Title+" "+below)
	}
	require.Equal(t, []string{"Cursor .cursor", "Goose .local/share/goose", "Amp d/amp", "Kimi CLI .kimi"}, found)
	require.Equal(t, "Kimi CLI", agents.TitleOfUnread("/x/.kimi"))
	require.Empty(t, agents.TitleOfUnread("/x/.claude"))
}

// TestWriterOfFile: a lone file is known by its first record, also by one that is longer than what is read of it.
func TestWriterOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ducks.jsonl")
	for kind, want := range map[string]string{"start": "copilot", "legacy": "copilot", "long": "codex"} {
		text := strings.Replace(records[kind], "duck", strings.Repeat("duck", 100_000), 1)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		agent, record, ok := agents.WriterOfFile(file)
		require.True(t, ok, kind)
		require.Equal(t, want, agent.Name)
		require.True(t, record.Member("type").IsString(), kind)
	}
}
