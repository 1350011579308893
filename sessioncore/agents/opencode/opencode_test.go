package opencode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/driver" // its file system
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/sqlite"
	"sessionfs/sessioncore/storage/storagetest"
)

// tables makes the tables of the client that are read, with the columns that are.
const tables = `PRAGMA journal_mode=WAL;
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER, revert TEXT);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
CREATE TABLE event_sequence (aggregate_id TEXT PRIMARY KEY, seq INTEGER);
CREATE TABLE event (aggregate_id TEXT, seq INTEGER, type TEXT, data TEXT);`

// database is a client's database in a home, open for writing.
type database struct {
	*agentstest.Home
	conn *sqlite3.Conn
}

// newDatabase returns a home with a database, which a client has open.
func newDatabase(t *testing.T, schema string) *database {
	dir := t.TempDir()
	conn, err := sqlite3.Open("file:" + filepath.Join(dir, "opencode.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.Exec(schema))
	return &database{Home: agentstest.Open(t, "opencode", dir, sessiontest.OpenDir(t, dir)), conn: conn}
}

// insert writes a row.
func (d *database) insert(table string, row map[string]any) {
	var columns, values []string
	for name, value := range row {
		columns = append(columns, name)
		text := strings.ReplaceAll(fmt.Sprint(value), "'", "''")
		values = append(values, "'"+text+"'")
	}
	sql := fmt.Sprintf("INSERT OR REPLACE INTO %s (%s) VALUES (%s)", table, strings.Join(columns, ", "), strings.Join(values, ", "))
	require.NoError(d.T, d.conn.Exec(sql))
}

// session writes the row of a session that changed at a time.
func (d *database) session(id, title string, updated int) {
	d.insert("session", map[string]any{"id": id, "directory": "/srv/pond", "title": title, "time_created": 1000, "time_updated": updated})
}

// subagent writes the row of a session that another one called.
func (d *database) subagent(id, caller, title string) {
	d.insert("session", map[string]any{
		"id":           id,
		"parent_id":    caller,
		"directory":    "/srv/pond",
		"title":        title,
		"time_created": 1,
		"time_updated": 1,
	})
}

// home returns the home of the database.
func (d *database) home() *home {
	files := sessiontest.OpenDir(d.T.(*testing.T), d.Dir)
	return newHome(agents.Source{Files: files}, "opencode", "opencode")
}

// info writes the row of a message, created at a time in ms, without parts.
func (d *database) info(session, id string, created int, data string) {
	d.insert("message", map[string]any{"id": id, "session_id": session, "time_created": created, "data": data})
}

// part writes the row of a part of a message.
func (d *database) part(session, message, id, data string) {
	d.insert("part", map[string]any{"id": id, "message_id": message, "session_id": session, "data": data})
}

// event writes an event of a session's log.
func (d *database) event(session string, seq int, eventType, data string) {
	d.insert("event", map[string]any{"aggregate_id": session, "seq": seq, "type": eventType, "data": data})
}

// message writes a message of a text, created at a time in ms.
func (d *database) message(session, id string, created int, role, text string) {
	info := fmt.Sprintf(`{"role":%q,"time":{"created":%d}}`, role, created)
	d.info(session, id, created, info)
	part := fmt.Sprintf(`{"type":"text","text":%q}`, text)
	d.part(session, id, "prt_"+id, part)
}

// samples returns the path of the sample of a client's rows.
func samples(t *testing.T) string {
	return filepath.Join(sessiontest.TestData(t), "agents", "opencode", "rows.jsonl")
}

// insertSamples writes the rows of the sample.
func (d *database) insertSamples() {
	text, err := os.ReadFile(samples(d.T.(*testing.T)))
	require.NoError(d.T, err)
	require.NoError(d.T, d.conn.Exec("BEGIN"))
	for line := range strings.Lines(string(text)) {
		var r struct {
			Table string
			Row   map[string]any
		}
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		require.NoError(d.T, decoder.Decode(&r))
		d.insert(r.Table, r.Row)
	}
	require.NoError(d.T, d.conn.Exec("COMMIT"))
}

// TestRows: rows of a client's database are the sessions in the expected text: prompts, answers, calls, errors, a
// compaction, a command, files, a revert, removed messages, a fork and a subagent.
func TestRows(t *testing.T) {
	sample := samples(t)
	d := newDatabase(t, tables)
	d.insertSamples()
	got := ""
	for _, name := range d.Sessions("") {
		read := d.Read(name)
		agentstest.Entries(t, read)
		got += name + "\n" + read
	}
	if os.Getenv("SESSIONFS_UPDATE_WANTS") != "" {
		require.NoError(t, os.WriteFile(sample+".want", []byte(got), 0o600))
	}
	want, err := os.ReadFile(sample + ".want")
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestLive: sessions, messages and titles that a client adds are seen at the next look, and an open session stays as it was.
func TestLive(t *testing.T) {
	d := newDatabase(t, tables)
	require.Empty(t, d.Sessions(""))
	d.session("ses_1", "New session - 2026-11-29T02:06:39.000Z", 1)
	d.message("ses_1", "msg_1", 1001, "user", "Count the herons")
	name := "-srv-pond/ses_1.jsonl"
	require.Equal(t, []string{name}, d.Sessions(""))
	first := d.Read(name)
	require.Contains(t, first, `"title":"Count the herons"`)
	obj, err := d.Open(name)
	require.NoError(t, err)
	defer obj.Close()
	before, err := d.Stat(name)
	require.NoError(t, err)
	raw := d.home()
	st, err := raw.Stat(name)
	require.NoError(t, err)
	require.Len(t, storagetest.Read(t, raw, name), int(st.Size))

	d.message("ses_1", "msg_2", 1002, "assistant", "Two herons")
	d.session("ses_1", "Herons", 2)
	require.Contains(t, d.Read(name), `"title":"Herons"`)
	require.Contains(t, d.Read(name), "Two herons")
	after, err := d.Stat(name)
	require.NoError(t, err)
	require.NotEqual(t, before.Token, after.Token)
	d.session("ses_2", "Frogs", 3)
	require.Len(t, d.Sessions(""), 2)
	require.NoError(t, d.conn.Exec("DELETE FROM session WHERE id = 'ses_1'"))
	require.Len(t, d.Sessions(""), 1)
}

// TestFirstRecord: the row of a session alone tells where and when it began, and its header if it has a title, as its
// text does.
func TestFirstRecord(t *testing.T) {
	d := newDatabase(t, tables)
	d.insertSamples()
	reads := 0
	files := &storagetest.Hooked{Storage: sessiontest.OpenDir(t, d.Dir), Before: func(c storagetest.Call) error {
		if c.Op == "ReadAt" {
			reads++
		}
		return nil
	}}
	counted := agentstest.Open(t, "opencode", d.Dir, files)
	place := func(text []byte) (header struct{ ID, Cwd, Timestamp string }) {
		first, _, _ := strings.Cut(string(text), "\n")
		require.NoError(t, json.Unmarshal([]byte(first), &header))
		require.NotEmpty(t, header.Cwd)
		return header
	}
	names := counted.Sessions("")
	titled := 0
	for _, name := range names {
		obj, err := counted.Open(name)
		require.NoError(t, err)
		before := reads
		start, err := obj.(sessioncore.Started).Start(false)
		require.NoError(t, err)
		require.Equal(t, before, reads, "it reads nothing")
		header, err := sessioncore.ReadHeaderOf(t.Context(), counted, name)
		require.NoError(t, err)
		if strings.Contains(string(header), `"title":"Herons"`) { // as in rows
			require.Equal(t, before, reads, "it reads nothing")
			titled++
		}
		text, _, _, err := obj.(sessioncore.Converted).Beginning()
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		require.Equal(t, first, string(header))
		require.NoError(t, obj.Close())
		require.Equal(t, place([]byte(d.Read(name))), place(start))
	}
	require.NotZero(t, titled)
}

// TestPlaced: a sum of costs finds the sessions by their rows, as a list does by their texts, and makes a text only of those
// without a title that began when others did.
func TestPlaced(t *testing.T) {
	d := newDatabase(t, tables)
	d.insertSamples()
	d.session("ses_untitled", "New session - 2026-11-29T02:06:39.000Z", 7)
	d.message("ses_untitled", "msg_untitled", 1001, "user", "Count the herons")
	d.session("ses_titled", "Herons", 8)
	d.message("ses_titled", "msg_titled", 1001, "user", "Count the herons")
	home, files := d.billedHome()
	list := func() *listing.Listing {
		store := sessioncore.NewStore(files)
		t.Cleanup(store.Close)
		l := listing.New(store, "")
		l.SetBrief()
		return l
	}
	facts := func(infos []*listing.Info) (all []string) {
		for _, i := range infos {
			created, _ := i.Created()
			all = append(all, fmt.Sprint(i.Name(), i.ID, i.CWD, created, i.Modified(), i.IsSubagent()))
		}
		return all
	}
	placed, err := list().Placed(t.Context())
	require.NoError(t, err)
	require.Contains(t, home.sizes, "ses_untitled", "it began when ses_titled did")
	require.NotContains(t, home.sizes, "ses_titled", "its row has the title and the parent")
	begun := map[int64]int{}
	parents := map[string]string{}
	for _, i := range placed {
		created, _ := i.Created()
		begun[created]++
		parents[i.Name()] = i.Parent
		st, err := files.Facts().Stat(i.Name())
		require.NoError(t, err)
		require.Equal(t, i.Stat.Inode, st.Inode)
	}
	all, err := list().Sessions(t.Context())
	require.NoError(t, err)
	require.Equal(t, facts(all.All()), facts(placed))
	for _, i := range all.All() {
		created, _ := i.Created()
		if begun[created] > 1 {
			require.Equal(t, i.Parent, parents[i.Name()])
		}
	}
	require.Len(t, home.sizes, len(placed))
}

// TestNewest: a command's list of names makes texts of sessions without a title alone, and is that of a mount.
func TestNewest(t *testing.T) {
	d := newDatabase(t, tables)
	d.insertSamples()
	d.session("ses_untitled", "New session - 2026-11-29T02:06:39.000Z", 7)
	d.message("ses_untitled", "msg_untitled", 1001, "user", "Count the herons")
	home, files := d.billedHome()
	newest := func(isBrief bool) (all []string) {
		store := sessioncore.NewStore(files)
		t.Cleanup(store.Close)
		l := listing.New(store, "")
		if isBrief {
			l.SetBrief()
		}
		for i, err := range l.NewestFirst(t.Context()) {
			require.NoError(t, err)
			all = append(all, fmt.Sprint(i.Name(), i.ID, i.Parent, i.DisplayName(), i.Modified(), i.IsSubagent(), i.Stat.UID))
		}
		return all
	}
	brief := newest(true)
	l, err := home.sessions()
	require.NoError(t, err)
	untitled := 0
	for id, s := range l.sessions {
		_, isMade := home.sizes[id]
		require.Equal(t, titleOf(s.title) == "", isMade, id)
		if isMade {
			untitled++
		}
	}
	require.Positive(t, untitled)
	require.Equal(t, newest(false), brief)
}

// TestFirstUse: an open session has the text of its first use, whatever comes later; one that is removed before has none.
func TestFirstUse(t *testing.T) {
	d := newDatabase(t, tables)
	d.session("ses_1", "Herons", 1)
	d.message("ses_1", "msg_1", 1001, "user", "Count the herons")
	home := d.home()
	open := func() storage.Object {
		obj, err := home.Open("-srv-pond/ses_1.jsonl")
		require.NoError(t, err)
		return obj
	}
	used := open()
	defer used.Close()
	late := open()
	defer late.Close()
	unused := open()
	before, err := used.Stat()
	require.NoError(t, err)
	d.message("ses_1", "msg_2", 1002, "assistant", "Two herons")
	d.session("ses_1", "Herons", 2)
	changed, err := late.Stat()
	require.NoError(t, err)
	require.Greater(t, changed.Size, before.Size)
	require.NotEqual(t, before.Token, changed.Token)
	require.NoError(t, d.conn.Exec("DELETE FROM session WHERE id = 'ses_1'"))
	still, err := used.Stat()
	require.NoError(t, err)
	require.Equal(t, before, still)
	text := make([]byte, before.Size)
	require.NoError(t, storage.ReadFull(used, text, 0))
	require.NotContains(t, string(text), "Two herons")
	_, err = unused.Stat()
	require.ErrorIs(t, err, fs.ErrNotExist, "as of a file that is removed before it is opened")
	require.NoError(t, unused.Close())
	_, err = unused.ReadAt(text, 0)
	require.ErrorIs(t, err, fs.ErrClosed)
}

// TestSettled: the states of sessions and directories are in the past, so that a list reads nothing again that did not change.
func TestSettled(t *testing.T) {
	d := newDatabase(t, tables)
	d.session("ses_1", "Herons", 1_795_000_000_000)
	d.insert("event_sequence", map[string]any{"aggregate_id": "ses_1", "seq": 1 << 30})
	home := d.home()
	for _, name := range []string{"", "-srv-pond", "-srv-pond/ses_1.jsonl"} {
		st, err := home.Stat(name)
		require.NoError(t, err)
		require.False(t, st.Racy(time.UnixMilli(1_796_000_000_000).UnixNano()), name)
	}
}

// TestNamesChange: the state of a directory changes with the names in it, whichever they are, and with nothing else.
func TestNamesChange(t *testing.T) {
	d := newDatabase(t, tables)
	home := d.home()
	states := func() (all []int64) {
		for _, dir := range []string{"", "-srv-pond"} {
			st, err := home.Stat(dir)
			require.NoError(t, err)
			all = append(all, st.Changed)
		}
		return all
	}
	remove := func(id string) { require.NoError(t, d.conn.Exec("DELETE FROM session WHERE id = '"+id+"'")) }
	elsewhere := func(id, dir string) {
		d.insert("session", map[string]any{"id": id, "directory": dir, "title": "Herons", "time_created": 1000, "time_updated": 1})
	}
	d.session("ses_12", "Herons", 1)
	d.session("ses_30", "Herons", 1)
	elsewhere("ses_a", "/lake/1")
	elsewhere("ses_b", "/lake/2")
	first := states()
	list, err := home.sessions()
	require.NoError(t, err)
	for range 2 { // the second time they are known
		for i, dir := range []string{"", "-srv-pond"} {
			change, isDir := list.changeOf(dir)
			require.True(t, isDir)
			require.Equal(t, first[i], change)
		}
	}
	d.session("ses_12", "Bitterns", 2)
	require.Equal(t, first, states(), "the names are the same")

	remove("ses_12")
	d.session("ses_21", "Herons", 1)
	swapped := states()
	require.NotEqual(t, first[1], swapped[1], "one name is another, of the same letters")
	require.Equal(t, first[0], swapped[0])
	d.session("ses_00", "Herons", 1)
	grown := states()
	require.NotEqual(t, swapped[1], grown[1])
	d.subagent("ses_sub", "ses_00", "t")
	require.NotEqual(t, grown[1], states()[1], "a subagent makes a directory")
	remove("ses_sub")
	require.Equal(t, grown, states())

	elsewhere("ses_c", "/lake/3")
	require.NotEqual(t, grown[0], states()[0])
	require.Equal(t, grown[1], states()[1])
	remove("ses_c")
	remove("ses_00")
	remove("ses_21")
	d.session("ses_12", "Herons", 1)
	require.Equal(t, first, states(), "it is as it was")

	for i := range 100 {
		d.session(fmt.Sprintf("ses_1%02d", i), "Herons", 1)
	}
	many := states()
	d.session("ses_200", "Herons", 1)
	require.NotEqual(t, many[1], states()[1], "one more than many")
}

// TestHash: the hash of a text is the one of the standard library.
func TestHash(t *testing.T) {
	for _, text := range []string{"", "s", "ses_12.jsonl", "ses_21.jsonl", "-srv-pond", "/é"} {
		want := fnv.New64a()
		_, _ = want.Write([]byte(text))
		require.Equal(t, want.Sum64(), hashOf(text), text)
	}
}

// TestOldTables: a database without the newer columns and tables is read, one that is empty has no sessions, and a view
// in the place of a table is not asked.
func TestOldTables(t *testing.T) {
	d := newDatabase(t, `CREATE TABLE session (id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)`)
	d.session("ses_1", "Herons", 1)
	d.message("ses_1", "msg_1", 1001, "user", "Count the herons")
	d.info("ses_1", "msg_2", 1002, "damaged")
	d.session("other", "no session", 1)
	d.session("ses_../up", "no name", 1)
	require.Equal(t, []string{"-srv-pond/ses_1.jsonl"}, d.Sessions(""))
	require.Contains(t, d.Read("-srv-pond/ses_1.jsonl"), "Count the herons")
	d.message("ses_1", "msg_3", 1003, "assistant", "The row of its session did not change")
	require.Contains(t, d.Read("-srv-pond/ses_1.jsonl"), "did not change")
	require.Empty(t, newDatabase(t, "CREATE TABLE other (id TEXT)").Sessions(""))
	require.Empty(t, newDatabase(t, "CREATE TABLE t (id, directory, title); CREATE VIEW session AS SELECT * FROM t").Sessions(""))
}

// TestDocuments: documents of old clients are sessions, unless the database has a session of that id.
func TestDocuments(t *testing.T) {
	d := newDatabase(t, tables)
	d.session("ses_2", "In the database", 5)
	for _, id := range []string{"ses_1", "ses_2"} {
		d.Put("storage/session/p/"+id+".json", "{\n\"id\":\""+id+"\",\"directory\":\"/srv/pond\",\"title\":\"A document\",\"time\":{\"created\":1000,\"updated\":2000}}")
		d.Put("storage/message/"+id+"/msg_1.json", "{\n\"role\":\"user\",\"time\":{\"created\":1001}}")
		d.Put("storage/part/msg_1/prt_1.json", "{\n\"type\":\"text\",\"text\":\"Count the herons\"}")
	}
	d.Put("storage/session_diff/ses_1.json", "[]")
	require.Equal(t, []string{"-srv-pond/ses_1.jsonl", "-srv-pond/ses_2.jsonl"}, d.Sessions(""))
	require.Contains(t, d.Read("-srv-pond/ses_1.jsonl"), "Count the herons")
	require.Contains(t, d.Read("-srv-pond/ses_1.jsonl"), "A document")
	require.Contains(t, d.Read("-srv-pond/ses_2.jsonl"), "In the database")
}

// TestRemovedTwice: what one undo removed hangs on what an earlier one left, where it was when it came, also if the first
// messages are older than the log of events.
func TestRemovedTwice(t *testing.T) {
	d := newDatabase(t, tables)
	d.session("ses_1", "Herons", 1)
	seq := 0
	event := func(kind, data string) {
		seq++
		d.event("ses_1", seq, kind, data)
	}
	came := func(id string, at int) {
		event("message.updated.1", fmt.Sprintf(`{"info":{"id":%q,"role":"user","time":{"created":%d}}}`, id, at))
		for _, part := range []string{"a", "b"} {
			data := fmt.Sprintf(`{"part":{"id":"prt_%s%s","messageID":%q,"type":"text","text":"%[3]s%[2]s"}}`, id, part, id)
			event("message.part.updated.1", data)
		}
	}
	removed := func(ids ...string) {
		for _, id := range ids {
			event("message.removed.1", fmt.Sprintf(`{"messageID":%q}`, id))
		}
	}
	d.message("ses_1", "msg_a", 1001, "user", "a")
	came("msg_b", 1002)
	came("msg_c", 1003)
	event("message.part.removed.1", `{"messageID":"msg_c","partID":"prt_msg_cb"}`)
	removed("msg_c")
	came("msg_d", 1004)
	removed("msg_b", "msg_d")
	came("msg_e", 1005)
	d.message("ses_1", "msg_e", 1005, "user", "e")
	came("msg_f", 1006)
	came("msg_g", 1007)
	d.message("ses_1", "msg_g", 1007, "user", "g")
	removed("msg_f")
	text := d.Read("-srv-pond/ses_1.jsonl")
	var parents []string
	for _, entry := range agentstest.Outline(t, text)[1:] { // behind the header
		ids, _, _ := strings.Cut(entry, " message")
		parents = append(parents, ids)
	}
	want := []string{
		"msg_a < ",
		"msg_b < msg_a",
		"msg_c < msg_b",
		"msg_d < msg_b",
		"msg_e < msg_a",
		"msg_f < msg_e",
		"msg_g < msg_e",
	}
	require.Equal(t, want, parents)
	require.Contains(t, text, "msg_ca")
	require.NotContains(t, text, "msg_cb")
}

// TestLater: messages and sessions in tables of the coming client are told of.
func TestLater(t *testing.T) {
	d := newDatabase(t, tables+"CREATE TABLE session_message (id TEXT, session_id TEXT, data TEXT)")
	d.session("ses_1", "Herons", 1)
	d.session("ses_2", "Frogs", 1)
	name := "-srv-pond/ses_1.jsonl"
	require.NotContains(t, d.Read(name), "not read")
	d.insert("session_message", map[string]any{"id": "msg_1", "session_id": "ses_1", "data": "{}"})
	require.Contains(t, d.Read(name), `"1 messages in the table session_message, of a newer client, are not read"`)
	require.NotContains(t, d.Read("-srv-pond/ses_2.jsonl"), "not read")
	require.NoError(t, d.conn.Exec("ALTER TABLE session RENAME TO session_v2"))
	_, err := d.home().Stat("")
	require.ErrorContains(t, err, "session_v2")
}

// TestLastKnown: while the database cannot be read, its last sessions are shown; without any it is refused.
func TestLastKnown(t *testing.T) {
	d := newDatabase(t, tables)
	d.session("ses_1", "Herons", 1)
	require.NoError(t, d.conn.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
	source := agents.Source{Files: sessiontest.OpenDir(t, d.Dir)}
	home := newHome(source, "opencode", "opencode")
	_, err := home.Stat("-srv-pond/ses_1.jsonl")
	require.NoError(t, err)
	file := filepath.Join(d.Dir, "opencode.db")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("no database"), 0o600))
	items, err := storage.List(home, "-srv-pond")
	require.NoError(t, err)
	require.Len(t, items, 1)
	_, err = newHome(source, "opencode", "opencode").Stat("")
	require.ErrorIs(t, err, sqlite.ErrUnreadable)
	require.NoError(t, os.WriteFile(file, whole, 0o600))
	d.session("ses_2", "Frogs", 1)
	items, err = storage.List(home, "-srv-pond")
	require.NoError(t, err)
	require.Len(t, items, 2)
}

// breakPage breaks the page of a database on which a text begins. The client has written all to it.
func (d *database) breakPage(text string) {
	require.NoError(d.T, d.conn.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
	file := filepath.Join(d.Dir, "opencode.db")
	content, err := os.ReadFile(file)
	require.NoError(d.T, err)
	at := bytes.Index(content, []byte(text))
	require.Positive(d.T, at)
	const pageSize = 4096
	content[at-at%pageSize] = 0xff // no kind of page
	require.NoError(d.T, os.WriteFile(file, content, 0o600))
}

// TestDamagedPages: all sessions are shown, with the messages on the pages that can be read, and the damage is told.
func TestDamagedPages(t *testing.T) {
	const sessions = 200
	problem := "the database is damaged"
	for _, counts := range []string{"", "DROP TABLE event_sequence; DROP TABLE event; "} {
		d := newDatabase(t, tables+counts+"CREATE INDEX of_messages ON message (session_id); CREATE INDEX of_parts ON part (session_id)")
		for i := range sessions {
			id := fmt.Sprintf("ses_%03d", i)
			d.session(id, fmt.Sprintf("Pond %03d", i)+strings.Repeat(" and more", 20), 5000)
			for _, n := range []int{1, 2, 3} {
				text := fmt.Sprintf("words %d of %03d", n, i)
				d.message(id, fmt.Sprintf("msg_%03d%d", i, n), 1000*n, "user", text+strings.Repeat(".", 1900))
			}
		}
		require.NotContains(t, d.Read("-srv-pond/ses_100.jsonl"), problem)
		d.breakPage("Pond 100")
		d.breakPage("words 2 of 050")
		home := d.home()
		l, err := home.sessions()
		require.NoError(t, err)
		require.Len(t, l.sessions, sessions)
		require.Equal(t, int64(3000), l.sessions["ses_100"].updated)
		lost := d.Read(nameOfDirectory("") + "/ses_100.jsonl")
		require.Contains(t, lost, problem)
		require.Contains(t, lost, "words 3 of 100")
		part := d.Read("-srv-pond/ses_050.jsonl")
		require.Contains(t, part, problem)
		require.NotContains(t, part, "words 2 of 050")
		require.Equal(t, 1, strings.Count(part, "words 1 of 050")+strings.Count(part, "words 3 of 050"), "on the page are two texts")
		whole := d.Read("-srv-pond/ses_199.jsonl")
		require.NotContains(t, whole, problem)
		require.Contains(t, whole, "words 3 of 199")
	}
}

// TestCircle: sessions whose callers form a circle, or are very many, are shown.
func TestCircle(t *testing.T) {
	d := newDatabase(t, tables)
	call := func(id, caller string) { d.subagent(id, caller, "t") }
	call("ses_1", "ses_2")
	call("ses_2", "ses_1")
	call("ses_3", "ses_3")
	for i := range 100 {
		call(fmt.Sprintf("ses_4%03d", i), fmt.Sprintf("ses_4%03d", i-1))
	}
	home := d.home()
	l, err := home.sessions()
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, id := range l.top["-srv-pond"] {
		shown[id] = true
		for _, below := range l.allBelow(id) {
			shown[below] = true
		}
	}
	require.Len(t, shown, 103)
	require.Len(t, l.top["-srv-pond"], 3+1+100-maxDepth, "the circles, the first of the chain, and those too deep in it")
}

// TestOrphan: a subagent whose session is gone is a session of its own, which names no other: it is no fork.
func TestOrphan(t *testing.T) {
	d := newDatabase(t, tables)
	call := func(id, caller string) {
		d.subagent(id, caller, "Count herons (@explore subagent)")
		d.message(id, "msg_"+id, 1001, "user", "Count the herons")
	}
	d.session("ses_caller", "Herons", 1)
	call("ses_called", "ses_caller")
	call("ses_orphan", "ses_gone")
	call("ses_1", "ses_2")
	call("ses_2", "ses_1")
	home := d.home()
	for name, parent := range map[string]string{
		"ses_caller/subagents/ses_called.jsonl": "ses_caller",
		"ses_orphan.jsonl":                      "",
		"ses_1.jsonl":                           "",
	} {
		about, err := home.About("-srv-pond/"+name, nil, 0, true)
		require.NoError(t, err)
		require.Equal(t, parent, about.Parent, name)
		require.Equal(t, "Count herons (@explore subagent)", about.Title, name)
	}
}

// ownedFiles are files of another user.
type ownedFiles struct{ storage.Files }

// Stat implements storage.Files.
func (f ownedFiles) Stat(name string) (storage.Stat, error) {
	st, err := f.Files.Stat(name)
	st.UID = 1234
	st.GID = 5678
	return st, err
}

// TestOwner: sessions have the owner of the agent's directory, as a mount lets only that user in.
func TestOwner(t *testing.T) {
	d := newDatabase(t, tables)
	d.insert("session", map[string]any{"id": "ses_1", "directory": "/srv/pond", "title": "t", "time_created": 1, "time_updated": 1})
	home := newHome(agents.Source{Files: ownedFiles{sessiontest.OpenDir(t, d.Dir)}}, "opencode", "opencode")
	for name, mode := range map[string]uint32{"": 0o700, "-srv-pond": 0o700, "-srv-pond/ses_1.jsonl": 0o600} {
		st, err := home.Stat(name)
		require.NoError(t, err, name)
		require.Equal(t, []uint32{1234, 5678, mode}, []uint32{st.UID, st.GID, st.Mode}, name)
	}
}

// TestDirectories: the names of working directories are names of directories, whatever is in them.
func TestDirectories(t *testing.T) {
	require.Equal(t, "-srv-pond", nameOfDirectory("/srv/pond"))
	require.Equal(t, "C--pond", nameOfDirectory(`C:\pond`))
	for _, directory := range []string{"", ".hidden", "/" + strings.Repeat("x", 300)} {
		name := nameOfDirectory(directory)
		require.Less(t, len(name), 256)
		require.NotContains(t, name, "/")
		require.NotEqual(t, byte('.'), name[0])
	}
}

// FuzzText checks that a text of any lines gives a tree of whole entries, and the same one where it grew.
func FuzzText(f *testing.F) {
	kinds := []string{
		`{"session":{"id":"ses_1","directory":"/w","created":1000}}`,
		`{"id":"ID","info":{"role":"user","time":{"created":1001}},"parts":[{"id":"pID","data":{"type":"text","text":"TEXT"}}]}`,
		`{"id":"ID","removed":true,"info":{"role":"user"},"parts":[{"id":"pID","data":{"type":"text","text":"TEXT"}}]}`,
		`{"id":"ID","info":{"role":"user"},"parts":[{"id":"p","data":{"type":"text","synthetic":true,"text":"TEXT"}}]}`,
		`{"id":"ID","info":{"role":"user"},"parts":[{"data":{"type":"text","synthetic":true,"text":"` + executed + `"}}]}`,
		`{"id":"ID","info":{"role":"assistant","cost":0.5,"tokens":{"input":7,"cache":{"read":1}}},"parts":[{"data":{"type":"reasoning","text":"TEXT"}}]}`,
		`{"id":"ID","info":{"role":"assistant"},"parts":[{"id":"pID","data":{"type":"tool","callID":"c","tool":"bash",` +
			`"state":{"status":"completed","input":{"command":"TEXT"},"output":"TEXT"}}}]}`,
		`{"id":"ID","removed":true,"info":{"role":"assistant","error":{"name":"MessageAbortedError","data":{"message":"TEXT"}}},"parts":[]}`,
		`{"id":"ID","info":{"role":"assistant","summary":true},"parts":[{"data":{"type":"text","text":"TEXT"}}]}`,
		`{"revert":"ID"}`,
	}
	const (
		most     = 30 // lines
		messages = 6  // so few that lines name the same ones
		texts    = 3
	)
	f.Add([]byte("\x00\x01\x05\x02\x07\x01\x03\x06\x04\x06\x08\x01\x09"))
	f.Fuzz(func(t *testing.T, plan []byte) {
		var text strings.Builder
		for i, b := range plan[:min(len(plan), most)] {
			n := int(b)
			id := fmt.Sprint("m", n/len(kinds)%messages)
			words := fmt.Sprint("t", i%texts)
			line := strings.NewReplacer("ID", id, "TEXT", words).Replace(kinds[n%len(kinds)])
			text.WriteString(line + "\n")
		}
		converter := func() *agents.Builder { return (&home{}).Converter(agents.About{ID: "s"}, nil) }
		agentstest.Prefixes(t, converter, text.String())
	})
}

// TestKeptHandover: the kept text of a session names the session from which it was handed over, and nothing else that the client
// has in the same place.
func TestKeptHandover(t *testing.T) {
	d := newDatabase(t, strings.Replace(tables, "revert TEXT", "revert TEXT, metadata TEXT", 1))
	d.session("ses_1", "Herons", 9)
	origin := `{"handedOverFrom":{"session":"ses_1","sourceId":"abc"},"note":"of another program"}`
	require.NoError(t, d.conn.Exec(`UPDATE session SET metadata = '`+origin+`'`))
	name := "-srv-pond/ses_1.jsonl"
	home := d.home()
	text := storagetest.Read(t, home, name)
	require.NotContains(t, text, "another program")
	about, err := home.About(name, nil, 0, false)
	require.NoError(t, err)
	require.Equal(t, "abc", about.Parent)
	dir := t.TempDir()
	file := filepath.Join(dir, textsDir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	kept := newHome(agents.Source{Files: sessiontest.OpenDir(t, dir)}, "opencode", "opencode")
	require.Equal(t, text, storagetest.Read(t, kept, name))
	about, err = kept.About(name, nil, 0, false)
	require.NoError(t, err)
	require.Equal(t, "abc", about.Parent)
}

// TestManyRemovals: messages that were removed are found in each of many sessions that are read one after another, and in one that
// loses a message meanwhile.
func TestManyRemovals(t *testing.T) {
	d := newDatabase(t, tables+"CREATE INDEX event_types ON event (aggregate_id, type, seq)")
	remove := func(id string) { // a message of the session, as its log alone has it
		gone := fmt.Sprintf(`{"info":{"id":"msg_%s","role":"user","time":{"created":1001}}}`, id)
		d.event(id, 1, "message.updated.1", gone)
		part := fmt.Sprintf(`{"part":{"id":"prt_%s","messageID":"msg_%[1]s","type":"text","text":"the lost words"}}`, id)
		d.event(id, 2, "message.part.updated.1", part)
		d.event(id, 3, "message.removed.1", fmt.Sprintf(`{"messageID":"msg_%s"}`, id))
	}
	var ids []string
	for i := range manyReads + 100 {
		id := fmt.Sprintf("ses_%03d", i)
		d.session(id, "Herons", 1)
		d.message(id, "msg_"+id+"_kept", 1002, "user", "Count the herons")
		if i%10 == 0 {
			remove(id)
		}
		ids = append(ids, id)
	}
	h, _ := d.billedHome()
	read := func(id string) string { return storagetest.Read(t, h, "-srv-pond/"+id+ending) }
	require.Eventually(t, func() bool { // a state of this moment is not trusted
		for i, id := range ids {
			require.Equal(t, i%10 == 0, strings.Contains(read(id), "the lost words"), id)
		}
		l, err := h.sessions()
		require.NoError(t, err)
		return l.sessions[ids[0]].tables.removals.isKnown
	}, time.Minute, time.Millisecond)
	remove(ids[1])
	require.Contains(t, read(ids[1]), "the lost words")
}
