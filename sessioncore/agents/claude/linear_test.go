package claude

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// oldRecord returns the nth record of a session of an old client, of the session itself or of a subagent. parent is the
// number of the record on which it hangs, or -1.
func oldRecord(version string, n, parent int, isSubagents bool) string {
	parentUUID := "null"
	if parent >= 0 {
		parentUUID = fmt.Sprintf(`"u%d"`, parent)
	}
	return fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":%s,"isSidechain":%t,"sessionId":"s","version":%q,`+
		`"timestamp":"2026-01-05T10:00:00.000Z","cwd":"/srv/x","message":{"role":"user","content":"y"}}`+"\n",
		n, parentUUID, isSubagents, version)
}

// TestManySubagentsBeside: a look-up of a subagent of a session costs the same, however many lie beside
// it.
func TestManySubagentsBeside(t *testing.T) {
	const version = "2.0.28"
	sessiontest.LinearMemory(t, 200, func(n int) int64 {
		dir := t.TempDir()
		project := filepath.Join(dir, projectsDir, "-srv-x")
		sessiontest.WriteFile(t, filepath.Join(project, "s.jsonl"), oldRecord(version, 0, -1, false))
		for i := range n {
			file := filepath.Join(project, fmt.Sprintf("agent-%d.jsonl", i))
			sessiontest.WriteFile(t, file, oldRecord(version, i, -1, true))
		}
		home := agentstest.Open(t, "claude", dir, sessiontest.OpenDir(t, dir))
		sessions := home.Sessions("")
		require.Len(t, sessions, n+1)
		work := sessiontest.WorkOf(func() {
			for _, name := range sessions {
				st := storagetest.Stat(t, home, name)
				require.Equal(t, storage.KindFile, st.Kind)
			}
		})
		return work.Sum()
	})
}

// TestManySidechains: one pass shares out the records of a file of the oldest clients, however many
// conversations of subagents it has.
func TestManySidechains(t *testing.T) {
	const version = "1.0.9"
	sessiontest.Linear(t, 100, func(n int) int64 {
		var text strings.Builder
		text.WriteString(oldRecord(version, 0, -1, false))
		for i := range n { // all begin before any goes on
			text.WriteString(oldRecord(version, 2*i+1, -1, true))
		}
		for i := range n {
			text.WriteString(oldRecord(version, 2*i+2, 2*i+1, true))
		}
		dir := t.TempDir()
		file := filepath.Join(dir, projectsDir, "-srv-x", "s.jsonl")
		sessiontest.WriteFile(t, file, text.String())
		home := agentstest.Open(t, "claude", dir, sessiontest.OpenDir(t, dir))
		work := sessiontest.WorkOf(func() {
			sessions := home.Sessions("")
			require.Len(t, sessions, n+1)
			for _, name := range sessions {
				readBoth(t, home, name)
			}
		})
		return work.Scanned
	})
}

// readBoth reads the beginning of a session, as a list does, and then all of it.
func readBoth(t *testing.T, home *agentstest.Home, name string) {
	obj, err := home.Open(name)
	require.NoError(t, err)
	_, _, _, err = obj.(sessioncore.Converted).Beginning()
	require.NoError(t, err)
	require.Contains(t, storagetest.ReadObject(t, obj), `"cwd":"/srv/x"`)
	require.NoError(t, obj.Close())
}
