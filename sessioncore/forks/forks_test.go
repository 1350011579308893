package forks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	_ "sessionfs/sessioncore/agents/all"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

const (
	claudeFile  = "projects/-w/5a5a5a5a-0000-4000-8000-000000000001.jsonl"
	copilotFile = "session-state/5a5a5a5a-0000-4000-8000-000000000001/events.jsonl"
	geminiFile  = "tmp/w/chats/session-2026-10-06T09-00-5a5a5a5a.jsonl"
	qwenFile    = "projects/-w/chats/5a5a5a5a-0000-4000-8000-000000000001.jsonl"
	kimiFile    = "sessions/wd_w/session_5a5a5a5a-0000-4000-8000-000000000001/agents/main/wire.jsonl"
	codexFile   = "sessions/2026/11/28/rollout-2026-11-28T10-00-00-5a5a5a5a-0000-4000-8000-000000000001.jsonl"
)

// home is an agent's directory with a Home for forks.
type home struct {
	*agentstest.Home
	forks *Home
	store *sessioncore.Store
}

// newHome returns the home of an agent with a file of it.
func newHome(t testing.TB, agent, file, text string) *home {
	dir := t.TempDir()
	sessiontest.WriteFile(t, filepath.Join(dir, file), text)
	return openHome(t, agent, dir)
}

// openHome returns the home of an agent in a directory.
func openHome(t testing.TB, agent, dir string) *home {
	of := agentstest.Open(t, agent, dir, sessiontest.OpenDir(t, dir))
	h := &home{Home: of, store: sessioncore.NewStore(of.Files)}
	t.Cleanup(h.store.Close)
	h.store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
	h.forks = &Home{
		Agent:  agents.Find(agent),
		Format: of.Format.(agents.Forker),
		Files:  of.Files.Files,
		Journal: func(name string) (storage.Journal, error) {
			return sessiontest.OpenDir(t, filepath.Join(dir, name)), nil
		},
		Temporary: t.TempDir(),
		Now:       time.Now,
	}
	return h
}

// fork makes a fork of a session.
func (h *home) fork(name, id, title string) (string, error) {
	return h.forks.Fork(context.Background(), h.store.Session(name), id, title)
}

// path returns the path of the file of a session.
func (h *home) path(name string) string {
	dir, base, _ := strings.Cut(name, "/")
	switch h.Agent {
	case "codex":
		return filepath.Join(h.Dir, "sessions", strings.ReplaceAll(dir, "-", "/"), base)
	case "copilot":
		return filepath.Join(h.Dir, dir, strings.TrimSuffix(base, ".jsonl"), "events.jsonl")
	case "kimi":
		return filepath.Join(h.Dir, "sessions", dir, strings.TrimSuffix(base, ".jsonl"), "agents/main/wire.jsonl")
	case "gemini":
		return filepath.Join(h.Dir, "tmp", dir, "chats", base)
	case "qwen":
		return filepath.Join(h.Dir, "projects", dir, "chats", base)
	}
	return filepath.Join(h.Dir, "projects", name)
}

// entries returns the ids of a session's entries.
func (h *home) entries(name string) (ids []string) {
	snap, err := h.store.Session(name).Acquire(context.Background())
	require.NoError(h.T, err)
	defer snap.Release()
	for e := range snap.Len() {
		id, _ := snap.ID(sessioncore.Entry(e))
		ids = append(ids, id)
	}
	return ids
}

// leaf returns the id of a session's leaf, "" for none, and the tokens of the entries that have any, by id.
func (h *home) leaf(name string) (id string, spent map[string]int64) {
	snap, err := h.store.Session(name).Acquire(context.Background())
	require.NoError(h.T, err)
	defer snap.Release()
	end, err := snap.Leaf()
	require.NoError(h.T, err)
	spent = map[string]int64{}
	for e := range snap.Len() {
		id, _ := snap.ID(sessioncore.Entry(e))
		text, err := snap.EntryText(sessioncore.Entry(e))
		require.NoError(h.T, err)
		tokens := agents.Count(text.Member("message").Member("usage").Member("totalTokens"))
		if tokens > 0 {
			spent[id] = tokens
		}
	}
	if end != sessioncore.NoEntry {
		id, _ = snap.ID(end)
	}
	return id, spent
}

// files returns the content of all files in a directory, with their times.
func files(t testing.TB, dir string) map[string]string {
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		info, err := item.Info()
		require.NoError(t, err)
		found[name] = info.ModTime().String() + info.Mode().String() + string(text)
		return nil
	}))
	return found
}

// TestEveryEntry forks the samples of each agent at every entry. No existing file changes. The fork
// names its original, and its answers have ids of the original, so that they count once. A fork's
// leaf can be forked once more.
func TestEveryEntry(t *testing.T) {
	for agent, file := range map[string]string{
		"claude":  claudeFile,
		"codex":   codexFile,
		"copilot": copilotFile,
		"gemini":  geminiFile,
		"kimi":    kimiFile,
		"qwen":    qwenFile,
	} {
		samples, err := filepath.Glob(filepath.Join(sessiontest.TestData(t), "agents", agent, "*.jsonl"))
		require.NoError(t, err)
		whole, err := filepath.Glob(filepath.Join(sessiontest.TestData(t), "forks", agent+"*.jsonl"))
		require.NoError(t, err)
		require.NotEmpty(t, samples)
		require.NotEmpty(t, whole)
		for _, sample := range append(samples, whole...) {
			t.Run(filepath.Base(sample), func(t *testing.T) {
				text, err := os.ReadFile(sample)
				require.NoError(t, err)
				h := newHome(t, agent, file, string(text))
				for _, name := range h.Sessions("") {
					if strings.Count(name, "/") == 1 { // else a subagent's
						h.forkEverywhere(t, name)
					}
				}
			})
		}
	}
}

// forkEverywhere forks a session at each of its entries, checks each fork, and removes it.
func (h *home) forkEverywhere(t *testing.T, name string) {
	_, spent := h.leaf(name)
	// These have a line that is none.
	isDamaged := slices.Contains([]string{"pending.jsonl", "damage.jsonl", "5-tools-shell.jsonl"}, filepath.Base(t.Name()))
	for _, id := range h.entries(name) {
		before := files(t, h.Dir)
		forked, err := h.fork(name, id, "")
		if isDamaged && err != nil && strings.Contains(err.Error(), "is damaged") {
			require.ErrorIs(t, err, sessioncore.ErrInvalid)
			continue
		}
		if h.Agent == "gemini" && err != nil {
			h.checkGeminiRefusal(name, id, err)
			continue
		}
		require.NoError(t, err, id)
		h.checkFork(t, forked, before, spent)
		leaf, _ := h.leaf(forked)
		if leaf != "" { // else it has settings alone
			again, err := h.fork(forked, leaf, "")
			require.NoError(t, err, id)
			h.remove(again)
		}
		h.remove(forked)
	}
}

// checkGeminiRefusal checks that a fork of Gemini CLI was refused where nothing was said, or where an error had the
// client take a prompt back.
func (h *home) checkGeminiRefusal(name, id string, err error) {
	require.ErrorIs(h.T, err, sessioncore.ErrInvalid)
	if h.hasWords(name, id) {
		require.ErrorContains(h.T, err, "took the prompt before this error out")
		require.Equal(h.T, "e1", id)
		return
	}
	require.ErrorContains(h.T, err, "nothing was said up to here")
}

// hasWords reports whether there is a message or a compaction up to an entry.
func (h *home) hasWords(name, id string) bool {
	snap, err := h.store.Session(name).Acquire(context.Background())
	require.NoError(h.T, err)
	defer snap.Release()
	end, err := snap.Find(id)
	require.NoError(h.T, err)
	return slices.ContainsFunc(snap.Path(end), func(e sessioncore.Entry) bool {
		return snap.Kind(e) == sessioncore.TypeMessage || snap.Kind(e) == sessioncore.TypeCompaction
	})
}

// remove removes the files of a fork.
func (h *home) remove(name string) {
	for file := range files(h.T, h.Dir) {
		if h.isOf(file, name) {
			require.NoError(h.T, os.Remove(file))
		}
	}
}

// isOf reports whether a file is that of a fork, or one that the agent expects beside it.
func (h *home) isOf(file, name string) bool {
	at := h.path(name)
	isState := h.Agent == "kimi" && file == filepath.Join(filepath.Dir(at), "../../state.json")
	return file == at || isState
}

// checkFork checks that the files of a fork are the only new ones, and that its answers are of the original.
func (h *home) checkFork(t *testing.T, forked string, before map[string]string, spent map[string]int64) {
	after := files(t, h.Dir)
	info, err := os.Stat(h.path(forked))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	maps.DeleteFunc(after, func(file, _ string) bool { return h.isOf(file, forked) })
	require.Equal(t, before, after)
	_, copied := h.leaf(forked)
	for id := range copied {
		require.Contains(t, spent, id)
	}
}

// TestClaudeRecords: the forks of a session have the records of forks that the client resumed, whose
// next requests were those of the original.
func TestClaudeRecords(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "claude.jsonl"))
	require.NoError(t, err)
	wants, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "claude.want"))
	require.NoError(t, err)
	h := newHome(t, "claude", claudeFile, string(text))
	name := h.Sessions("")[0]
	got := map[string]bool{}
	for _, id := range h.entries(name) {
		forked, err := h.fork(name, id, "A name")
		require.NoError(t, err)
		records := h.records(forked)
		last := records[len(records)-1]
		require.Equal(t, map[string]any{
			"type": "custom-title", "customTitle": "A name", "sessionId": strings.TrimSuffix(filepath.Base(forked), ".jsonl"),
		}, last)
		got[checkChain(t, records[:len(records)-1])] = true
	}
	for want := range strings.Lines(string(wants)) {
		require.True(t, got[strings.TrimSuffix(want, "\n")], want)
	}
}

// records returns the values of the lines in a session's file.
func (h *home) records(name string) (records []map[string]any) {
	text, err := os.ReadFile(h.path(name))
	require.NoError(h.T, err)
	for line := range strings.Lines(string(text)) {
		record := map[string]any{}
		require.NoError(h.T, json.Unmarshal([]byte(line), &record))
		records = append(records, record)
	}
	return records
}

// checkChain checks that each record hangs on the one before it, and returns the beginnings of their uuids.
func checkChain(t *testing.T, records []map[string]any) string {
	var uuids []string
	var before any
	for _, r := range records {
		if r["subtype"] == "compact_boundary" {
			before = nil
		}
		require.Equal(t, before, r["parentUuid"])
		require.Equal(t, "cli", r["entrypoint"])
		require.Equal(t, r["uuid"], r["forkedFrom"].(map[string]any)["messageUuid"])
		before = r["uuid"]
		uuids = append(uuids, r["uuid"].(string)[:8])
	}
	return strings.Join(uuids, " ")
}

// TestQwenRecords: a fork has the records on the path to its last entry, each of which hangs on the one before it, and a name as
// the client writes it. Those that only the original has are left out.
func TestQwenRecords(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "qwen.jsonl"))
	require.NoError(t, err)
	h := newHome(t, "qwen", qwenFile, string(text))
	name := h.Sessions("")[0]
	for words, want := range map[string]string{
		"rain: none":      "3 4 5 6 7",
		"all of them":     "3 4 5 6 7 8 10 13 14 15",
		"Watered bed 3":   "3 4 5 6 7 8 10 16 17 18",
		"is watered":      "3 4 5 6 7 8 10 16 17 18 19",
		"at bed 3 again.": "3 4 5 6 7 8 10 16 17 18 19 20 21",
	} {
		forked, err := h.fork(name, h.entryWith(name, words), "A name")
		require.NoError(t, err)
		records := h.records(forked)
		var before any
		var numbers []string
		for _, r := range records {
			require.Equal(t, before, r["parentUuid"])
			require.Equal(t, strings.TrimSuffix(filepath.Base(forked), ".jsonl"), r["sessionId"])
			require.Equal(t, "/srv/garden", r["cwd"])
			before = r["uuid"]
			numbers = append(numbers, strings.TrimLeft(r["uuid"].(string)[:8], "0"))
		}
		last := len(records) - 1
		require.Equal(t, want, strings.Join(numbers[:last], " "))
		require.Equal(t, map[string]any{"customTitle": "A name", "titleSource": "manual"}, records[last]["systemPayload"])
		require.Equal(t, "custom_title", records[last]["subtype"])
		for _, r := range records[:last] {
			require.Equal(t, map[string]any{"sessionId": "5a5a5a5a-0000-4000-8000-000000000001", "messageUuid": r["uuid"]}, r["forkedFrom"])
		}
	}
}

// TestKimiFiles: a fork has the lines of the original byte for byte, and the client's note behind them and in the
// place of those that gave rights. Its
// state.json names the original, and the subagents, whose ids the client then gives to no others. The images
// that its lines name lie beside it.
func TestKimiFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "kimi.jsonl"))
	require.NoError(t, err)
	const (
		dir   = "sessions/wd_w/session_5a5a5a5a-0000-4000-8000-000000000001/"
		image = "99147855131b9cf2eb1548d1d598d4a398391962cbf4f314bc17b879edebc1be"
	)
	h := newHome(t, "kimi", kimiFile, string(text))
	h.Put(dir+"state.json", `{"cwd":"/srv/pond","title":"Herons","titleKind":"generated","agents":{"main":{},"agent-0":{"type":"sub"},"..":{}}}`)
	h.Put(dir+"agents/agent-0/wire.jsonl", `{"type":"metadata","protocol_version":"1.5","created_at":1795976810000}`)
	h.Put(dir+"agents/main/blobs/"+image, "the image")
	h.Put(dir+"agents/main/blobs/other", "another image")
	name := "wd_w/session_5a5a5a5a-0000-4000-8000-000000000001.jsonl"
	for words, want := range map[string]struct {
		title  string
		lines  int
		images []string
	}{
		"Answer 13 to: PLAIN two": {title: "", lines: 152},
		"Answer 18 to":            {title: "Toads", lines: 224},
		"Answer 2 to: IMG seven":  {title: "", lines: 266, images: []string{image}},
	} {
		forked, err := h.fork(name, h.entryWith(name, words), want.title)
		require.NoError(t, err)
		got, err := os.ReadFile(h.path(forked))
		require.NoError(t, err)
		lines := strings.SplitAfter(string(got), "\n")
		note := lines[want.lines]
		require.Regexp(t, `^{"type":"forked","agentId":"main","time":\d+}\n$`, note)
		require.Equal(t, []string{""}, lines[want.lines+1:])
		for i, line := range strings.SplitAfter(string(text), "\n")[:want.lines] {
			if strings.HasPrefix(line, `{"type":"permission.set_mode"`) {
				line = note // the fork has the rights of a new session
			}
			require.Equal(t, line, lines[i])
		}
		id := strings.TrimSuffix(path.Base(forked), ".jsonl")
		session := filepath.Dir(filepath.Dir(filepath.Dir(h.path(forked))))
		state := map[string]any{}
		stateText, err := os.ReadFile(filepath.Join(session, "state.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(stateText, &state))
		require.Equal(t, id, state["id"])
		require.Equal(t, "/srv/pond", state["cwd"])
		require.Equal(t, "session_5a5a5a5a-0000-4000-8000-000000000001", state["forkedFrom"])
		require.Equal(t, map[string]any{
			"main": map[string]any{"type": "main"}, "agent-0": map[string]any{"type": "sub", "parentAgentId": "main"},
		}, state["agents"])
		if want.title == "" {
			require.Equal(t, []any{"Fork: Herons", "generated", false}, []any{state["title"], state["titleKind"], state["isCustomTitle"]})
		} else {
			require.Equal(t, []any{want.title, "custom", true}, []any{state["title"], state["titleKind"], state["isCustomTitle"]})
		}
		var images []string
		for file := range files(t, filepath.Join(session, "agents")) {
			if strings.Contains(file, "/blobs/") {
				images = append(images, filepath.Base(file))
			}
		}
		require.Equal(t, want.images, images)
	}
	_, err = h.fork(strings.TrimSuffix(name, ".jsonl")+"/subagents/agent-0.jsonl", "x", "")
	require.Error(t, err)
}

// entryWith returns the id of the entry with certain words.
func (h *home) entryWith(name, words string) (id string) {
	snap, err := h.store.Session(name).Acquire(context.Background())
	require.NoError(h.T, err)
	defer snap.Release()
	for e := range snap.Len() {
		text, err := snap.EntryText(sessioncore.Entry(e))
		require.NoError(h.T, err)
		if strings.Contains(string(text), words) {
			id, _ = snap.ID(sessioncore.Entry(e))
		}
	}
	require.NotEmpty(h.T, id, words)
	return id
}

// TestCodexLines: a fork has the lines of the original byte for byte, but for the first one.
func TestCodexLines(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "codex-paginated.jsonl"))
	require.NoError(t, err)
	h := newHome(t, "codex", codexFile, string(text))
	name := h.Sessions("")[0]
	ids := h.entries(name)
	forked, err := h.fork(name, ids[len(ids)-1], "")
	require.NoError(t, err)
	got, err := os.ReadFile(h.path(forked))
	require.NoError(t, err)
	_, original, _ := strings.Cut(string(text), "\n")
	_, lines, _ := strings.Cut(string(got), "\n")
	require.NotEmpty(t, lines)
	require.True(t, strings.HasPrefix(original, lines))
	meta := h.records(forked)[0]["payload"].(map[string]any)
	old := h.records(name)[0]["payload"].(map[string]any)
	require.Equal(t, old["id"], meta["forked_from_id"])
	require.Equal(t, strings.TrimSuffix(forked[len(forked)-len("12345678-1234-1234-1234-123456789012.jsonl"):], ".jsonl"), meta["id"])
	require.Equal(t, "cli", meta["source"])
	require.Equal(t, old["base_instructions"], meta["base_instructions"])
	sessiontest.AppendTo(t, h.path(name), `{"timestamp":"2026-11-28T17:50:00.000Z","type":"response_item",`+
		`"payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"a note"}]}}`+"\n")
	noted := h.entries(name)
	_, err = h.fork(name, noted[len(noted)-1], "")
	require.ErrorContains(t, err, "has no ordinal")
	_, err = h.fork(name, ids[0], "A name")
	require.ErrorContains(t, err, "Codex keeps names in a file of its own")
}

// TestWholeLine: a line is copied whole, so a fork ends at the last one of the entries that follow each other and end with the
// same line, whatever lines before it they have.
func TestWholeLine(t *testing.T) {
	entry := func(id, parent, origin string) string {
		return `{"type":"message","id":"` + id + `","parentId":` + parent + `,"timestamp":"2026-11-28T10:00:00.000Z",` +
			`"message":{"role":"user","content":"x"},"origin":` + origin + "}\n"
	}
	dir := t.TempDir()
	sessiontest.WriteFile(t, filepath.Join(dir, "s.jsonl"), `{"type":"session","version":3,"id":"s"}`+"\n"+
		entry("a", "null", `{"lines":[3,5]}`)+
		entry("b", `"a"`, `{"line":3}`)+
		entry("c", `"a"`, `{"line":5}`)+
		entry("d", `"a"`, `{"line":5}`)+
		entry("e", `"c"`, `{"lines":[4,5]}`)+
		entry("f", `"e"`, `{"line":5,"path":"other.jsonl"}`)+
		entry("g", `"e"`, `{"lines":[5,6]}`)+
		entry("h", `"g"`, `{"line":6}`))
	store := sessioncore.NewStore(sessiontest.OpenDir(t, dir))
	defer store.Close()
	snap, err := store.Session("s.jsonl").Acquire(t.Context())
	require.NoError(t, err)
	defer snap.Release()
	for id, want := range map[string]string{"a": "e", "b": "b", "c": "e", "e": "e", "g": "h", "h": "h"} {
		e, err := snap.Find(id)
		require.NoError(t, err)
		last, err := wholeLine(snap, e)
		require.NoError(t, err)
		got, _ := snap.ID(last)
		require.Equal(t, want, got, id)
	}
}

// TestRefused: a fork that could not be resumed is refused, and no file is made.
func TestRefused(t *testing.T) {
	record := func(uuid, parent, more string) string {
		return `{"type":"user","uuid":"` + uuid + `","parentUuid":` + parent + `,"sessionId":"s","timestamp":"2026-11-28T10:00:00Z",` +
			`"message":{"role":"user","content":"words of ` + uuid + `"}` + more + "}\n"
	}
	long := `,"more":"` + strings.Repeat("x", agents.MaxForkedRecord) + `"`
	for name, test := range map[string]struct{ text, id, want string }{
		"unknown": {record("a", "null", ""), "b", "no such entry"},
		"damaged": {record("a", "null", "") + "{\"torn\n" + record("c", `"b"`, ""), "c", "a line of the file is damaged"},
		"circle":  {record("a", `"b"`, "") + record("b", `"a"`, ""), "b", "comes after itself"},
		"long":    {record("a", "null", long) + record("b", `"a"`, ""), "b", "at most 33554432"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "claude", claudeFile, test.text)
			before := files(t, h.Dir)
			_, err := h.fork(h.Sessions("")[0], test.id, "")
			require.ErrorContains(t, err, test.want)
			require.Equal(t, before, files(t, h.Dir))
		})
	}
	h := newHome(t, "claude", claudeFile, record("a", "null", ""))
	h.forks.Closed = sessioncore.ErrReadOnly
	_, err := h.fork(h.Sessions("")[0], "a", "")
	require.ErrorIs(t, err, sessioncore.ErrReadOnly)
}

// TestSubagent: a subagent's session is not forked.
func TestSubagent(t *testing.T) {
	h := newHome(t, "claude", "projects/-w/5a5a5a5a-0000-4000-8000-000000000001/subagents/agent-1.jsonl",
		`{"type":"user","uuid":"a","parentUuid":null,"isSidechain":true,"sessionId":"s","message":{"role":"user","content":"x"}}`+"\n")
	_, err := h.fork("-w/5a5a5a5a-0000-4000-8000-000000000001/subagents/agent-1.jsonl", "a", "")
	require.ErrorContains(t, err, "a subagent's session cannot be resumed")
}

// changed is a Forker that changes the words of a fork.
type changed struct {
	agents.Forker
	old, new string
}

// Fork implements agents.Forker.
func (c changed) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	var text strings.Builder
	place, err := c.Forker.Fork(request, &text)
	if err == nil {
		_, err = io.WriteString(out, strings.ReplaceAll(text.String(), c.old, c.new))
	}
	return place, err
}

// TestDifferent: a fork whose conversation differs from the original's does not appear.
func TestDifferent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "claude.jsonl"))
	require.NoError(t, err)
	h := newHome(t, "claude", claudeFile, string(text))
	name := h.Sessions("")[0]
	before := files(t, h.Dir)
	forker := h.forks.Format
	for want, words := range map[string][2]string{
		"differ in message 1 ": {"turn one", "turn two"},
		"differ in message 4 ": {`"name":"Bash"`, `"name":"bash"`},
		"differ in message":    {"Answer 4", "Answer 44"},
	} {
		h.forks.Format = changed{Forker: forker, old: words[0], new: words[1]}
		ids := h.entries(name)
		_, err = h.fork(name, ids[20], "")
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, sessioncore.ErrInvalid)
		require.Equal(t, before, files(t, h.Dir))
	}
}

// TestGeminiRecords: a fork has the lines of the original byte for byte, but for those that name the session. Its last line
// has the time of the fork, so that the client does not delete it as an old one.
func TestGeminiRecords(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "gemini.jsonl"))
	require.NoError(t, err)
	original := strings.SplitAfter(string(text), "\n")
	again := `{"sessionId":"5a5a5a5a-0000-4000-8000-000000000001","projectHash":"h","startTime":"2026-11-30T00:38:00.000Z"}` + "\n"
	more := `{"id":"more","type":"user","content":"Count the eels","sessionId":"x","projectHash":"y"}` + "\n"
	odd := `{"$set":{"a":1},"sessionId":"x","projectHash":"y"}` + "\n"
	h := newHome(t, "gemini", geminiFile, string(text)+again+odd+more)
	name := h.Sessions("")[0]
	h.forks.Now = func() time.Time { return time.Date(2026, 12, 1, 9, 30, 0, 0, time.FixedZone("", 3600)) }
	const now = `"2026-12-01T08:30:00.000Z"`
	for words, want := range map[string]struct {
		title string
		lines int
	}{
		`"toolName":"read_file"`: {lines: 7},
		`Two herons.`:            {lines: 10},
		`No frogs.`:              {lines: 22, title: "Frogs"}, // rewound
		`One toad.`:              {lines: 36},                 // behind a compression
		`Count the eels`:         {lines: 46},
	} {
		forked, err := h.fork(name, h.entryWith(name, words), want.title)
		require.NoError(t, err, words)
		got, err := os.ReadFile(h.path(forked))
		require.NoError(t, err)
		lines := strings.SplitAfter(string(got), "\n")
		id := h.records(forked)[0]["sessionId"].(string)
		require.Equal(t, "session-2026-12-01T08-30-"+id[:8]+".jsonl", path.Base(forked))
		require.Equal(t, map[string]any{"sessionId": "5a5a5a5a-0000-4000-8000-000000000001"}, h.records(forked)[0]["forkedFrom"])
		end := `{"$set":{"lastUpdated":` + now + "}}\n"
		if want.title != "" {
			end = `{"$set":{"summary":"Frogs","lastUpdated":` + now + "}}\n"
		}
		require.Equal(t, []string{end, ""}, lines[want.lines:], words)
		for i, line := range append(slices.Clone(original[:len(original)-1]), again, odd, more)[:want.lines] {
			if i == 0 || line == again {
				require.Contains(t, lines[i], `"startTime":`+now)
				require.Contains(t, lines[i], `"sessionId":"`+id+`"`)
				continue
			}
			require.Equal(t, strings.Replace(line, `{"$set":{"sessionId":"5a5a5a5a-0000-4000-8000-000000000001"`, `{"$set":{"sessionId":"`+id+`"`, 1), lines[i])
		}
		require.NotContains(t, string(got), `"sessionId":"5a5a5a5a-0000-4000-8000-000000000001","projectHash"`)
	}
}

// TestGeminiRefused: the client would delete a session without words at its next start, and reads no states of a document.
func TestGeminiRefused(t *testing.T) {
	const header = `{"sessionId":"5a5a5a5a-0000-4000-8000-000000000001","projectHash":"h","startTime":"2026-11-30T00:38:00.000Z"}` + "\n"
	message := func(id, typ, text, more string) string {
		return fmt.Sprintf(`{"id":%q,"type":%q,"content":[{"text":%q}]%s}`+"\n", id, typ, text, more)
	}
	u1 := message("u1", "user", "words of u1", "")
	for name, test := range map[string]struct{ file, text, id, want string }{
		"unknown":    {text: header + u1, id: "u2", want: "no such entry"},
		"damaged":    {text: header + "{\"torn\n" + u1, id: "u1", want: "line 2 is damaged"},
		"long":       {text: header + message("u1", "user", "x", `,"more":"`+strings.Repeat("x", agents.MaxForkedRecord)+`"`), id: "u1", want: "at most 33554432"},
		"context":    {text: header + message("u1", "user", "<session_context>\nhere", ""), id: "u1", want: "nothing was said"},
		"command":    {text: header + message("u1", "user", " /help", ""), id: "u1", want: "nothing was said"},
		"empty":      {text: header + message("g1", "gemini", "", `,"toolCalls":[],"thoughts":[]`), id: "g1", want: "nothing was said"},
		"taken back": {text: header + u1 + `{"$rewindTo":"u1"}` + "\n" + message("u2", "user", "?", ""), id: "u2", want: "nothing was said"},
		"cleared":    {text: header + u1 + `{"$rewindTo":"?"}` + "\n" + message("u2", "user", "?", ""), id: "u2", want: "nothing was said"},
		"replaced":   {text: header + u1 + `{"$set":{"messages":[]}}` + "\n" + message("u2", "user", "?", ""), id: "u2", want: "nothing was said"},
		"an error":   {text: header + message("u0", "user", "one", "") + u1 + `{"$rewindTo":"u1"}` + "\n" + message("e1", "error", "no", ""), id: "e1", want: "fork at the prompt"},
		"no header":  {text: message("u0", "user", "one", "") + header + u1, id: "u1", want: "does not begin with its session"},
		"subagent":   {text: strings.Replace(header, `"h"`, `"h","kind":"subagent"`, 1) + u1, id: "u1", want: "a subagent's session"},
		"document":   {file: strings.TrimSuffix(geminiFile, "l"), text: `{"sessionId":"s","projectHash":"h","messages":[` + u1 + `]}`, id: "u1", want: "one document"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "gemini", cmp.Or(test.file, geminiFile), test.text)
			before := files(t, h.Dir)
			_, err := h.fork(h.Sessions("")[0], test.id, "")
			require.ErrorContains(t, err, test.want)
			require.Equal(t, before, files(t, h.Dir))
		})
	}
	for name, text := range map[string]string{
		"an answer": header + message("g1", "gemini", "yes", ""),
		"a call":    header + message("g1", "gemini", "", `,"toolCalls":[{"id":"c1","name":"x","args":{}}]`),
		"a thought": header + message("g1", "gemini", "", `,"thoughts":[{"subject":"a","description":"b"}]`),
		"an image":  header + `{"id":"g1","type":"user","content":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}` + "\n",
		"completed": header + message("g1", "gemini", "", "") + message("g1", "gemini", "yes", ""),
		"in a list": header + u1 + `{"$set":{"messages":[` + message("g1", "user", "yes", "") + `]}}` + "\n",
		"an error":  header + u1 + message("g1", "error", "no", ""),
	} {
		h := newHome(t, "gemini", geminiFile, text)
		_, err := h.fork(h.Sessions("")[0], "g1", "")
		require.NoError(t, err, name)
	}
}
