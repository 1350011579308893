package codex

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// TestDays: the directories of days are one list, and the state of the root changes with it.
func TestDays(t *testing.T) {
	home := t.TempDir()
	put := func(name string) { sessiontest.WriteFile(t, filepath.Join(home, name), "x") }
	put("auth.json")
	days := newDays(sessiontest.OpenDir(t, home))
	list := func(dir string) (names []string) {
		items, err := storage.List(days, dir)
		require.NoError(t, err)
		for _, item := range items {
			names = append(names, item.Name)
		}
		return names
	}
	require.Empty(t, list(""))
	states := map[storage.Stat]bool{}
	for i, name := range []string{"sessions/2026/03/30/rollout-a.jsonl", "sessions/2026/04/01/rollout-b.jsonl", "sessions/2026/04/x",
		"archived_sessions/rollout-c.jsonl"} {
		put(name)
		st, err := days.Stat("")
		require.NoError(t, err)
		states[st] = true
		require.Len(t, states, min(i+1, 3))
	}
	require.Equal(t, []string{"2026-03-30", "2026-04-01", "archived_sessions"}, list(""))
	require.Equal(t, []string{"rollout-b.jsonl"}, list("2026-04-01"))
	put("sessions/rollout-d.jsonl")
	require.Contains(t, list(""), "sessions")
	for name, there := range map[string]bool{
		"2026-04-01/rollout-b.jsonl": true, "archived_sessions/rollout-c.jsonl": true, "2026-04-02": false,
		"auth.json": false, "2026-04": false, "..-..-..": false,
	} {
		_, err := days.Stat(name)
		require.Equal(t, there, err == nil, "%s: %v", name, err)
		obj, err := days.Open(name)
		require.Equal(t, there, err == nil, "%s: %v", name, err)
		if err == nil {
			require.NoError(t, obj.Close())
		}
	}
}
