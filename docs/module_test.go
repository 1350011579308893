package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModulePath types the commands of CONTRIBUTING.md that give the module another path: all of its packages have it
// then, and nothing else in the code has changed.
func TestModulePath(t *testing.T) {
	_, commands, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "```sh\nmodule=")
	commands, _, isThere := strings.Cut(commands, "```")
	require.True(t, isThere)
	copied := t.TempDir()
	require.NoError(t, exec.Command("cp", "-r", filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum"), copied).Run())
	rooms, err := filepath.Glob(filepath.Join(root, "[a-z]*"))
	require.NoError(t, err)
	for _, room := range rooms {
		info, err := os.Stat(room)
		require.NoError(t, err)
		if info.IsDir() && !slices.Contains([]string{"bin", "dist"}, filepath.Base(room)) {
			require.NoError(t, os.CopyFS(filepath.Join(copied, filepath.Base(room)), os.DirFS(room)))
		}
	}
	run := func(script string) string {
		c := exec.Command("sh", "-ec", script)
		c.Dir = copied
		said, err := c.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return string(said)
	}
	run("module=" + commands)
	listed := run("go list -deps ./cmd/sessionfs")
	require.Contains(t, listed, "example.org/you/sessionfs/sessioncore/storage\n")
	require.NotRegexp(t, `(?m)^sessionfs/`, listed)
	require.Contains(t, run("grep -rh custom fs sessioncore"), `sessionfs/leaf`, "a name in sessions is not of the module")
}
