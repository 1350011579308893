package claude

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestManySubagentsBeside: a look-up of a subagent of a session costs the same, however many lie beside
// it.
func TestManySubagentsBeside(t *testing.T) {
	const record = `{"type":"user","uuid":"u%d","parentUuid":null,"isSidechain":%t,"sessionId":"s","version":"2.0.28",` +
		`"timestamp":"2026-01-05T10:00:00.000Z","cwd":"/srv/x","message":{"role":"user","content":"y"}}` + "\n"
	sessiontest.LinearMemory(t, 200, func(n int) int64 {
		dir := t.TempDir()
		sessiontest.WriteFile(t, filepath.Join(dir, projectsDir, "-srv-x", "s.jsonl"), fmt.Sprintf(record, 0, false))
		for i := range n {
			name := fmt.Sprintf("agent-%d.jsonl", i)
			sessiontest.WriteFile(t, filepath.Join(dir, projectsDir, "-srv-x", name), fmt.Sprintf(record, i, true))
		}
		home := agentstest.Open(t, "claude", dir, sessiontest.OpenDir(t, dir))
		sessions := home.Sessions("")
		require.Len(t, sessions, n+1)
		work := sessiontest.WorkOf(func() {
			for _, name := range sessions {
				require.Equal(t, storage.KindFile, storagetest.Stat(t, home, name).Kind)
			}
		})
		return work.Sum()
	})
}

// TestManySidechains: one pass shares out the records of a file of the oldest clients, however many
// conversations of subagents it has.
func TestManySidechains(t *testing.T) {
	const record = `{"type":"user","uuid":"u%d","parentUuid":%s,"isSidechain":%t,"sessionId":"s","version":"1.0.9",` +
		`"timestamp":"2026-01-05T10:00:00.000Z","cwd":"/srv/x","message":{"role":"user","content":"y"}}` + "\n"
	sessiontest.Linear(t, 100, func(n int) int64 {
		var text strings.Builder
		fmt.Fprintf(&text, record, 0, "null", false)
		for i := range n {
			fmt.Fprintf(&text, record, 2*i+1, "null", true)
		}
		for i := range n {
			fmt.Fprintf(&text, record, 2*i+2, fmt.Sprintf(`"u%d"`, 2*i+1), true)
		}
		dir, read := t.TempDir(), int64(0)
		sessiontest.WriteFile(t, filepath.Join(dir, projectsDir, "-srv-x", "s.jsonl"), text.String())
		files := &storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir)}
		home := agentstest.Open(t, "claude", dir, files)
		work := sessiontest.WorkOf(func() {
			sessions := home.Sessions("")
			require.Len(t, sessions, n+1)
			for _, name := range sessions {
				obj, err := home.Open(name)
				require.NoError(t, err)
				_, _, _, err = obj.(interface {
					Beginning() ([]byte, storage.Stat, int64, error)
				}).Beginning()
				require.NoError(t, err)
				require.Contains(t, storagetest.ReadObject(t, obj), `"cwd":"/srv/x"`)
				require.NoError(t, obj.Close())
			}
		})
		return work.Scanned + read
	})
}
