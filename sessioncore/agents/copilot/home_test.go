package copilot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// walk returns the names of the files and directories that are shown.
func walk(t *testing.T, h *Home, dir string) (names []string) {
	items, err := storage.ListStat(h, dir, func(storage.Item) bool { return true })
	require.NoError(t, err)
	for _, item := range items {
		name := strings.TrimPrefix(dir+"/"+item.Name, "/")
		st, err := h.Stat(name)
		require.NoError(t, err)
		require.Equal(t, item.Kind, st.Kind)
		if names = append(names, name); item.Kind == storage.KindDir {
			names = append(names, walk(t, h, name)...)
		}
	}
	slices.Sort(names)
	return names
}

// TestHome: nothing is shown but sessions, each once, and those of subagents.
func TestHome(t *testing.T) {
	const sub = `{"type":"subagent.started","data":{"toolCallId":"c"},"agentId":"a-1"}` + "\n" +
		`{"type":"user.message","data":{},"agentId":"../x"}` + "\n"
	home := t.TempDir()
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
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		sessiontest.WriteFile(t, filepath.Join(home, name), text)
	}
	h := New(sessiontest.OpenDir(t, home))
	want := []string{
		"history-session-state", "history-session-state/session_old_2.jsonl", "session-state", "session-state/one.jsonl",
		"session-state/two", "session-state/two.jsonl", "session-state/two/a-1.jsonl",
	}
	require.Equal(t, want, walk(t, h, ""))
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
	obj, err := h.Open("session-state/one.jsonl")
	require.NoError(t, err)
	defer obj.Close()
	text := make([]byte, 3)
	require.NoError(t, storage.ReadFull(obj, text, 0))
	require.Equal(t, "{}\n", string(text), "the directory counts")

	// A session that gets its first event changes the state of the directory, and so does nothing else.
	before, err := h.Stat(stateDir)
	require.NoError(t, err)
	sessiontest.AppendTo(t, filepath.Join(home, "session-state/one/events.jsonl"), "{}\n")
	same, err := h.Stat(stateDir)
	require.NoError(t, err)
	require.Equal(t, before, same)
	sessiontest.WriteFile(t, filepath.Join(home, "session-state/none/events.jsonl"), "{}\n")
	after, err := h.Stat(stateDir)
	require.NoError(t, err)
	require.NotEqual(t, before.Token, after.Token)
	require.Contains(t, walk(t, h, ""), "session-state/none.jsonl")
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

// TestLongFork: the note of a fork is found in the middle of a long file once the session is opened.
func TestLongFork(t *testing.T) {
	const fork, original = "f0f0f0f0-0000-4000-8000-00000000000f", "e0e0e0e0-0000-4000-8000-00000000000e"
	event := func(typ, at, data string) string {
		return fmt.Sprintf(`{"type":%q,"data":%s,"id":%q,"timestamp":"2026-10-08T%s.000Z"}`+"\n", typ, data, at, at)
	}
	rules := event("system.message", "09:00:02", fmt.Sprintf(`{"content":%q}`, strings.Repeat("rule ", 8000)))
	text := event("session.start", "10:00:00", fmt.Sprintf(`{"sessionId":%q,"startTime":"2026-10-08T10:00:00.000Z"}`, fork)) +
		event("user.message", "09:00:01", `{"content":"Is the tide in?"}`) + rules +
		event("session.info", "10:00:00", fmt.Sprintf(`{"infoType":"fork","message":"Forked from \"T\" (%s) as \"T (fork)\" (%s)."}`, original, fork)) + rules
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
