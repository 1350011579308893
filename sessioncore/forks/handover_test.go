package forks

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/sessiontest"
)

// received are the agents that take conversations.
var received = []string{"claude", "codex"}

// given returns a session in omp's form.
func given(t testing.TB, text string) *sessioncore.Session {
	store := sessioncore.NewStore(sessiontest.Memory(t, []byte(text)))
	t.Cleanup(store.Close)
	store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
	return store.Session(sessiontest.FileName)
}

// emptyHome returns the home of an agent without sessions.
func emptyHome(t testing.TB, agent string) *home {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, agents.Find(agent).Dirs[0]), 0o700))
	return openHome(t, agent, dir)
}

// receive hands a branch of a session in omp's form over.
func (h *home) receive(snap *sessioncore.Snapshot, entry sessioncore.Entry) (id, name string, err error) {
	return h.forks.Receive(context.Background(), &Given{Snapshot: snap, Entry: entry, Agent: "omp", CWD: "/srv/pier"})
}

// samples returns sessions in omp's form, of all agents.
func samples(t testing.TB) (files []string) {
	require.NoError(t, filepath.WalkDir(sessiontest.TestData(t), func(file string, item fs.DirEntry, err error) error {
		isOthers := filepath.Ext(file) == ".want" && filepath.Base(filepath.Dir(filepath.Dir(file))) == "agents"
		if isOthers || strings.Contains(file, "/sessions/") && filepath.Ext(file) == ".jsonl" {
			files = append(files, file)
		}
		return err
	}))
	return files
}

// TestReceiveEverywhere hands the samples of all agents over, at every entry.
func TestReceiveEverywhere(t *testing.T) {
	for _, file := range samples(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		rel, _ := filepath.Rel(sessiontest.TestData(t), file)
		t.Run(rel, func(t *testing.T) {
			snap, err := sessiontest.Acquire(t, given(t, string(text)))
			if err != nil {
				t.Skip("it is none")
			}
			for _, agent := range received {
				h := emptyHome(t, agent)
				for e := range snap.Len() {
					_, name, err := h.receive(snap, sessioncore.Entry(e))
					t.Log(agent, e, name, err)
				}
			}
		})
	}
}
