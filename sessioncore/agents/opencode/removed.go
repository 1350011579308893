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

// addRemoved adds the messages that the client removed, in their last states, from the log of events from a type on.
// Few sessions have any, so a query by the index of types comes first.
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
		h.apply(row.ColumnText(0), agents.ObjectIn(row.ColumnRawText(1)))
		return nil
	})
	h.placeFirst(known)
	for message, m := range h.removed {
		if len(m.info) > 0 {
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

// mayHaveRemoved reports whether messages of a session may have been removed.
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

// hasRemoved reports whether the log has a message of a session that was removed.
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

// find finds the sessions. Where it fails, each is asked for. Callers must hold r.mu.
func (r *removals) find(conn *sqlite.Conn) {
	sessions, err := findRemovals(conn)
	r.isKnown = err == nil
	r.sessions = sessions
}

// findRemovals returns the sessions of which messages were removed. It is quick where a session's events have an
// index by type.
func findRemovals(conn *sqlite.Conn) (sessions map[string]bool, err error) {
	sessions = map[string]bool{}
	const all = "SELECT id FROM session WHERE EXISTS (SELECT 1 FROM event WHERE aggregate_id = session.id AND " + ofRemovals + ")"
	err = conn.EachRow(all, nil, func(row *sqlite3.Stmt) error {
		sessions[row.ColumnText(0)] = true
		return nil
	})
	return sessions, err
}

// hasIndexOfTypes reports whether the events of a session have an index by type, unless reading failed before.
func hasIndexOfTypes(conn *sqlite.Conn, failed error) (has bool, err error) {
	if failed != nil {
		return false, failed
	}
	const index = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'event' AND sql LIKE '%aggregate_id%type%'"
	err = conn.EachRow(index, nil, func(*sqlite3.Stmt) error {
		has = true
		return nil
	})
	return has, err
}

// history follows the events of a session to learn which messages there were when a removed one came.
type history struct {
	removed map[string]*messageLine
	isSeen  map[string]bool // messages with an event
	live    []string        // messages that are there at an event, in the order in which they came
}

// apply changes the history by an event.
func (h *history) apply(kind string, data rawjson.Value) {
	message, _ := data.Member("messageID").Text()
	switch {
	case strings.HasPrefix(kind, messageUpdated):
		h.setInfo(data.Member("info"))
	case strings.HasPrefix(kind, messageRemoved):
		h.live = slices.DeleteFunc(h.live, func(id string) bool { return id == message })
	case strings.HasPrefix(kind, partUpdated):
		owner, _ := data.Member("part").Member("messageID").Text()
		h.removed[owner].setPart(data.Member("part"))
	case strings.HasPrefix(kind, partRemoved):
		removed, _ := data.Member("partID").Text()
		h.removed[message].dropPart(removed)
	}
}

// setInfo sets the state of a message, which comes behind those that are there if it is new.
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
		for _, o := range older {
			if byTime(o, m) < 0 {
				m.after = o.id
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
	at := slices.IndexFunc(m.parts, func(p messagePart) bool { return p.id == id })
	if at < 0 {
		at = len(m.parts)
		m.parts = append(m.parts, messagePart{id: id})
	}
	m.parts[at].data = bytes.Clone(state)
}

// dropPart removes a part of a removed message. The message is nil for others.
func (m *messageLine) dropPart(id string) {
	if m != nil {
		m.parts = slices.DeleteFunc(m.parts, func(p messagePart) bool { return p.id == id })
	}
}
