package fs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/dir"
)

// TestPiSessionDirIsFound: in which directory pi keeps its sessions, of what it was told in which way.
func TestPiSessionDirIsFound(t *testing.T) {
	home := t.TempDir()
	for _, test := range []struct{ name, agent, settings, env, agentEnv, want string }{
		{"nothing", ".pi/agent", `{}`, "", "", ""},
		{"no settings", ".pi/agent", ``, "", "", ""},
		{"broken settings", ".pi/agent", `{"sessionDir":`, "", "", ""},
		{"settings", ".pi/agent", `{"sessionDir":"/s/x"}`, "", "", "/s/x"},
		{"in the home directory", ".pi/agent", `{"sessionDir":"~/s/"}`, "", "", home + "/s"},
		{"a URL", ".pi/agent", `{"sessionDir":"file:///s%20x"}`, "", "", "/s x"},
		{"where pi is started", ".pi/agent", `{"sessionDir":"s"}`, "", "", ""},
		{"the environment first", ".pi/agent", `{"sessionDir":"/s"}`, "~/e", "", home + "/e"},
		{"the environment of another agent directory", ".pi/agent", `{"sessionDir":"/s"}`, "/e", "other", "/s"},
		{"omp's", ".omp/agent", `{"sessionDir":"/s"}`, "/e", "", ""},
		{"a directory that may be omp's", "agent", `{"sessionDir":"/s"}`, "/e", "agent", ""},
	} {
		agent := filepath.Join(home, test.agent)
		require.NoError(t, os.RemoveAll(agent))
		require.NoError(t, os.MkdirAll(agent, 0o700))
		if test.settings != "" {
			require.NoError(t, os.WriteFile(filepath.Join(agent, piSettings), []byte(test.settings), 0o600))
		}
		env := map[string]string{"HOME": home, "PI_CODING_AGENT_SESSION_DIR": test.env}
		if test.agentEnv != "" {
			env["PI_CODING_AGENT_DIR"] = filepath.Join(home, test.agentEnv)
		}
		source, err := dir.Open(agent)
		require.NoError(t, err)
		require.Equal(t, test.want, piSessionDir(source, agent, func(key string) string { return env[key] }), test.name)
	}
}
