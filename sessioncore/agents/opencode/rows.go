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
	version     sqlite.Version // that the sessions were read in
	removals    removals
}

// readSessions adds the sessions in a database to a list.
func readSessions(d *sqlite.Database, l *list) error {
	token, err := d.State()
	if err != nil {
		return err
	}
	var found []*session
	tables := &schema{}
	err = d.Read(context.Background(), func(conn *sqlite.Conn) (err error) {
		found, tables, err = readAll(conn, d)
		return err
	})
	stateHash := hashOf(fmt.Sprint(token))
	for _, s := range found {
		if !tables.hasCounts {
			s.count = int64(stateHash % nanoseconds) // it may change with anything in the database
		}
		l.add(s)
	}
	return err
}

// readAll returns the sessions that a transaction reads, and the tables. It adds lost ones behind the others, as a list keeps
// the first session of an id.
func readAll(conn *sqlite.Conn, d *sqlite.Database) (found []*session, tables *schema, err error) {
	tables, err = readSchema(conn)
	if err != nil || tables.sessions == "" {
		return nil, tables, err
	}
	found, isDamaged, err := readRows(conn, d, tables)
	if isDamaged && tables.hasMessages {
		lost, failed := readLost(conn, d, tables)
		return append(found, lost...), tables, failed
	}
	return found, tables, err
}

// readRows returns the sessions in a database, and whether some of their rows cannot be read. Their counts are read in one
// pass, which takes less time than a query for each.
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

// eachIntact calls f for each row of a query of one table; where pages of the table are damaged, for the rows before the first
// damaged page and behind the last one. Then f may see a row twice, and there is no error for the damage.
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

// readLost returns the sessions of all messages: a session with a damaged row is known by its messages alone. The times of
// these are all its facts.
func readLost(conn *sqlite.Conn, d *sqlite.Database, tables *schema) ([]*session, error) {
	byID := map[string]*session{}
	const messages = "SELECT session_id, time_created FROM message"
	_, err := eachIntact(conn, messages, nil, func(row *sqlite3.Stmt) {
		id := row.ColumnText(0)
		created := row.ColumnInt64(1)
		s := byID[id]
		if s == nil {
			s = &session{id: id, created: created, updated: created, isDamaged: true, database: d, tables: tables}
			byID[id] = s
		}
		s.created = min(s.created, created)
		s.updated = max(s.updated, created)
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

// schemaReader asks a database for its tables. After an error it asks no more, and finds nothing.
type schemaReader struct {
	conn *sqlite.Conn
	err  error // the first one
}

// has reports whether a database has a table with all of some columns.
func (r *schemaReader) has(table string, columns ...string) bool {
	if r.err != nil {
		return false
	}
	found, err := columnsOf(r.conn, table)
	r.err = err
	isMissing := func(column string) bool { return !found[column] }
	return !slices.ContainsFunc(columns, isMissing)
}

// hasRow reports whether a query has a row.
func (r *schemaReader) hasRow(query string) (has bool) {
	if r.err != nil {
		return false
	}
	r.err = r.conn.EachRow(query, nil, func(*sqlite3.Stmt) error {
		has = true
		return nil
	})
	return has
}

// readSchema reads which tables a database has. With an error of errLater the sessions are in none of them.
func readSchema(conn *sqlite.Conn) (*schema, error) {
	tables := &schema{version: conn.Version()}
	reader := &schemaReader{conn: conn}
	hasMessages := reader.has("message", "id", "session_id", "time_created", "data")
	hasParts := reader.has("part", "id", "message_id", "session_id", "data")
	tables.hasMessages = hasMessages && hasParts
	tables.hasEvents = reader.has("event", "aggregate_id", "seq", "type", "data")
	tables.removals.isIndexed = reader.hasRow(indexOfTypes)
	tables.hasCounts = reader.has("event_sequence", "aggregate_id", "seq")
	if reader.has(laterMessages, "session_id") {
		tables.hasLater = reader.hasRow("SELECT 1 FROM " + laterMessages + " LIMIT 1")
	}
	if reader.err != nil {
		return tables, reader.err
	}
	query, err := sessionQuery(conn, tables)
	tables.sessions = query
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
	var selected []string // in the order that sessionOf reads them in
	for _, name := range factColumns {
		selected = append(selected, columnOrNull(columns, name))
	}
	unread := "0"
	if tables.hasLater {
		unread = "(SELECT count(*) FROM " + laterMessages + " WHERE session_id = session.id)"
	}
	selected = append(selected, unread, columnOrNull(columns, "metadata"))
	return "SELECT " + strings.Join(selected, ", ") + " FROM session", nil
}

// factColumns are the columns of a session before the number of its unread messages.
var factColumns = []string{"id", "directory", "title", "time_created", "time_updated", "version", "parent_id", "revert"}

// columnOrNull returns the name of a column that a table has, or NULL.
func columnOrNull(columns map[string]bool, name string) string {
	if columns[name] {
		return name
	}
	return "NULL"
}

// columnsOf returns the names of a table's columns; none for a view or a table with computed columns, as to read these may
// run expressions that the file's maker chose, and none for no table.
func columnsOf(conn *sqlite.Conn, table string) (map[string]bool, error) {
	isTable := false
	const schema = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql LIKE 'create table%'"
	err := conn.EachRow(schema, []string{table}, func(*sqlite3.Stmt) error {
		isTable = true
		return nil
	})
	if err != nil || !isTable {
		return nil, err
	}
	columns := map[string]bool{}
	isPlain := true // no column is hidden, as computed ones are
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

// writeRows writes the text of a session in a database to out, as one transaction reads it, and returns the session in its
// state then, nil if it was removed. Where events are not counted, its row does not tell that it changed.
func writeRows(ctx context.Context, s *session, out io.Writer) (now *session, err error) {
	var lines []*messageLine
	memory := memories.Get().(*rowMemory)
	defer memory.release()
	err = s.database.Read(ctx, func(conn *sqlite.Conn) (err error) {
		memory.data = memory.data[:0] // the rows of a transaction before are dropped
		now, lines, err = s.readIn(conn, memory)
		return err
	})
	if err != nil || now == nil {
		return nil, err
	}
	memory.text, err = now.write(lines, memory.text[:0], out)
	return now, err
}

// readIn returns a session as a transaction reads it, nil if it was removed, and its messages in no order. These are in the
// memory.
func (s *session) readIn(conn *sqlite.Conn, memory *rowMemory) (now *session, lines []*messageLine, err error) {
	now, err = s.in(conn)
	if err != nil || now == nil {
		return nil, nil, err
	}
	lines, isDamaged, err := readMessages(conn, now, memory)
	if isDamaged {
		damaged := *now // another reader may have s
		damaged.isDamaged = true
		now = &damaged
	}
	return now, lines, err
}

// in returns a session as a transaction reads it, nil if it was removed. Its row is read only if that may have changed: else it
// is s itself.
func (s *session) in(conn *sqlite.Conn) (now *session, err error) {
	if !s.tables.hasCounts || s.isDamaged || conn.Reads(s.tables.version) {
		return s, nil
	}
	return readSession(conn, s)
}

// readSession returns a session as its row is now, nil if that is gone.
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
	if err != nil {
		return nil, false, err
	}
	lacksRemoved, err := addRemovedOf(conn, s, known)
	for _, m := range known {
		lines = append(lines, m)
	}
	return lines, isDamaged || lacksParts || lacksRemoved, err
}

// eachMessage calls f for each message of a session, in no order. data is valid until f returns. isDamaged says that some
// cannot be read; then f may see one twice.
func eachMessage(conn *sqlite.Conn, session string, f func(id string, created int64, data []byte)) (isDamaged bool, err error) {
	const messages = "SELECT id, time_created, data FROM message WHERE session_id = ?1"
	return eachIntact(conn, messages, []string{session}, func(row *sqlite3.Stmt) {
		f(row.ColumnText(0), row.ColumnInt64(1), row.ColumnRawText(2))
	})
}

// addParts adds the parts of a session to its messages, known by their ids. isDamaged says that some cannot be read.
func addParts(conn *sqlite.Conn, id string, known map[string]*messageLine, memory *rowMemory) (isDamaged bool, err error) {
	const parts = "SELECT message_id, id, data FROM part WHERE session_id = ?1"
	isDamaged, err = eachIntact(conn, parts, []string{id}, func(row *sqlite3.Stmt) {
		m := known[string(row.ColumnRawText(0))]
		if m == nil {
			return // its message cannot be read
		}
		part := messagePart{id: row.ColumnText(1), data: memory.clone(row.ColumnRawText(2))}
		m.parts = append(m.parts, part)
	})
	if isDamaged {
		for _, m := range known {
			m.dropCopies()
		}
	}
	return isDamaged, err
}

// addRemovedOf is addRemoved for a session of any database. Where events are damaged, it may add none, and isDamaged is true.
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

// dropCopies leaves the first one of each part: eachIntact may give one twice.
func (m *messageLine) dropCopies() {
	isKept := map[string]bool{}
	m.parts = slices.DeleteFunc(m.parts, func(p messagePart) bool {
		isCopy := isKept[p.id]
		isKept[p.id] = true
		return isCopy
	})
}

// rowMemory has memory for the text of a session, and for its rows.
type rowMemory struct{ data, text []byte }

var memories = sync.Pool{New: func() any { return new(rowMemory) }}

// clone returns a copy of a text in the memory, valid until that is used for another session.
func (m *rowMemory) clone(text []byte) []byte {
	room := cap(m.data) - len(m.data)
	if len(text) > room {
		m.data = make([]byte, 0, max(2*cap(m.data), len(text), leastRows)) // the texts before remain where they are
	}
	start := len(m.data)
	m.data = append(m.data, text...)
	end := len(m.data)
	return m.data[start:end:end] // an append to the copy does not write over the next one
}

// leastRows is the size of the memory for the rows of a short session, in bytes.
const leastRows = 64 << 10

// release gives the memory to the next session, unless it is large.
func (m *rowMemory) release() {
	if cap(m.data)+cap(m.text) <= 4*inMemory {
		memories.Put(m)
	}
}

// write writes the text of a session to out: a line of its facts, one of each message, and one of its last state. It sorts
// the lines. text is memory for it, without content; the result is that memory or more, for the next text.
func (s *session) write(lines []*messageLine, text []byte, out io.Writer) ([]byte, error) {
	slices.SortFunc(lines, byTime)
	text = s.appendFacts(text)
	for _, m := range lines {
		text = m.appendTo(text)
		if len(text) < inMemory {
			continue // it is written with the next one
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
	if origin.IsObject() { // all else in the metadata is of others
		dst = append(dst, `,"metadata":{"`+agents.OriginKey+`":`...)
		dst = appendOneLine(dst, origin)
		dst = append(dst, '}')
	}
	return append(dst, "}}\n"...)
}

// appendTo appends the line of a message, nothing for one whose JSON is damaged, without such parts. It sorts the parts.
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
	dst = append(dst, `,"info":`...)
	dst = appendOneLine(dst, info)
	dst = append(dst, `,"parts":[`...)
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
		dst = rawjson.AppendQuoted(append(dst, `{"id":`...), p.id)
		dst = append(dst, `,"data":`...)
		dst = appendOneLine(dst, data)
		dst = append(dst, '}')
	}
	return append(dst, "]}\n"...)
}

// appendOneLine appends a JSON object with a blank in the place of each line feed. These stand between values alone, as a
// text has them escaped.
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

// findOrigin returns the id of a fork's origin: the session begun last before it, in its directory and
// database, that has a message of the time of the fork's first one, which is a copy. It is "" if there is none.
func findOrigin(ctx context.Context, l *list, fork *session) (origin string, err error) {
	candidates := candidatesFor(l, fork)
	err = fork.database.Read(ctx, func(conn *sqlite.Conn) error {
		origin = ""
		copied, err := firstCopy(conn, fork)
		if err != nil || copied == "" {
			return err
		}
		for _, c := range candidates {
			hasOriginal, err := hasMessageAt(conn, c.id, copied)
			if err != nil {
				return err
			}
			if hasOriginal {
				origin = c.id
				return nil
			}
		}
		return nil
	})
	return origin, err
}

// candidatesFor returns the sessions that may be a fork's origin, the one begun last first.
func candidatesFor(l *list, fork *session) (candidates []*session) {
	for _, c := range l.byDirectory()[fork.directory] {
		isBefore := c.created <= fork.created
		if c.id != fork.id && c.database == fork.database && isBefore {
			candidates = append(candidates, c)
		}
	}
	slices.SortFunc(candidates, func(x, y *session) int {
		order := cmp.Compare(y.created, x.created)
		if order == 0 {
			order = strings.Compare(y.id, x.id)
		}
		return order
	})
	return candidates
}

// firstCopy returns the time in ms of a session's first message, "" unless it is older than the session and so a copy.
func firstCopy(conn *sqlite.Conn, s *session) (ms string, err error) {
	const first = "SELECT min(time_created) FROM message WHERE session_id = ?1"
	err = conn.EachRow(first, []string{s.id}, func(row *sqlite3.Stmt) error {
		created := row.ColumnInt64(0)
		if created > 0 && created < s.created {
			ms = row.ColumnText(0)
		}
		return nil
	})
	return ms, err
}

// hasMessageAt reports whether a session has a message of a time in ms.
func hasMessageAt(conn *sqlite.Conn, session, ms string) (has bool, err error) {
	const same = "SELECT 1 FROM message WHERE session_id = ?1 AND time_created = CAST(?2 AS INTEGER) LIMIT 1"
	err = conn.EachRow(same, []string{session, ms}, func(*sqlite3.Stmt) error {
		has = true
		return nil
	})
	return has, err
}
