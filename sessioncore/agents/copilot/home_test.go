package copilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestHome: nothing is shown but sessions, each once, and those of subagents.
func TestHome(t *testing.T) {
	const sub = `{"type":"subagent.started","data":{"toolCallId":"c"},"agentId":"a-1"}` + "\n" +
		`{"type":"user.message","data":{},"agentId":"../x"}` + "\n"
	h := agentstest.New(t, "copilot")
	for name, text := range map[string]string{
		"session-state/one/events.jsonl":                "{}\n",
		"session-state/one/workspace.yaml":              "name: One\n",
		"session-state/one/files/other.jsonl":           "{}\n",
		"session-state/one.jsonl":                       "old\n",
		"session-state/two.jsonl":                       sub,
		"session-state/none/workspace.yaml":             "",
		"session-state/.session-operation-locks/x.lock": "",
		"history-session-state/session_two_1.json":      "{}",
		"history-session-state/session_old_2.json":      `{"chatMessages":[]}`,
		"history-session-state/notes.txt":               "",
		"config.json":                                   "{}",
		"session-store.db":                              "",
		"logs/process.log":                              "",
		"session-state/two/plan.md":                     "",
	} {
		sessiontest.WriteFile(t, filepath.Join(h.Dir, name), text)
	}
	want := []string{
		"history-session-state/session_old_2.jsonl", "session-state/one.jsonl", "session-state/two.jsonl", "session-state/two/a-1.jsonl",
	}
	require.ElementsMatch(t, want, h.Sessions(""))
	for _, name := range []string{
		"config.json", "logs", "session-state/one", "session-state/one/events.jsonl", "session-state/two/plan.md",
		"session-state/none.jsonl", "session-state/two/a-2.jsonl", "session-state/two/a-1.jsonl/x",
		"history-session-state/session_two_1.jsonl", "session-state/two/../x.jsonl",
	} {
		_, err := h.Stat(name)
		require.ErrorIs(t, err, os.ErrNotExist, name)
		_, err = h.Open(name)
		require.Error(t, err, name)
	}
	require.NotContains(t, h.Read("session-state/one.jsonl"), "old", "the directory counts")

	// A session that gets its first event changes the state of the directory, and so does nothing else.
	before := storagetest.Stat(t, h, stateDir)
	sessiontest.AppendTo(t, filepath.Join(h.Dir, "session-state/one/events.jsonl"), "{}\n")
	require.Equal(t, before, storagetest.Stat(t, h, stateDir))
	sessiontest.WriteFile(t, filepath.Join(h.Dir, "session-state/none/events.jsonl"), "{}\n")
	require.NotEqual(t, before.Token, storagetest.Stat(t, h, stateDir).Token)
	require.Contains(t, h.Sessions(""), "session-state/none.jsonl")
}

// TestNameOf: the path of a file tells the name under which it is shown.
func TestNameOf(t *testing.T) {
	for _, c := range [][3]string{
		{stateDir, "", "session-state"}, {stateDir, "x", "session-state/x"}, {stateDir, "x.jsonl", "session-state/x.jsonl"},
		{stateDir, "x/events.jsonl", "session-state/x.jsonl"}, {stateDir, "x/a.jsonl", "session-state/x/a.jsonl"},
		{oldDir, "session_x_1.json", "history-session-state/session_x_1.jsonl"}, {oldDir, "", "history-session-state"},
	} {
		require.Equal(t, c[2], nameOf(c[0], c[1]))
	}
}

// TestListedNewlines: a list finds the title in a prompt that has newlines as they are.
func TestListedNewlines(t *testing.T) {
	long := `{"type":"system.message","data":{"content":"` + strings.Repeat("rule ", 8000) + `"},"id":"r"}` + "\n"
	for _, before := range []string{"", long} {
		const prompt = `{"type":"user.message","data":{"content":"Where is` + "\n\n" + `the pier?"},"id":"q"}` + "\n"
		home, _ := counted(t, startLine+before+prompt+long+long)
		obj, err := home.Open("session-state/one.jsonl")
		require.NoError(t, err)
		require.Contains(t, beginningOf(t, obj), `"title":"Where is"`)
		require.NoError(t, obj.Close())
	}
}

// beginningOf returns the beginning of an open session for a list.
func beginningOf(t *testing.T, obj storage.Object) string {
	text, _, _, err := obj.(sessioncore.Converted).Beginning()
	require.NoError(t, err)
	return string(text)
}

// TestLongFork: the note of a fork is found in the middle of a long file once the session is opened.
func TestLongFork(t *testing.T) {
	const fork, original = "f0f0f0f0-0000-4000-8000-00000000000f", "e0e0e0e0-0000-4000-8000-00000000000e"
	event := func(typ, at, data string) string {
		return fmt.Sprintf(`{"type":%q,"data":%s,"id":%q,"timestamp":"2026-10-08T%s.000Z"}`+"\n", typ, data, at, at)
	}
	start := fmt.Sprintf(`{"sessionId":%q,"startTime":"2026-10-08T10:00:00.000Z"}`, fork)
	long := fmt.Sprintf(`{"content":%q}`, strings.Repeat("rule ", 8000))
	note := fmt.Sprintf(`{"infoType":"fork","message":"Forked from \"T\" (%s) as \"T (fork)\" (%s)."}`, original, fork)
	rules := event("system.message", "09:00:02", long)
	text := event("session.start", "10:00:00", start)
	text += event("user.message", "09:00:01", `{"content":"Is the tide in?"}`) + rules
	text += event("session.info", "10:00:00", note) + rules
	home := t.TempDir()
	sessiontest.WriteFile(t, filepath.Join(home, stateDir, fork, eventsName), text)
	h := New(sessiontest.OpenDir(t, home))
	name := stateDir + "/" + fork + ending
	obj, err := h.Open(name)
	require.NoError(t, err)
	defer obj.Close()
	for _, listed := range []bool{true, false} {
		about, err := h.About(name, obj, int64(len(text)), listed)
		require.NoError(t, err)
		require.Equal(t, listed, about.Parent != original)
		require.Equal(t, listed, about.Title == "Is the tide in?")
	}
}

// TestIsCopy: only a prompt from before the session's begin tells that it may be a fork, whose note may be anywhere in the file.
func TestIsCopy(t *testing.T) {
	const (
		start  = `{"type":"session.start","data":{"sessionId":"s","startTime":"2026-10-08T10:00:00.000Z"},"id":"a"}`
		prompt = `{"type":"user.message","data":{"content":"Is the tide in?"},"id":"b","timestamp":"2026-10-08T%sZ"}`
	)
	for at, want := range map[string]bool{"09:59:59.999": true, "10:00:00.000": false, "10:00:01.000": false} {
		b, c := newConverter(agents.About{ID: "s"})
		b.Add(nil, rawjson.Value(start), 1)
		b.Add(nil, rawjson.Value(fmt.Sprintf(prompt, at)), 2)
		require.Equal(t, want, c.isCopy, at)
	}
}

// TestForkOfFork: the note of the fork that a fork was made of is copied, and tells nothing of the copy.
func TestForkOfFork(t *testing.T) {
	_, c := newConverter(agents.About{ID: "f2"})
	note := func(from, as string) {
		line := fmt.Sprintf(`{"type":"session.info","data":{"infoType":"fork","message":"Forked from \"T\" (%s) as \"T (fork)\" (%s)."},"id":"n"}`, from, as)
		c.Add(nil, rawjson.Value(line), 2)
	}
	c.Add(nil, rawjson.Value(`{"type":"session.start","data":{"sessionId":"f2"},"id":"a"}`), 1)
	note("original", "f1")
	require.Empty(t, c.parent)
	note("f1", "f2")
	require.Equal(t, "f1", c.parent)
}
