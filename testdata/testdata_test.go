package testdata

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxStore keeps the embedded store from growing the binary unnoticed.
const maxStore = 250_000

// TestDemo: the sample store is small, and its sessions are as a client writes them. What is in them `sessionfs check` finds
// nothing wrong with (TestCheck of cmd/sessionfs).
func TestDemo(t *testing.T) {
	require.NoError(t, fstest.TestFS(Demo(), "archive", "sessions", "blobs", "terminal-sessions/pts-3", "history.db"))
	total := 0
	require.NoError(t, fs.WalkDir(Demo(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(Demo(), name)
		require.NoError(t, err)
		total += len(data)
		if !strings.HasSuffix(name, ".jsonl") {
			return nil
		}
		text, whole := strings.CutSuffix(string(data), "\n")
		assert.True(t, whole, name)
		for line := range strings.SplitSeq(text, "\n") {
			var compact bytes.Buffer
			require.NoError(t, json.Compact(&compact, []byte(line)), name)
			assert.Equal(t, line, compact.String(), name)
		}
		return nil
	}))
	assert.Less(t, total, maxStore)
}

// TestDemoShowsTheFormat: one session has everything in it that a client writes.
func TestDemoShowsTheFormat(t *testing.T) {
	for pattern, wants := range map[string][]string{
		"sessions/*/2026-03-30*.jsonl": {
			"message", "model_change", "thinking_level_change", "branch_summary", "compaction", "mode_change", "custom", "custom_message", "label",
		},
		"sessions/*/2026-05-11*.jsonl": {"title"},
	} {
		found, err := fs.Glob(Demo(), pattern)
		require.NoError(t, err)
		require.Len(t, found, 1)
		text, err := fs.ReadFile(Demo(), found[0])
		require.NoError(t, err)
		for _, want := range wants {
			assert.Contains(t, string(text), `{"type":"`+want+`",`)
		}
	}
}
