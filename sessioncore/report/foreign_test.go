package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/claude"
	"sessionfs/sessioncore/agents/codex"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// foreignStore is the sessions of another agent in files below root.
type foreignStore struct {
	*testStore
	bill *sessioncore.Store // the same sessions without texts
}

func newForeignStore(t *testing.T, files map[string]string, show func(storage.Storage) (storage.Files, agents.Format)) *foreignStore {
	root := t.TempDir()
	for name, text := range files {
		sessiontest.WriteFile(t, filepath.Join(root, name), text)
	}
	settleAll()
	raw, agent := show(sessiontest.OpenDir(t, root))
	converted := agents.NewFiles(raw, agent, nil, t.TempDir())
	s := &testStore{t: t, root: root, store: sessioncore.NewStore(converted), files: &opens{}}
	t.Cleanup(s.store.Close)
	s.list = listing.New(s.store, root)
	bill := sessioncore.NewStore(converted.Facts())
	t.Cleanup(bill.Close)
	return &foreignStore{s, bill}
}

// tokens returns the tokens of usage.jsonl by model, with the number of answers, and of a session's total and own.
func (s *foreignStore) tokens() map[string][3]float64 {
	sums := map[string][3]float64{}
	sessions, err := s.list.Sessions(context.Background())
	require.NoError(s.t, err)
	hold := budget.New(budget.Default).Hold()
	c := NewCosts(s.store, Prices{})
	text, err := c.Lines(context.Background(), sessions.All(), &hold)
	require.NoError(s.t, err)
	again, err := c.Lines(context.Background(), sessions.All(), &hold)
	require.NoError(s.t, err)
	require.Equal(s.t, string(text), string(again))
	without, err := NewCosts(s.bill, Prices{}).Lines(context.Background(), sessions.All(), &hold)
	require.NoError(s.t, err)
	require.Equal(s.t, string(text), string(without), "of sessions without texts")
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var line struct {
			Model             string
			AssistantMessages float64
			TotalTokens       float64
			Output            float64
			Cost              *struct{}
			Unpriced          int
		}
		err := d.Decode(&line)
		if errors.Is(err, io.EOF) {
			return sums
		}
		require.NoError(s.t, err)
		require.Nil(s.t, line.Cost)
		require.EqualValues(s.t, line.AssistantMessages, line.Unpriced)
		was := sums[line.Model]
		sums[line.Model] = [3]float64{was[0] + line.AssistantMessages, was[1] + line.TotalTokens, was[2] + line.Output}
	}
}

// record is a record of Claude Code.
func record(typ, uuid, parent, session, more string) string {
	up := "null"
	if parent != "" {
		up = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":%q,"cwd":"/w","version":"1.0.50","timestamp":"2026-03-30T07:13:41.%03dZ",%s}`+"\n",
		typ, uuid, up, session, len(uuid)*7+int(uuid[len(uuid)-1]), more)
}

// block is a record of one block of an answer, with the tokens that the answer had by then.
func block(uuid, parent, session, id string, side bool, output int) string {
	return record("assistant", uuid, parent, session,
		fmt.Sprintf(`"isSidechain":%t,"message":{"id":%q,"role":"assistant","model":"m","content":[{"type":"text","text":%q}],`+
			`"usage":{"input_tokens":3,"output_tokens":%d,"cache_read_input_tokens":50,"cache_creation_input_tokens":7}}`, side, id, uuid, output))
}

func asked(uuid, parent, session string, side bool) string {
	return record("user", uuid, parent, session, fmt.Sprintf(`"isSidechain":%t,"message":{"role":"user","content":%q}`, side, uuid))
}

// TestTokensOfClaude: over all sessions each message counts once, with its last usage: in answers that were written in parts,
// in forks, and in subagents wherever the client of the day writes them.
func TestTokensOfClaude(t *testing.T) {
	begin := asked("u1", "", "main", false) + block("a1", "u1", "main", "M1", false, 1) + block("a2", "a1", "main", "M1", false, 40)
	files := map[string]string{
		"p/main.jsonl": begin + asked("s1", "", "main", true) + block("s2", "s1", "main", "S1", true, 5) + block("s3", "s2", "main", "S1", true, 500) +
			asked("u2", "a2", "main", false) + block("a3", "u2", "main", "M2", false, 6),
		"p/fork.jsonl": strings.ReplaceAll(begin, `"sessionId":"main"`, `"sessionId":"fork","forkedFrom":{"sessionId":"main"}`) +
			asked("u3", "a2", "fork", false) + block("a4", "u3", "fork", "M3", false, 7),
		"p/main/subagents/agent-a.jsonl": asked("x1", "", "main", true) + block("x2", "x1", "main", "X1", true, 9000),
		"p/agent-b.jsonl": asked("y1", "", "main", true) + block("y2", "y1", "main", "Y1", true, 1) +
			block("y3", "y2", "main", "Y1", true, 80000),
	}
	s := newForeignStore(t, files, func(s storage.Storage) (storage.Files, agents.Format) { return claude.NewProjects(s), claude.Format{} })
	require.Equal(t, map[string][3]float64{"anthropic/m": {6, 6*60 + 89553, 89553}}, s.tokens(), "M1, S1, M2, M3, X1 and Y1")
	require.Equal(t, [2]float64{2*60 + 46, 2*60 + 46}, s.ofSession("p/main.jsonl", ""))
	require.Equal(t, [2]float64{2*60 + 47, 67}, s.ofSession("p/fork.jsonl", "p/main.jsonl"))
	require.Equal(t, [2]float64{9060, 9060}, s.ofSession("p/main/subagents/agent-a.jsonl", ""))
	more := block("x3", "x2", "main", "X2", true, 7)
	sessiontest.AppendTo(t, filepath.Join(s.root, "p/main/subagents/agent-a.jsonl"), more)
	require.Equal(t, [3]float64{7, 7*60 + 89560, 89560}, s.tokens()["anthropic/m"], "of a subagent that is at work")
}

// ofSession returns the tokens of a session, in all and without those of its parent.
func (s *foreignStore) ofSession(name, parent string) [2]float64 {
	acquire := func(name string) *sessioncore.Snapshot {
		if name == "" {
			return nil
		}
		return sessiontest.Snapshot(s.t, s.store.Session(name))
	}
	doc, err := Usage(context.Background(), acquire(name), sessioncore.NoEntry, acquire(parent), Prices{}, Sum{})
	require.NoError(s.t, err)
	var usage struct{ Total, Own struct{ TotalTokens float64 } }
	require.NoError(s.t, json.Unmarshal(sessiontest.ReadExactly(s.t, doc, nil), &usage))
	return [2]float64{usage.Total.TotalTokens, usage.Own.TotalTokens}
}

// TestTokensOfCodex: over all sessions, what was used between two totals counts once, and what a fork has from its parent not
// again.
func TestTokensOfCodex(t *testing.T) {
	at := 0
	line := func(typ, payload string) string {
		at += 1500
		return fmt.Sprintf(`{"timestamp":"2026-03-30T07:13:%02d.%03dZ","type":%q,"payload":{%s}}`+"\n", at/1000, at%1000, typ, payload)
	}
	meta := func(id, more string) string {
		return line("session_meta", fmt.Sprintf(`"id":%q,"timestamp":"2026-03-30T07:13:00.000Z","cwd":"/w","cli_version":"0.104.0"%s`, id, more))
	}
	said := func(role, kind string) string {
		return line("response_item", fmt.Sprintf(`"type":"message","role":%q,"content":[{"type":%q,"text":"text %d"}]`, role, kind, at))
	}
	counted := func(total, input, out int) string {
		return line("event_msg", fmt.Sprintf(`"type":"token_count",`+
			`"info":{"total_token_usage":{"total_tokens":%d},`+
			`"last_token_usage":{"input_tokens":%d,"cached_input_tokens":0,"output_tokens":%d,"total_tokens":%d}}`, total, input, out, input+out))
	}
	turn := line("turn_context", `"model":"m"`)
	first := meta("11111111-1111-7111-8111-111111111111", "")
	rest := turn + said("user", "input_text") + said("assistant", "output_text") + counted(110, 100, 10) + counted(110, 100, 10) +
		said("user", "input_text") + said("assistant", "output_text") + counted(160, 30, 20)
	const dir = "sessions/2026/03/30/rollout-2026-03-30T07-13-0"
	at = 40_000
	forked := meta("22222222-2222-7222-8222-222222222222", `,"forked_from_id":"11111111-1111-7111-8111-111111111111"`)
	files := map[string]string{
		dir + "0-11111111-1111-7111-8111-111111111111.jsonl": first + rest,
		dir + "9-22222222-2222-7222-8222-222222222222.jsonl": forked + first + rest +
			said("user", "input_text") + said("assistant", "output_text") + counted(1160, 900, 100),
	}
	s := newForeignStore(t, files, func(s storage.Storage) (storage.Files, agents.Format) {
		home := codex.New(s, "")
		return home, home
	})
	require.Equal(t, map[string][3]float64{"openai-codex/m": {3, 1160, 130}}, s.tokens())
	sessions, err := s.list.Sessions(context.Background())
	require.NoError(t, err)
	require.Len(t, sessions.All(), 2)
}
