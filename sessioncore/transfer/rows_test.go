package transfer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/driver" // its file system
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	_ "sessionfs/sessioncore/agents/opencode" // whose sessions are rows
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestDatabaseRows: sessions in a database, and those in several documents each, are found by the directory and by the database's
// file, and belong to the agent.
func TestDatabaseRows(t *testing.T) {
	dir := t.TempDir()
	conn, err := sqlite3.Open("file:" + filepath.Join(dir, "opencode.db"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Exec(`PRAGMA journal_mode=WAL;
CREATE TABLE session (id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);
INSERT INTO session VALUES ('ses_1', '/srv/pond', 'Herons', 1, 2), ('ses_2', '/srv/pond', 'Frogs', 1, 2)`))
	sessiontest.WriteFile(t, filepath.Join(dir, "storage/session/p/ses_3.json"), `{"id":"ses_3","directory":"/srv/pond","time":{"created":1}}`)
	count, err := Count(t.Context(), dir, agents.Find("opencode"))
	require.NoError(t, err)
	require.Equal(t, Census{Sessions: 3}, count)
	for _, given := range []string{dir, filepath.Join(dir, "opencode.db")} {
		s, err := Open(t.TempDir())
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, s.Add(t.Context(), given, strings.NewReader("")))
		require.Len(t, s.Found, 3)
		for i := range s.Found {
			require.NoError(t, s.Found[i].Err)
			require.NoError(t, s.Found[i].settle(t.Context()))
			require.Equal(t, "opencode", s.Found[i].source)
		}
	}
}
