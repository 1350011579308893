package forks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/driver" // its file system
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// openCodeTables are the tables of OpenCode that are read.
const openCodeTables = `PRAGMA journal_mode=WAL;
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER, revert TEXT, metadata TEXT);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);`

// exported is what OpenCode's command imports.
type exported struct {
	Info     map[string]any
	Messages []struct {
		Info  map[string]any
		Parts []map[string]any
	}
}

// openCode is a database of OpenCode, and its command that imports.
type openCode struct {
	*home
	conn *sqlite3.Conn
}

// newOpenCode returns a home with a session of a prompt, whose model a handover has.
func newOpenCode(t testing.TB) *openCode {
	dir := t.TempDir()
	conn, err := sqlite3.Open("file:" + filepath.Join(dir, "opencode.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.Exec(openCodeTables))
	c := &openCode{home: openHome(t, "opencode", dir), conn: conn}
	c.insert(&exported{Info: map[string]any{
		"id":        "ses_old",
		"directory": "/old",
		"title":     "Old",
		"version":   "1.18.33",
		"time":      map[string]any{"created": 1.0, "updated": 1.0},
	}})
	c.message("ses_old", "msg_old", `{"role":"user","time":{"created":1},"model":{"providerID":"p1","modelID":"m1"}}`, `{"type":"text","text":"old"}`)
	c.forks.Run = func(_ context.Context, cwd string, command []string) error {
		if !slices.Equal(command[:2], []string{"opencode", "import"}) || cwd == "" {
			return fmt.Errorf("command %q in %q", command, cwd)
		}
		text, err := os.ReadFile(command[2])
		var of exported
		err = errors.Join(err, json.Unmarshal(text, &of))
		c.insert(&of)
		return err
	}
	return c
}

// row writes a row by a statement with the parameters $1, $2 and so on. It fails if there is a row of its id: each
// of the client's ids names one thing.
func (c *openCode) row(sql string, values ...any) {
	for i, value := range values {
		text, isText := value.(string)
		if !isText {
			asJSON, _ := json.Marshal(value)
			text = string(asJSON)
		}
		parameter := fmt.Sprintf("$%d", i+1)
		quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
		sql = strings.Replace(sql, parameter, quoted, 1)
	}
	require.NoError(c.T, c.conn.Exec(sql))
}

// message writes a message with parts.
func (c *openCode) message(session, id, info string, parts ...string) {
	var of struct{ Time struct{ Created int64 } }
	require.NoError(c.T, json.Unmarshal([]byte(info), &of))
	c.row("INSERT INTO message VALUES ($1, $2, $3, $4)", id, session, of.Time.Created, info)
	for i, part := range parts {
		c.row("INSERT INTO part VALUES ($1, $2, $3, $4)", fmt.Sprintf("prt_%s_%d", id, i), id, session, part)
	}
}

// insert imports a session, as the client does.
func (c *openCode) insert(of *exported) {
	at, _ := of.Info["time"].(map[string]any)
	metadata, _ := json.Marshal(of.Info["metadata"])
	c.row("INSERT INTO session VALUES ($1, NULL, $2, $3, $4, $5, $6, NULL, $7)",
		of.Info["id"], of.Info["directory"], of.Info["title"], of.Info["version"], at["created"], at["updated"], string(metadata))
	for _, m := range of.Messages {
		info, _ := json.Marshal(m.Info)
		require.Equal(c.T, of.Info["id"], m.Info["sessionID"])
		at, _ := m.Info["time"].(map[string]any)
		c.row("INSERT INTO message VALUES ($1, $2, $3, $4)", m.Info["id"], m.Info["sessionID"], at["created"], string(info))
		for _, p := range m.Parts {
			part, _ := json.Marshal(p)
			require.Equal(c.T, m.Info["id"], p["messageID"])
			c.row("INSERT INTO part VALUES ($1, $2, $3, $4)", p["id"], p["messageID"], p["sessionID"], string(part))
		}
	}
}

// answer returns the JSON of an answer to a prompt.
func answer(asked string, at int, more string) string {
	return fmt.Sprintf(`{"role":"assistant","parentID":%q,"time":{"created":%d},"modelID":"m1","tokens":{"input":7,"output":3,"reasoning":0,"cache":{"read":0,"write":0}}%s}`, asked, at, more)
}

// TestForkOpenCode: a fork at each entry is a session that the agent's own command takes, with the same conversation.
// No row of before changes.
func TestForkOpenCode(t *testing.T) {
	c := newOpenCode(t)
	c.insert(&exported{Info: map[string]any{"id": "ses_a", "directory": "/srv/pond", "title": "Pond", "version": "1.18.33", "time": map[string]any{"created": 10.0, "updated": 90.0}}})
	c.message("ses_a", "msg_1", `{"role":"user","time":{"created":11}}`, `{"type":"text","text":"count"}`, `{"type":"text","synthetic":true,"text":"a file"}`)
	c.message("ses_a", "msg_2", answer("msg_1", 12, ""), `{"type":"text","text":"I look."}`,
		`{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"heron","time":{"end":13}}}`,
		`{"type":"tool","callID":"c2","tool":"read","state":{"status":"error","input":{},"error":"gone","time":{"end":14}}}`)
	c.message("ses_a", "msg_3", answer("msg_1", 15, ""), `{"type":"text","text":"One."}`)
	c.message("ses_a", "msg_4", `{"role":"user","time":{"created":16}}`, `{"type":"compaction","auto":true}`)
	c.message("ses_a", "msg_5", answer("msg_4", 17, `,"summary":true`), `{"type":"text","text":"A heron was counted."}`)
	c.message("ses_a", "msg_6", `{"role":"user","time":{"created":18}}`, `{"type":"text","text":"once more"}`)
	c.message("ses_a", "msg_7", answer("msg_6", 19, ""), `{"type":"text","text":"Two."}`)
	const name = "-srv-pond/ses_a.jsonl"
	before := c.rows()
	entries := c.entries(name)
	require.Greater(t, len(entries), 8)
	for i, id := range entries {
		made, err := c.fork(name, id, "")
		require.NoError(t, err, id)
		_, spent := c.leaf(made)
		require.Empty(t, spent)
		if i == len(entries)-1 {
			original := sessiontest.Snapshot(t, c.store.Session(name))
			fork := sessiontest.Snapshot(t, c.store.Session(made))
			want := contextOf(t, original, sessiontest.Leaf(t, original))
			got := contextOf(t, fork, sessiontest.Leaf(t, fork))
			require.Equal(t, want, got)
		}
	}
	require.True(t, bytes.HasPrefix(c.rows(), before))
	made, err := c.fork(name, entries[0], "The pond")
	require.NoError(t, err)
	header, _, err := sessiontest.Snapshot(t, c.store.Session(made)).ReadHeader()
	require.NoError(t, err)
	title, _ := header.Member("title").Text()
	require.Equal(t, "The pond", title)

	c.forks.Run = nil // as in a mount
	_, err = c.fork(name, entries[0], "")
	require.ErrorContains(t, err, "OpenCode takes a new session by the command opencode import, which sessionfs fork and sessionfs resume run")
	c.forks.Run = func(context.Context, string, []string) error { return nil }
	_, err = c.fork(name, entries[0], "")
	require.ErrorContains(t, err, "keeps it elsewhere")
	c.forks.Run = func(context.Context, string, []string) error { return errors.New("status 1") }
	_, err = c.fork(name, entries[0], "")
	require.ErrorContains(t, err, "status 1")
	require.Empty(t, files(t, c.forks.Temporary))
}

// rows returns all messages and parts, in the order of their writing.
func (c *openCode) rows() []byte {
	var out bytes.Buffer
	for _, table := range []string{"message", "part"} {
		rows, _, err := c.conn.Prepare("SELECT id, data FROM " + table + " ORDER BY rowid LIMIT 7")
		require.NoError(c.T, err)
		for rows.Step() {
			fmt.Fprintln(&out, rows.ColumnText(0), rows.ColumnText(1))
		}
		require.NoError(c.T, rows.Close())
	}
	return out.Bytes()
}
