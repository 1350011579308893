package fs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// TestShownAs: where a mount shows what is in the directories of agents, in that of one and in that of all.
func TestShownAs(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{"omp/archive/sessions/-p", "omp/blobs", "disk/-p", "claude/projects/-p", "codex/sessions/2026/03/01",
		"codex/archived_sessions"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	require.NoError(t, os.Symlink("../disk", filepath.Join(root, "omp/sessions")))
	all := mountopts.Options{Source: mountopts.All, Agents: []mountopts.AgentDir{{Name: "omp"}, {Name: "claude"}, {Name: "codex"}}}
	for i, a := range all.Agents {
		all.Agents[i].Source = filepath.Join(root, a.Name)
	}
	for _, c := range [][4]string{ // a path, whose, where it is shown, and where with all of them
		{"disk/-p/a.jsonl", "omp", "sessions/-p/a.jsonl", "sessions/omp/-p/a.jsonl"},
		{"omp/archive/sessions/-p/a.jsonl.gz", "omp", "archive/-p/a.jsonl.gz", "archive/-p/a.jsonl.gz"},
		{"omp/blobs/ab", "omp", "blobs/ab", "blobs/ab"},
		{"omp/agent.db", "omp", "", ""},
		{"disk", "omp", "sessions", "sessions/omp"},
		{"claude/projects/-p/a.jsonl", "claude", "sessions/-p/a.jsonl", "sessions/claude/-p/a.jsonl"},
		{"codex/sessions/2026/03/01/a.jsonl", "codex", "sessions/2026-03-01/a.jsonl", "sessions/codex/2026-03-01/a.jsonl"},
		{"codex/sessions/rollout-a.jsonl", "codex", "sessions/sessions/rollout-a.jsonl", "sessions/codex/sessions/rollout-a.jsonl"},
		{"codex/sessions", "codex", "sessions", "sessions/codex"},
		{"codex/archived_sessions/a.jsonl", "codex", "sessions/archived_sessions/a.jsonl", "sessions/codex/archived_sessions/a.jsonl"},
	} {
		shown, ok := fs.ShownAs(mountopts.Options{Source: filepath.Join(root, c[1])}, filepath.Join(root, c[0]))
		require.Equal(t, c[2], shown, c)
		require.Equal(t, c[2] != "", ok, c)
		shown, _ = fs.ShownAs(all, filepath.Join(root, c[0]))
		require.Equal(t, c[3], shown, c)
	}
	_, ok := fs.ShownAs(mountopts.Options{Source: "postgres://h/d"}, root)
	require.False(t, ok)
}
