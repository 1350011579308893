package opencode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/sqlite"
)

// messageLine is a message with its parts, as they become a line of a session's text.
type messageLine struct {
	id        string
	created   int64 // ms
	info      []byte
	parts     []messagePart
	isRemoved bool   // the client removed it: it is on a branch that was left
	after     string // the message before a removed one, "" for none
}

// messagePart is a part of a message.
type messagePart struct {
	id   string
	data []byte
}

// schema tells which tables of the client a database has, as the client makes them.
type schema struct {
	hasMessages bool // and parts
	hasEvents   bool
	hasCounts   bool           // the last number of each session's events
	sessions    string         // the query for all sessions, "" if the client has not made the table yet
	hasLater    bool           // messages of the coming second version of the client, which are not read
	version     sqlite.Version // in which the sessions were read
	removals    removals
}

// readSessions adds the sessions in a database to a list.
func readSessions(d *sqlite.Database, l *list) error {
	token, err := d.State()
	if err != nil {
		return err
	}
	unnumbered := int64(hashOf(fmt.Sprint(token)) % nanoseconds) // a session may change with anything
	var found []*session
	tables := &schema{}
	err = d.Read(context.Background(), func(conn *sqlite.Conn) error {
		found = nil
		tables, err = readSchema(conn)
		if err != nil || tables.sessions == "" {
			return err
		}
		isDamaged := false
		found, isDamaged, err = readRows(conn, d, tables)
		if isDamaged && tables.hasMessages {
			var lost []*session
			lost, err = readLost(conn, d, tables)
			found = append(found, lost...)
		}
		return err
	})
	for _, s := range found {
		if !tables.hasCounts {
			s.count = unnumbered
		}
		l.add(s)
	}
	return err
}

// readRows returns the sessions in a database. Their counts are read in one pass, which takes less time than a query
// for each.
func readRows(conn *sqlite.Conn, d *sqlite.Database, tables *schema) (sessions []*session, isDamaged bool, err error) {
	isDamaged, err = eachIntact(conn, tables.sessions, nil, func(row *sqlite3.Stmt) {
		sessions = append(sessions, sessionOf(row, d, tables))
	})
	if err != nil || !tables.hasCounts {
		return sessions, isDamaged, err
	}
	counts := make(map[string]int64, len(sessions))
	_, err = eachIntact(conn, allCounts, nil, func(row *sqlite3.Stmt) {
		counts[row.ColumnText(0)] = row.ColumnInt64(1)
	})
	for _, s := range sessions {
		s.count = counts[s.id]
	}
	return sessions, isDamaged, err
}

// allCounts is the query for the last numbers of the events of all sessions.
const allCounts = "SELECT aggregate_id, seq FROM event_sequence"

// eachIntact calls f for each row of a query of one table; where pages of that are damaged, for those before
// the first and behind the last one. f may see a row twice.
func eachIntact(conn *sqlite.Conn, query string, arguments []string, f func(row *sqlite3.Stmt)) (isDamaged bool, err error) {
	use := func(row *sqlite3.Stmt) error {
		f(row)
		return nil
	}
	err = conn.EachRow(query, arguments, use)
	if !sqlite.IsDamage(err) {
		return false, err
	}
	err = conn.EachRow(query+" ORDER BY rowid DESC", arguments, use)
	if sqlite.IsDamage(err) {
		err = nil
	}
	return true, err
}

// readLost returns the sessions of all messages, as those of which the row is damaged are known by them alone.
// Of their facts the times are known.
func readLost(conn *sqlite.Conn, d *sqlite.Database, tables *schema) ([]*session, error) {
	byID := map[string]*session{}
	const messages = "SELECT session_id, time_created FROM message"
	_, err := eachIntact(conn, messages, nil, func(row *sqlite3.Stmt) {
		id := row.ColumnText(0)
		at := row.ColumnInt64(1)
		s := byID[id]
		if s == nil {
			s = &session{id: id, created: at, updated: at, isDamaged: true, database: d, tables: tables}
			byID[id] = s
		}
		s.created = min(s.created, at)
		s.updated = max(s.updated, at)
	})
	return slices.Collect(maps.Values(byID)), err
}

const (
	// laterSessions and laterMessages are tables of the coming second version of the client.
	laterSessions = "session_v2"
	laterMessages = "session_message"
)

// errLater means that a newer client keeps its sessions in another table.
var errLater = errors.New("the sessions are in the table " + laterSessions + " of a newer client, which is not read")

// sessionOf returns the session of a row of sessionQuery, without its count.
func sessionOf(row *sqlite3.Stmt, d *sqlite.Database, tables *schema) *session {
	return &session{
		id:        row.ColumnText(0),
		directory: row.ColumnText(1),
		title:     row.ColumnText(2),
		created:   row.ColumnInt64(3),
		updated:   row.ColumnInt64(4),
		version:   row.ColumnText(5),
		parent:    row.ColumnText(6),
		revert:    row.ColumnText(7),
		unread:    row.ColumnInt64(8),
		metadata:  row.ColumnText(9),
		database:  d,
		tables:    tables,
	}
}

// readSchema reads which tables a database has.
func readSchema(conn *sqlite.Conn) (tables *schema, err error) {
	tables = &schema{version: conn.Version()}
	has := func(table string, columns ...string) bool {
		if err != nil {
			return false
		}
		var found map[string]bool
		found, err = columnsOf(conn, table)
		return !slices.ContainsFunc(columns, func(column string) bool { return !found[column] })
	}
	hasMessages := has("message", "id", "session_id", "time_created", "data")
	hasParts := has("part", "id", "message_id", "session_id", "data")
	tables.hasMessages = hasMessages && hasParts
	tables.hasEvents = has("event", "aggregate_id", "seq", "type", "data")
	tables.removals.isIndexed, err = hasIndexOfTypes(conn, err)
	tables.hasCounts = has("event_sequence", "aggregate_id", "seq")
	if has(laterMessages, "session_id") {
		err = conn.EachRow("SELECT 1 FROM "+laterMessages+" LIMIT 1", nil, func(*sqlite3.Stmt) error {
			tables.hasLater = true
			return nil
		})
	}
	if err != nil {
		return tables, err
	}
	tables.sessions, err = sessionQuery(conn, tables)
	return tables, err
}

// sessionQuery returns a query for the columns of all sessions, "" if the client has not made the table
// yet. Old databases lack some columns.
func sessionQuery(conn *sqlite.Conn, tables *schema) (string, error) {
	columns, err := columnsOf(conn, "session")
	if err != nil {
		return "", err
	}
	if !columns["id"] {
		later, err := columnsOf(conn, laterSessions)
		if later["id"] {
			err = errLater
		}
		return "", err
	}
	var wanted []string
	for _, name := range []string{"id", "directory", "title", "time_created", "time_updated", "version", "parent_id", "revert"} {
		wanted = append(wanted, columnOr(columns, name))
	}
	unread := "0"
	if tables.hasLater {
		unread = "(SELECT count(*) FROM " + laterMessages + " WHERE session_id = session.id)"
	}
	return "SELECT " + strings.Join(append(wanted, unread, columnOr(columns, "metadata")), ", ") + " FROM session", nil
}

// columnOr returns the name of a column that a table has, or NULL.
func columnOr(columns map[string]bool, name string) string {
	if columns[name] {
		return name
	}
	return "NULL"
}

// columnsOf returns the names of a table's columns, none for a view, a table with computed columns, or
// no table.
func columnsOf(conn *sqlite.Conn, table string) (map[string]bool, error) {
	columns := map[string]bool{}
	isTable := false
	const schema = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql LIKE 'create table%'"
	err := conn.EachRow(schema, []string{table}, func(*sqlite3.Stmt) error {
		isTable = true
		return nil
	})
	if err != nil || !isTable {
		return nil, err
	}
	isPlain := true
	const names = "SELECT name, hidden FROM pragma_table_xinfo(?1)"
	err = conn.EachRow(names, []string{table}, func(row *sqlite3.Stmt) error {
		columns[row.ColumnText(0)] = true
		isPlain = isPlain && row.ColumnInt(1) == 0
		return nil
	})
	if !isPlain {
		return nil, err
	}
	return columns, err
}

// writeRows writes the text of a session in a database, in one transaction, and returns the session as it
// was in that, nil if it was removed. Where events are not counted, its row does not tell that it changed.
func writeRows(ctx context.Context, s *session, out io.Writer) (now *session, err error) {
	var lines []*messageLine
	memory := memories.Get().(*rowMemory)
	defer memory.release()
	err = s.database.Read(ctx, func(conn *sqlite.Conn) error {
		var failed error // of this transaction, not of one before
		lines = nil
		memory.data = memory.data[:0]
		now, failed = s.in(conn)
		if failed != nil || now == nil {
			return failed
		}
		isDamaged := false
		lines, isDamaged, failed = readMessages(conn, now, memory)
		if isDamaged {
			damaged := *now // another reader may have s
			damaged.isDamaged = true
			now = &damaged
		}
		return failed
	})
	if err != nil || now == nil {
		return nil, err
	}
	memory.text, err = now.write(lines, memory.text[:0], out)
	return now, err
}

// in returns a session as a transaction reads it, or nil. Its row is read if that may have changed.
func (s *session) in(conn *sqlite.Conn) (now *session, err error) {
	if !s.tables.hasCounts || s.isDamaged || conn.Reads(s.tables.version) {
		return s, nil
	}
	return readSession(conn, s)
}

// readSession returns a session as it is now, or nil.
func readSession(conn *sqlite.Conn, s *session) (now *session, err error) {
	err = conn.EachRow(s.tables.sessions+" WHERE id = ?1", []string{s.id}, func(row *sqlite3.Stmt) error {
		now = sessionOf(row, s.database, s.tables)
		return nil
	})
	if err != nil || now == nil || !s.tables.hasCounts {
		return now, err
	}
	err = conn.EachRow(allCounts+" WHERE aggregate_id = ?1", []string{s.id}, func(row *sqlite3.Stmt) error {
		now.count = row.ColumnInt64(1)
		return nil
	})
	return now, err
}

// readMessages returns the messages of a session, in no order, with those that were removed, and whether some cannot
// be read. They are in the memory.
func readMessages(conn *sqlite.Conn, s *session, memory *rowMemory) (lines []*messageLine, isDamaged bool, err error) {
	if !s.tables.hasMessages {
		return nil, false, nil
	}
	known := map[string]*messageLine{}
	isDamaged, err = eachMessage(conn, s.id, func(id string, created int64, data []byte) {
		known[id] = &messageLine{id: id, created: created, info: memory.clone(data)}
	})
	if err != nil {
		return nil, false, err
	}
	lacksParts, err := addParts(conn, s.id, known, memory)
	lacksRemoved := false
	if err == nil {
		lacksRemoved, err = addRemovedOf(conn, s, known)
	}
	for _, m := range known {
		lines = append(lines, m)
	}
	return lines, isDamaged || lacksParts || lacksRemoved, err
}

// eachMessage calls f for each message of a session. data is valid until f returns.
func eachMessage(conn *sqlite.Conn, session string, f func(id string, created int64, data []byte)) (isDamaged bool, err error) {
	const messages = "SELECT id, time_created, data FROM message WHERE session_id = ?1"
	return eachIntact(conn, messages, []string{session}, func(row *sqlite3.Stmt) {
		f(row.ColumnText(0), row.ColumnInt64(1), row.ColumnRawText(2))
	})
}

// addParts adds the parts of a session to its messages.
func addParts(conn *sqlite.Conn, id string, known map[string]*messageLine, memory *rowMemory) (isDamaged bool, err error) {
	const parts = "SELECT message_id, id, data FROM part WHERE session_id = ?1"
	isDamaged, err = eachIntact(conn, parts, []string{id}, func(row *sqlite3.Stmt) {
		m := known[string(row.ColumnRawText(0))]
		if m != nil {
			m.parts = append(m.parts, messagePart{id: row.ColumnText(1), data: memory.clone(row.ColumnRawText(2))})
		}
	})
	if isDamaged {
		for _, m := range known {
			m.dropCopies()
		}
	}
	return isDamaged, err
}

// addRemovedOf is addRemoved for a session of any database. Where events are damaged, it may add none.
func addRemovedOf(conn *sqlite.Conn, s *session, known map[string]*messageLine) (isDamaged bool, err error) {
	if !s.tables.hasEvents || !s.tables.mayHaveRemoved(conn, s.id) {
		return false, nil
	}
	err = addRemoved(conn, s.id, withParts, known)
	if sqlite.IsDamage(err) {
		return true, nil
	}
	return false, err
}

// dropCopies leaves one of each part.
func (m *messageLine) dropCopies() {
	isSeen := map[string]bool{}
	m.parts = slices.DeleteFunc(m.parts, func(p messagePart) bool {
		before := isSeen[p.id]
		isSeen[p.id] = true
		return before
	})
}

// rowMemory has memory for the text of a session, and for the rows of which it is made.
type rowMemory struct{ data, text []byte }

var memories = sync.Pool{New: func() any { return new(rowMemory) }}

// clone returns a copy of a text.
func (m *rowMemory) clone(text []byte) []byte {
	if len(text) > cap(m.data)-len(m.data) {
		m.data = make([]byte, 0, max(2*cap(m.data), len(text), leastRows)) // the texts before remain where they are
	}
	from := len(m.data)
	m.data = append(m.data, text...)
	return m.data[from:len(m.data):len(m.data)]
}

// leastRows is the size of the memory for the rows of a short session, in bytes.
const leastRows = 64 << 10

// release gives the memory to the next session, unless it is large.
func (m *rowMemory) release() {
	if cap(m.data)+cap(m.text) <= 4*inMemory {
		memories.Put(m)
	}
}

// write writes the text of a session, in the memory of text or more, which it returns: a line of its facts, one of
// each message, and one of its last state.
func (s *session) write(lines []*messageLine, text []byte, out io.Writer) ([]byte, error) {
	slices.SortFunc(lines, byTime)
	text = s.appendFacts(text)
	for _, m := range lines {
		text = m.appendTo(text)
		if len(text) < inMemory {
			continue
		}
		_, err := out.Write(text)
		if err != nil {
			return text, err
		}
		text = text[:0]
	}
	reverted := agents.ObjectIn([]byte(s.revert)).Member("messageID")
	if reverted.IsString() {
		text = append(text, `{"revert":`...)
		text = append(text, reverted...)
		text = append(text, "}\n"...)
	}
	_, err := out.Write(text)
	return text, err
}

// appendFacts appends the line of a session's facts.
func (s *session) appendFacts(dst []byte) []byte {
	dst = append(dst, `{"session":{"id":`...)
	dst = rawjson.AppendQuoted(dst, s.id)
	dst = rawjson.AppendQuoted(append(dst, `,"directory":`...), s.directory)
	dst = rawjson.AppendQuoted(append(dst, `,"version":`...), s.version)
	dst = rawjson.AppendQuoted(append(dst, `,"title":`...), s.title)
	if s.parent != "" {
		dst = rawjson.AppendQuoted(append(dst, `,"parent":`...), s.parent)
	}
	dst = strconv.AppendInt(append(dst, `,"created":`...), s.created, 10)
	if s.unread > 0 {
		dst = strconv.AppendInt(append(dst, `,"unread":`...), s.unread, 10)
	}
	if s.isDamaged {
		dst = append(dst, `,"damaged":true`...)
	}
	origin := agents.ObjectIn([]byte(s.metadata)).Member(agents.OriginKey)
	if origin.IsObject() { // all else in it is of others
		dst = append(dst, `,"metadata":{"`+agents.OriginKey+`":`...)
		dst = appendOneLine(dst, origin)
		dst = append(dst, '}')
	}
	return append(dst, "}}\n"...)
}

// appendTo appends the line of a message, nothing for one that is damaged.
func (m *messageLine) appendTo(dst []byte) []byte {
	info := agents.ObjectIn(m.info)
	if info == nil {
		return dst
	}
	slices.SortFunc(m.parts, func(a, b messagePart) int { return strings.Compare(a.id, b.id) })
	dst = rawjson.AppendQuoted(append(dst, `{"id":`...), m.id)
	dst = strconv.AppendBool(append(dst, `,"removed":`...), m.isRemoved)
	if m.isRemoved {
		dst = rawjson.AppendQuoted(append(dst, `,"after":`...), m.after)
	}
	dst = append(appendOneLine(append(dst, `,"info":`...), info), `,"parts":[`...)
	isFirst := true
	for _, p := range m.parts {
		data := agents.ObjectIn(p.data)
		if data == nil {
			continue
		}
		if !isFirst {
			dst = append(dst, ',')
		}
		isFirst = false
		dst = append(rawjson.AppendQuoted(append(dst, `{"id":`...), p.id), `,"data":`...)
		dst = append(appendOneLine(dst, data), '}')
	}
	return append(dst, "]}\n"...)
}

// appendOneLine appends a JSON object, in which line feeds stand between values alone.
func appendOneLine(dst []byte, v rawjson.Value) []byte {
	rest := len(dst)
	dst = append(dst, v...)
	for {
		at := bytes.IndexByte(dst[rest:], '\n')
		if at < 0 {
			return dst
		}
		dst[rest+at] = ' '
		rest += at + 1
	}
}

// findOrigin returns the session of which another one is a fork: the one begun last before it, in its
// directory and database, that has a message of the time of its first one, which is a copy.
func findOrigin(ctx context.Context, l *list, s *session) (origin string, err error) {
	var candidates []*session
	for _, c := range l.byDirectory()[s.directory] {
		if c.id != s.id && c.database == s.database && c.created <= s.created {
			candidates = append(candidates, c)
		}
	}
	slices.SortFunc(candidates, func(a, b *session) int { return cmp.Or(cmp.Compare(b.created, a.created), cmp.Compare(b.id, a.id)) })
	const first = "SELECT min(time_created) FROM message WHERE session_id = ?1"
	const same = "SELECT 1 FROM message WHERE session_id = ?1 AND time_created = CAST(?2 AS INTEGER) LIMIT 1"
	err = s.database.Read(ctx, func(conn *sqlite.Conn) error {
		origin = ""
		begun := ""
		err := conn.EachRow(first, []string{s.id}, func(row *sqlite3.Stmt) error {
			if copied := row.ColumnInt64(0); copied > 0 && copied < s.created {
				begun = row.ColumnText(0)
			}
			return nil
		})
		for _, c := range candidates {
			if err != nil || begun == "" || origin != "" {
				break
			}
			err = conn.EachRow(same, []string{c.id, begun}, func(*sqlite3.Stmt) error {
				origin = c.id
				return nil
			})
		}
		return err
	})
	return origin, err
}
