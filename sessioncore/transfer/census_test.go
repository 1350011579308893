package transfer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
)

// TestCountUnlisted: a directory that cannot be listed, as its path is too long, is an error of a census. The sessions
// elsewhere are counted.
func TestCountUnlisted(t *testing.T) {
	top := t.TempDir()
	put(t, top, map[string]string{"projects/-p/a.jsonl": "a", "projects/-q/b.jsonl": "b"})
	root, err := os.OpenRoot(filepath.Join(top, "projects/-p"))
	require.NoError(t, err)
	defer root.Close()
	name := strings.Repeat("d", unix.NAME_MAX)
	for range sessioncore.MaxPath/unix.NAME_MAX + 1 {
		require.NoError(t, root.Mkdir(name, 0o700))
		below, err := root.OpenRoot(name)
		require.NoError(t, err)
		defer below.Close()
		root = below
	}
	count, err := Count(t.Context(), top, agents.Find("claude"))
	require.ErrorIs(t, err, unix.ENAMETOOLONG)
	require.Equal(t, Census{Sessions: 2}, count)
}
