package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// toyFile is a file of the agent in CONTRIBUTING.md, named before its text.
var toyFile = regexp.MustCompile("(?s)`(sessioncore/agents/quill/\\w+\\.go)`[^`]*?(?:`[^`\n]+`[^`]*?)*\n```go\n(.*?)\n```")

// TestNewAgent compiles and tests the agent in CONTRIBUTING.md, whose files lie over the source for this test alone.
func TestNewAgent(t *testing.T) {
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	dir := t.TempDir()
	over := map[string]string{}
	lines := 0
	for _, m := range toyFile.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		text := filepath.Join(dir, filepath.Base(m[1]))
		require.NoError(t, os.WriteFile(text, []byte(m[2]+"\n"), 0o600))
		over[filepath.Join(top, m[1])] = text
		lines += strings.Count(m[2], "\n")
	}
	require.Len(t, over, 3)
	require.Less(t, lines, 200)
	overlay := filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": over})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	format := exec.Command("gofmt", "-l", dir)
	said, err := format.CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(said))
	binary := filepath.Join(dir, "quill.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./sessioncore/agents/quill")
	build.Dir = top
	said, err = build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	test := exec.Command(binary, "-test.v")
	test.Dir = dir
	said, err = test.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS: TestSample")
}
