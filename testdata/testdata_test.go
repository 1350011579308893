package testdata

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files of the demo by what they are, as patterns.
const (
	elderly = "sessions/*/2026-01-04*.jsonl" // version 1
	rich    = "sessions/*/2026-03-30*.jsonl" // everything in it
	task    = "sessions/*/*/Task-1.jsonl"    // its subagent
	forked  = "sessions/*/2026-03-31*.jsonl"
	outside = "sessions/-tmp-*/*.jsonl" // another project
	slotted = "sessions/*/2026-05-11*.jsonl"
)

func TestDemoIsIntact(t *testing.T) {
	assert.Empty(t, check(Demo()).problems)
	require.NoError(t, fstest.TestFS(Demo(), "sessions", "blobs", "terminal-sessions/pts-3"))
}

// find returns the one file that a pattern matches.
func find(t *testing.T, fsys fs.FS, pattern string) string {
	t.Helper()
	found, err := fs.Glob(fsys, pattern)
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

func TestDemoShowsTheFormat(t *testing.T) {
	store := check(Demo())
	s := store.sessions[find(t, Demo(), rich)]
	require.NotNil(t, s)

	types, parents, labels, roles := map[string]int{}, map[string]bool{}, map[string]string{}, map[string]int{}
	for _, e := range s.entries {
		types[e.Type]++
		roles[e.Message.Role+" "+e.Message.ToolName]++
		if e.ParentID != nil {
			parents[*e.ParentID] = true
		}
		if e.Type == "label" {
			labels[e.TargetID] = e.Label
		}
	}
	for _, want := range []string{"message", "model_change", "thinking_level_change", "branch_summary", "compaction",
		"mode_change", "custom", "custom_message", "label"} {
		assert.Positive(t, types[want], want)
	}
	for _, want := range []string{"toolResult read", "toolResult bash", "toolResult edit", "toolResult task"} {
		assert.Positive(t, roles[want], want)
	}
	tips := 0
	for _, e := range s.entries {
		if !parents[e.ID] {
			tips++
		}
	}
	assert.Equal(t, 3, tips, "branches")
	assert.Len(t, labels, 4)

	assert.True(t, store.sessions[find(t, Demo(), slotted)].slot)
	assert.NotEmpty(t, store.sessions[find(t, Demo(), forked)].header.ParentSession)
	assert.Zero(t, store.sessions[find(t, Demo(), elderly)].header.Version)
	assert.Equal(t, "/tmp/gauge-csv", store.sessions[find(t, Demo(), outside)].header.Cwd)
}
