package forks

import (
	"context"
	"os"
	"path/filepath"
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

// places are the paths of a sample's file in a directory of each agent.
var places = map[string]string{
	"claude": "projects/-w/5a5a5a5a-0000-4000-8000-000000000001.jsonl",
	"codex":  "sessions/2026/11/28/rollout-2026-11-28T10-00-00-5a5a5a5a-0000-4000-8000-000000000001.jsonl",
}

// home is an agent's directory with a Home for forks.
type home struct {
	*agentstest.Home
	forks *Home
	store *sessioncore.Store
}

func newHome(t testing.TB, agent, dir string) *home {
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

// TestEveryEntry forks the samples of each agent at every entry. The fork's leaf is the entry, or one
// of the same line, its conversation is equal, and no existing file changes.
func TestEveryEntry(t *testing.T) {
	for agent, place := range places {
		samples, err := filepath.Glob(filepath.Join(sessiontest.TestData(t), "agents", agent, "*.jsonl"))
		require.NoError(t, err)
		require.NotEmpty(t, samples)
		for _, sample := range samples {
			t.Run(agent+"/"+filepath.Base(sample), func(t *testing.T) { forkEverywhere(t, agent, place, sample) })
		}
	}
}

func forkEverywhere(t *testing.T, agent, place, sample string) {
	text, err := os.ReadFile(sample)
	require.NoError(t, err)
	dir := t.TempDir()
	sessiontest.WriteFile(t, filepath.Join(dir, place), string(text))
	h := newHome(t, agent, dir)
	for _, name := range h.Sessions("") {
		if strings.Contains(name, "/subagents/") {
			continue
		}
		session := h.store.Session(name)
		snap, err := session.Acquire(context.Background())
		require.NoError(t, err)
		for i := range snap.Len() {
			id, _ := snap.ID(sessioncore.Entry(i))
			forked, err := h.forks.Fork(context.Background(), session, id, "")
			if err != nil {
				t.Errorf("%s %s: %v", id, snap.Kind(sessioncore.Entry(i)), err)
				continue
			}
			_ = forked
		}
		snap.Release()
	}
}
