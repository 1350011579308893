package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pictured is a message with an image of that much base64.
func pictured(base64 string) string {
	return `{"type":"message","message":{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image","mimeType":"image/png","data":"` + base64 + `"}]}}`
}

// TestPiImages: pi knows no blobs and would send the reference to one as if it were the picture. In its agent
// directory images stay in the session, and nothing is made beside it; wherever the directory lies, and in new
// sessions and forks too.
func TestPiImages(t *testing.T) {
	const session = "sessions/--home-dev-almanac--/2024-12-03T14-00-00-000Z_8c1e7b42-90d3-4f6a-b1c7-3e5a2d9f6b44"
	picture := strings.Repeat("iVBORw0K", sized(100_000, 10_000))
	for name, dir := range map[string]func(*testing.T) string{
		"in a home":               func(t *testing.T) string { return clientStore(t, "pi") },
		"through a symbolic link": func(t *testing.T) string { return linked(t, clientStore(t, "pi")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dir(t)
			m := mountForTest(t, dir)
			made := ask(t, m.path("new-session"), "/home/dev/almanac")
			first := ask(t, m.path(session, "append"), pictured(picture))
			forked := ask(t, m.path(session, "fork"), first)
			ask(t, m.path(made, "append"), pictured(picture))
			ask(t, m.path(made, "append"), assistant("I see."))
			ask(t, m.path(forked, "append"), pictured(picture))
			for file, pictures := range map[string]int{session: 1, made: 1, forked: 2} {
				text, err := os.ReadFile(filepath.Join(dir, file+".jsonl"))
				require.NoError(t, err)
				require.Equal(t, pictures, strings.Count(string(text), `"data":"`+picture+`"`), file)
				require.NotContains(t, string(text), "blob:sha256:")
			}
			require.NoDirExists(t, filepath.Join(dir, "blobs"))
		})
	}
}

// linked returns a symbolic link of another name to a directory.
func linked(t *testing.T, dir string) string {
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	return link
}
