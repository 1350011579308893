package opencode

import (
	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/sqlite"
)

// Bill implements agents.Billed.
func (h *home) Bill() storage.Files { return bill{h} }

// bill shows the sessions to a reader that needs their answers with times, models and usages, and no size
// before it reads. The text of a session in a database has those alone: it costs a read of its messages,
// and parts, which are nearly all of a database, are left.
type bill struct{ *home }

// Stat implements storage.Files. It makes no text.
func (b bill) Stat(name string) (storage.Stat, error) {
	l, err := b.sessions()
	if err != nil {
		return storage.Stat{}, err
	}
	return b.stat(l, name)
}

// Open implements storage.Files. It looks at no file for a session whose row its text is made with, as a bill
// opens all of them.
func (b bill) Open(name string) (storage.Object, error) {
	b.mu.Lock()
	l := b.list
	b.mu.Unlock()
	if l != nil {
		s := l.find(name)
		if s != nil && s.tells() {
			return &object{home: b.home, name: name, session: s, kind: billedText}, nil
		}
	}
	return b.open(name, billedText)
}

// readBilled is textKind.read for a bill: the messages have the members that a bill needs.
func readBilled(conn *sqlite.Conn, s *session, memory *rowMemory) (lines []*messageLine, isDamaged bool, err error) {
	known := map[string]*messageLine{}
	needsParts := false
	isDamaged, err = eachMessage(conn, s.id, func(m *messageLine, row *sqlite3.Stmt) {
		isWhole := m.reduce(row.ColumnRawText(2))
		needsParts = needsParts || !isWhole
		known[m.id] = m
	})
	if err != nil {
		return nil, false, err
	}
	before := len(known)
	lacksParts := false
	if needsParts {
		lacksParts, err = addParts(conn, s.id, known, memory)
	}
	lacksRemoved := false
	if err == nil {
		lacksRemoved, err = addRemovedOf(conn, s, known)
	}
	isDamaged = isDamaged || lacksParts || lacksRemoved
	hasOthers := needsParts || len(known) > before
	for _, m := range known {
		if m.isBilled || hasOthers {
			lines = append(lines, m)
		}
	}
	return lines, isDamaged, err
}

// The members of a message that a bill needs.
const (
	billedRole = iota
	billedTokens
	billedTime
	billedModel
	billedCost
	billedSummary
	billedMembers // is their number
)

// billedKeys are their keys.
var billedKeys = [billedMembers]string{
	billedRole:    "role",
	billedTokens:  "tokens",
	billedTime:    "time",
	billedModel:   "modelID",
	billedCost:    "cost",
	billedSummary: "summary",
}

// membersIn returns the members of a message's JSON that a bill needs.
func membersIn(text []byte) (values [billedMembers]rawjson.Value) {
	for member := range agents.ObjectIn(text).EachMember {
		for i, key := range billedKeys {
			if member.KeyIs(key) {
				values[i] = member.Value
			}
		}
	}
	return values
}

// reduce sets the members of a message's JSON that a bill needs, and reports whether it needs no parts: those of
// an answer without tokens tell whether a person ran a command, or the answer came from another session.
func (m *messageLine) reduce(text []byte) (isWhole bool) {
	values := membersIn(text)
	role := values[billedRole]
	switch {
	case !role.IsString():
		return true
	case role.Is("user"):
		m.info = []byte(`{"role":"user"}`)
		return true
	}
	m.isBilled = true
	m.info = make([]byte, 0, maxReduced)
	for i, value := range values {
		if len(value) > 0 {
			m.info = append(m.info, ',', '"')
			m.info = append(m.info, billedKeys[i]...)
			m.info = append(m.info, '"', ':')
			m.info = append(m.info, value...)
		}
	}
	m.info[0] = '{'
	m.info = append(m.info, '}')
	return usageOf(values[billedTokens]) != agents.Usage{}
}

// maxReduced is the size of most answers for a bill, in bytes.
const maxReduced = 320
