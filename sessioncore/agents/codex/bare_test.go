package codex

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestBare: rollouts of mid-2025 have items without an envelope, and the working directory in one of the first.
func TestBare(t *testing.T) {
	sessiontest.Page(t, "testdata/bare.txt", func(t *testing.T, name, file, want string) {
		whole, states := agentstest.Convert(t, converterOf(t), file+"\n")
		var header struct{ ID, Timestamp, CWD string }
		first, _, _ := strings.Cut(whole, "\n")
		require.NoError(t, json.Unmarshal([]byte(first), &header))
		require.Equal(t, "b", header.ID, name)
		require.Equal(t, "2025-06-03T09:00:00.000Z", header.Timestamp, name)
		shown := "no cwd"
		if header.CWD != "" {
			shown = "cwd " + header.CWD
		}
		outline := agentstest.Outline(t, whole)
		outline[0] = shown // in the place of the header
		require.Equal(t, want, strings.Join(outline, "\n")+"\n", name)
		for _, state := range states {
			requireTree(t, state)
		}
	})
}
