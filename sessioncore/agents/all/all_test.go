package all

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/message"
)

// TestOf: a directory is another agent's only where nothing in it is like omp's: its sessions could not be written then.
func TestOf(t *testing.T) {
	for dirs, want := range map[string]string{
		"":                               "",
		"sessions/--srv-w--":             "",
		"sessions/2026/05/12":            "codex",
		"archived_sessions":              "codex",
		"sessions/2026":                  "",
		"sessions/2026/05":               "codex",
		"sessions/2026/05/12 sessions/-": "",
		"archived_sessions sessions/-w":  "",
		"projects/-srv-w":                "claude",
		"projects/w":                     "",
		"projects/C--Users-Ada-pier":     "claude",
		"projects/c--w":                  "claude",
		"projects/my--w":                 "",
		"projects/-srv-w sessions/-":     "",
		".claude/projects":               "claude",
		"tmp/garden/chats":               "gemini",
		"tmp/garden":                     "",
		"tmp/garden/chats sessions/-w":   "",
	} {
		root := t.TempDir()
		for dir := range strings.FieldsSeq(dirs) {
			require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
		}
		if strings.HasPrefix(dirs, ".claude") { // the name of the directory itself counts
			root = filepath.Join(root, ".claude")
		}
		require.Equal(t, want, ownerName(root), dirs)
	}
}

// ownerName returns the name of the agent of a directory, "" for omp and for none.
func ownerName(dir string) string {
	agent := agents.Of(dir)
	if agent == nil {
		return ""
	}
	return agent.Name
}

// TestHome: the first environment variable that is set names an agent's directory, and the same one is set for the agent.
func TestHome(t *testing.T) {
	a := agents.Agent{Homes: []string{"$PIER_HOME/.pier", "$PIER_DIR", "~/.pier"}}
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"HOME": "/home/ada"}, "/home/ada/.pier"},
		{map[string]string{"HOME": "/home/ada", "PIER_DIR": "/srv/pier/"}, "/srv/pier/"},
		{map[string]string{"PIER_DIR": "/srv/pier", "PIER_HOME": "/srv/home"}, "/srv/home/.pier"},
	} {
		getenv := func(name string) string { return c.env[name] }
		require.Equal(t, c.want, a.Home(getenv), c.env)
	}
	require.Equal(t, "PIER_HOME=/srv/home", a.Variable("/srv/home/.pier"))

	a.Homes = []string{"$PIER_DIR", "$XDG_STATE_HOME/.pier", "~/.pier"}
	dir := t.TempDir()
	old := filepath.Join(dir, "state/.pier")
	home := filepath.Join(dir, "home/.pier")
	env := map[string]string{"HOME": filepath.Dir(home), "XDG_STATE_HOME": filepath.Dir(old)}
	getenv := func(name string) string { return env[name] }
	require.Equal(t, home, a.Home(getenv), "the old one is not there")
	require.NoError(t, os.MkdirAll(old, 0o700))
	require.Equal(t, old, a.Home(getenv))
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.Equal(t, home, a.Home(getenv), "a newer client uses that")
}

// TestTools: what agents registered is known beside the usual arguments of tools.
func TestTools(t *testing.T) {
	require.Equal(t, message.Argument{Use: message.PatchUse}, message.ArgumentOf("apply_patch", "input"))
	require.Equal(t, message.Argument{}, message.ArgumentOf("bash", "input"))
	require.Equal(t, message.Argument{Use: message.PathUse, Role: message.FileRole}, message.ArgumentOf("apply_patch", "filePath"))
	require.Equal(t, message.Argument{Use: message.PathsUse, Role: message.FileRole}, message.ArgumentOf("read", "path"))
	require.Equal(t, message.Argument{Use: message.PathUse}, message.ArgumentOf("read_many_files", "include"))
	require.True(t, message.ByProvider("web_search"))
	require.False(t, message.ByProvider("apply_patch"))
}

// TestComplete: each agent has the functions that callers call of any agent.
func TestComplete(t *testing.T) {
	for _, a := range agents.All() {
		require.NotEmpty(t, a.Homes, a.Name)
		require.NotEmpty(t, a.Dirs, a.Name)
		require.NotEmpty(t, a.Resume, a.Name)
		require.NotNil(t, a.Detect, a.Name)
		require.NotNil(t, a.Open, a.Name)
		require.NotNil(t, a.NameOf, a.Name)
		require.NotNil(t, a.Wrote, a.Name)
		require.NotNil(t, a.Alone, a.Name)
		require.NotNil(t, a.IsID, a.Name)
	}
}
