package opencode

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/sqlite"
)

// This file makes the charges of a session straight from the rows of its messages. They are those that the
// converter makes of its text.

// billedMessage is a message as a bill needs it.
type billedMessage struct {
	kind     billedKind
	created  int64 // of the row, in ms
	hasUsage bool
	charge   agents.Charge // of an answer; of others the id, and of a summary the tokens too
}

// billedKind is the kind of a message for a bill.
type billedKind uint8

const (
	billedPrompt billedKind = iota
	billedAnswer
	billedSummary
)

// rowBill makes the charges of a session, known in an earlier state.
type rowBill struct {
	session  *session
	provider string
	created  int64 // of the session, in ms: an older message is a copy
	memory   *rowMemory
	messages []billedMessage // in their order
	// hasRemoved says that some of them were removed, so that their parts are gone.
	hasRemoved bool
	isPartial  bool // only the text tells the charges
}

// read reads the messages. Where rows are damaged, or the session has another place now, the bill is partial.
func (b *rowBill) read(conn *sqlite.Conn) error {
	s := b.session
	now, err := s.in(conn)
	if err != nil {
		return err
	}
	isThere := now != nil && now.isPlacedAs(s)
	if !isThere || now.isDamaged || !now.tables.hasMessages {
		b.isPartial = true
		return nil
	}
	b.created = max(0, now.created)
	err = b.readCharges(conn, now.tables)
	if sqlite.IsDamage(err) {
		b.isPartial = true
		return nil
	}
	return err
}

// readCharges reads the messages and sorts them. The bill is partial if some cannot tell their charges.
func (b *rowBill) readCharges(conn *sqlite.Conn, tables *schema) error {
	err := b.readMessages(conn, tables)
	if err != nil || b.isPartial {
		return err
	}
	slices.SortFunc(b.messages, compareBilled)
	return b.checkUnused(conn)
}

// compareBilled orders messages as byTime does.
func compareBilled(x, y billedMessage) int {
	order := cmp.Compare(x.created, y.created)
	if order == 0 {
		order = strings.Compare(x.charge.ID, y.charge.ID)
	}
	return order
}

// readMessages reads the messages, and those that were removed, in no order. Where rows are damaged, the bill is partial.
func (b *rowBill) readMessages(conn *sqlite.Conn, tables *schema) error {
	hasRemoved, err := tables.hasRemoved(conn, b.session.id)
	if err != nil {
		return err
	}
	b.hasRemoved = hasRemoved
	known := map[string]*messageLine{}
	b.messages = make([]billedMessage, 0, fewMessages)
	isDamaged, err := eachMessage(conn, b.session.id, func(id string, created int64, data []byte) {
		b.add(id, created, data)
		if hasRemoved {
			known[id] = &messageLine{id: id, created: created}
		}
	})
	if isDamaged {
		b.isPartial = true
	}
	if err != nil || !hasRemoved {
		return err
	}
	err = addRemoved(conn, b.session.id, withoutParts, known)
	for _, m := range known {
		if m.isRemoved {
			b.add(m.id, m.created, m.info)
		}
	}
	return err
}

// checkUnused reads the parts of answers without tokens, and makes the bill partial if only the text has the charge of one: an
// answer that was handed over has another id and time, and a command that the person ran is no answer. The messages must be
// sorted.
func (b *rowBill) checkUnused(conn *sqlite.Conn) error {
	prompt := ""
	for i := range b.messages {
		m := &b.messages[i]
		if m.kind == billedPrompt {
			prompt = m.charge.ID
		}
		if m.kind != billedAnswer || m.hasUsage {
			continue
		}
		isPlain, err := b.isPlain(conn, m.charge.ID, prompt)
		if err != nil {
			return err
		}
		if b.hasRemoved || !isPlain {
			b.isPartial = true
			return nil
		}
	}
	return nil
}

// isPlain reports whether the parts of an answer and of the prompt before it, by their ids, show that the answer was given in
// the session by a model.
func (b *rowBill) isPlain(conn *sqlite.Conn, answer, prompt string) (bool, error) {
	parts, err := b.partsOf(conn, answer)
	if err != nil {
		return false, err
	}
	promptParts, err := b.partsOf(conn, prompt)
	if err != nil {
		return false, err
	}
	mayBeCommand := agents.HasAny(parts, `"command"`) && agents.HasAny(promptParts, `"synthetic"`)
	mayBeHanded := agents.HasAny(parts, `"`+agents.EntryKey+`"`)
	return !mayBeCommand && !mayBeHanded, nil
}

// partsOf returns the data of the parts of a message, one behind the other.
func (b *rowBill) partsOf(conn *sqlite.Conn, message string) (all []byte, err error) {
	const parts = "SELECT data FROM part WHERE session_id = ?1 AND message_id = ?2"
	err = conn.EachRow(parts, []string{b.session.id, message}, func(row *sqlite3.Stmt) error {
		all = append(all, row.ColumnRawText(0)...)
		return nil
	})
	return all, err
}

// charge gives a ledger the charges. It must be called once, as it adds the summaries to them.
func (b *rowBill) charge(to agents.Ledger) {
	to.Begin()
	b.addSummaries()
	for i := range b.messages {
		m := &b.messages[i]
		if b.isCharged(m) {
			to.Charge(&m.charge)
		}
	}
}

// isCharged reports whether a message is an answer, and no copy.
func (b *rowBill) isCharged(m *billedMessage) bool {
	return m.kind == billedAnswer && m.charge.At >= b.created
}

// addSummaries adds the tokens of summaries to the answers before them, or else to the first one.
func (b *rowBill) addSummaries() {
	var first agents.Usage
	var last *billedMessage
	for i := range b.messages {
		m := &b.messages[i]
		usage := &m.charge.Usage
		switch {
		case b.isCharged(m):
			if last == nil {
				*usage = usage.Plus(first)
			}
			last = m
		case m.kind != billedSummary: // a prompt or a copy has no tokens to add
		case last == nil:
			first = first.Plus(*usage)
		default:
			last.charge.Usage = last.charge.Usage.Plus(*usage)
		}
	}
}

// billedMembers are the members of a message that a bill needs.
type billedMembers struct{ role, tokens, time, model, cost, summary rawjson.Value }

// membersIn returns the members of a message's JSON that a bill needs, in one pass over it. Missing ones are nil.
func membersIn(text []byte) (found billedMembers) {
	for member := range agents.ObjectIn(text).EachMember {
		switch string(member.Key) {
		case `"role"`:
			found.role = member.Value
		case `"tokens"`:
			found.tokens = member.Value
		case `"time"`:
			found.time = member.Value
		case `"modelID"`:
			found.model = member.Value
		case `"cost"`:
			found.cost = member.Value
		case `"summary"`:
			found.summary = member.Value
		}
	}
	return found
}

// fewMessages is the number of messages of a short session.
const fewMessages = 16

// latest is a time after all clients, in ms.
const latest = 1 << 45

// add adds a message with an id, the time of its row in ms, and its data, which it does not keep. If the data cannot tell the
// charge, the bill is partial. A copy of an answer in another session is left out.
func (b *rowBill) add(id string, created int64, data []byte) {
	info := membersIn(data)
	m := billedMessage{created: created, charge: agents.Charge{ID: id}}
	if !info.role.IsString() {
		return // the text has no entry of it
	}
	if info.role.Is("user") {
		b.messages = append(b.messages, m)
		return
	}
	at := agents.Count(info.time.Member("created"))
	m.charge.At = at
	m.charge.Usage = usageOf(info.tokens)
	m.hasUsage = m.charge.Usage != agents.Usage{}
	isCopy := m.hasUsage && at < b.created
	if isCopy {
		return
	}
	isTime := at > 0 && at <= latest
	isSummary := info.summary.Truthy()
	isNamed := info.model.IsString() && len(info.model) <= maxModel
	if !isTime || (!isSummary && !isNamed) {
		b.isPartial = true
		return
	}
	m.kind = billedSummary
	if !isSummary {
		m.kind = billedAnswer
		m.charge.Provider = b.provider
		m.charge.Model = b.memory.clone(info.model)
		m.charge.Cost = b.memory.clone(costMember(info.cost))
	}
	b.messages = append(b.messages, m)
}

// maxModel bounds the name of a model, in bytes. The text shortens a much longer one.
const maxModel = 1 << 10

// costMember returns the member with a recorded cost, nil for none: 0 is of a subscription, or of a model without
// a price.
func costMember(cost rawjson.Value) []byte {
	dollars, err := strconv.ParseFloat(string(cost), 64)
	if err != nil || dollars <= 0 {
		return nil
	}
	member := append([]byte(`"cost":{"total":`), cost...)
	return append(member, '}')
}
