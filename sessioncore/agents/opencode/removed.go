package opencode

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/sqlite"
)

// The names of events, before the number of their version.
const (
	messageUpdated = "message.updated."
	messageRemoved = "message.removed."
	partUpdated    = "message.part.updated."
	partRemoved    = "message.part.removed."
)

// The first types of events that tell of removed messages, with their parts and without them.
const (
	withParts    = "message."
	withoutParts = messageRemoved
)

// addRemoved adds the messages of a session that the client removed to those that are known by their ids, in their last states,
// as the log of events tells them. firstType is withParts or withoutParts. Few sessions have any, so a query by the index of
// types comes first.
func addRemoved(conn *sqlite.Conn, id, firstType string, known map[string]*messageLine) error {
	h := history{removed: map[string]*messageLine{}, isSeen: map[string]bool{}}
	const removals = "SELECT data FROM event WHERE aggregate_id = ?1 AND " + ofRemovals
	err := conn.EachRow(removals, []string{id}, func(row *sqlite3.Stmt) error {
		message, _ := agents.ObjectIn(row.ColumnRawText(0)).Member("messageID").Text()
		if message != "" && known[message] == nil {
			h.removed[message] = &messageLine{id: message, isRemoved: true}
		}
		return nil
	})
	if err != nil || len(h.removed) == 0 {
		return err
	}
	const states = "SELECT type, data FROM event WHERE aggregate_id = ?1 AND type >= ?2 AND type < 'message/' ORDER BY seq"
	err = conn.EachRow(states, []string{id, firstType}, func(row *sqlite3.Stmt) error {
		data := agents.ObjectIn(row.ColumnRawText(1))
		h.apply(row.ColumnText(0), data)
		return nil
	})
	h.placeFirst(known)
	for message, m := range h.removed {
		if len(m.info) > 0 { // else the log has its removal alone
			known[message] = m
		}
	}
	return err
}

// removals are the sessions of which messages were removed, in the state in which the sessions were read. They
// are found at once when many sessions are read, as a query for each takes longer than its answers.
type removals struct {
	isIndexed bool // a session's events have an index by type

	mu       sync.Mutex // guards the fields below; held while they are found
	reads    int        // of sessions
	isKnown  bool
	sessions map[string]bool
}

// manyReads is the number of sessions after which all removals are found at once.
const manyReads = 1_000

// ofRemovals is the condition on events that tell of a removal.
const ofRemovals = "type >= 'message.removed.' AND type < 'message.removed/'"

// mayHaveRemoved reports whether messages of a session may have been removed. It is true where only the session's own events
// tell. It counts as a read of the session.
func (t *schema) mayHaveRemoved(conn *sqlite.Conn, id string) bool {
	r := &t.removals
	if !r.isIndexed || !conn.Reads(t.version) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if !r.isKnown && r.reads == manyReads {
		r.find(conn)
	}
	return !r.isKnown || r.sessions[id]
}

// hasRemoved reports whether the log has a removal of a message of a session.
func (t *schema) hasRemoved(conn *sqlite.Conn, id string) (has bool, err error) {
	if !t.hasEvents || !t.mayHaveRemoved(conn, id) {
		return false, nil
	}
	const firstRemoval = "SELECT 1 FROM event WHERE aggregate_id = ?1 AND " + ofRemovals + " LIMIT 1"
	err = conn.EachRow(firstRemoval, []string{id}, func(*sqlite3.Stmt) error {
		has = true
		return nil
	})
	return has, err
}

// find finds all sessions with removals. If it fails, each session is asked for, as before. Callers must hold r.mu.
func (r *removals) find(conn *sqlite.Conn) {
	sessions, err := findRemovals(conn)
	r.isKnown = err == nil
	r.sessions = sessions
}

// findRemovals returns the ids of the sessions with removed messages. It is quick where a session's events have an index by
// type.
func findRemovals(conn *sqlite.Conn) (sessions map[string]bool, err error) {
	sessions = map[string]bool{}
	const all = "SELECT id FROM session WHERE EXISTS (SELECT 1 FROM event WHERE aggregate_id = session.id AND " + ofRemovals + ")"
	err = conn.EachRow(all, nil, func(row *sqlite3.Stmt) error {
		sessions[row.ColumnText(0)] = true
		return nil
	})
	return sessions, err
}

// indexOfTypes is the query for an index of a session's events by type.
const indexOfTypes = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'event' AND sql LIKE '%aggregate_id%type%'"

// history follows the events of a session to learn which messages there were when a removed one came.
type history struct {
	removed map[string]*messageLine
	isSeen  map[string]bool // messages with an event
	live    []string        // messages that are there at an event, in the order of their coming
}

// apply changes the history by the next event of the log. Events of other types change nothing.
func (h *history) apply(eventType string, data rawjson.Value) {
	message, _ := data.Member("messageID").Text()
	switch {
	case strings.HasPrefix(eventType, messageUpdated):
		h.setInfo(data.Member("info"))
	case strings.HasPrefix(eventType, messageRemoved):
		h.live = slices.DeleteFunc(h.live, func(id string) bool { return id == message })
	case strings.HasPrefix(eventType, partUpdated):
		part := data.Member("part")
		owner, _ := part.Member("messageID").Text()
		h.removed[owner].setPart(part)
	case strings.HasPrefix(eventType, partRemoved):
		removed, _ := data.Member("partID").Text()
		h.removed[message].dropPart(removed)
	}
}

// setInfo sets the state of a message. A new one comes behind those that are there.
func (h *history) setInfo(info rawjson.Value) {
	id, _ := info.Member("id").Text()
	m := h.removed[id]
	if !h.isSeen[id] {
		h.isSeen[id] = true
		if m != nil && len(h.live) > 0 {
			m.after = h.live[len(h.live)-1]
		}
		h.live = append(h.live, id)
	}
	if m != nil {
		m.info = bytes.Clone(info)
		m.created = agents.Count(info.Member("time").Member("created"))
	}
}

// placeFirst places removed messages without one before them behind the last of those that are older
// than the log.
func (h *history) placeFirst(known map[string]*messageLine) {
	var older []*messageLine
	for id, m := range known {
		if !h.isSeen[id] {
			older = append(older, m)
		}
	}
	slices.SortFunc(older, byTime)
	for _, m := range h.removed {
		if m.after != "" {
			continue
		}
		for _, before := range older {
			if byTime(before, m) < 0 {
				m.after = before.id // the last one stays
			}
		}
	}
}

// setPart sets the state of a part of a removed message. The message is nil for others.
func (m *messageLine) setPart(state rawjson.Value) {
	if m == nil {
		return
	}
	id, _ := state.Member("id").Text()
	n := slices.IndexFunc(m.parts, func(p messagePart) bool { return p.id == id })
	if n < 0 {
		n = len(m.parts)
		m.parts = append(m.parts, messagePart{id: id})
	}
	m.parts[n].data = bytes.Clone(state)
}

// dropPart removes a part of a removed message. The message is nil for others.
func (m *messageLine) dropPart(id string) {
	if m != nil {
		m.parts = slices.DeleteFunc(m.parts, func(p messagePart) bool { return p.id == id })
	}
}
