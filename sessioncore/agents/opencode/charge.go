package opencode

import (
	"context"
	"slices"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/sqlite"
)

// This file makes the charges of a session straight from the rows of its messages. They are those that the
// converter makes of its text.

var _ agents.Charging = (*object)(nil)

// Charge implements agents.Charging. A session in whose messages an answer has no tokens, or has facts that no
// client writes, is told by its text alone.
func (o *object) Charge(ctx context.Context, to agents.Ledger) (isWhole bool, err error) {
	if o.kind != billedText || !o.session.tells() {
		return false, nil
	}
	memory := memories.Get().(*rowMemory)
	defer memory.release()
	b := &rowBill{provider: o.home.name, memory: memory}
	err = o.session.database.Read(ctx, func(conn *sqlite.Conn) error { return b.read(conn, o.session) })
	if err != nil || b.isPartial {
		return false, err
	}
	slices.SortFunc(b.answers, func(x, y *rowAnswer) int {
		return byTime(x.messageLine, y.messageLine)
	})
	to.Begin()
	b.addSummaries()
	for _, a := range b.answers {
		to.Charge(&a.charge)
	}
	return true, nil
}

// rowAnswer is a message with an answer or a summary.
type rowAnswer struct {
	*messageLine
	isSummary bool
	charge    agents.Charge // of a summary the tokens alone
}

// rowBill makes the charges of a session.
type rowBill struct {
	provider  string
	created   int64 // of the session, in ms: what is older is a copy
	memory    *rowMemory
	answers   []*rowAnswer
	isPartial bool // only the text tells the charges
}

// read reads the answers of a session, known in an earlier state.
func (b *rowBill) read(conn *sqlite.Conn, s *session) error {
	b.answers = nil
	b.memory.data = b.memory.data[:0]
	now, err := s.in(conn)
	if err != nil {
		return err
	}
	isKnown := now != nil && now.directory == s.directory && now.parent == s.parent
	b.isPartial = !isKnown || now.isDamaged || !now.tables.hasMessages
	if b.isPartial {
		return nil
	}
	b.isPartial, err = now.tables.hasRemoved(conn, s.id)
	switch {
	case sqlite.IsDamage(err):
		b.isPartial = true
		return nil
	case err != nil || b.isPartial:
		return err
	}
	b.created = max(0, now.created)
	isDamaged, err := eachMessage(conn, s.id, func(m *messageLine, row *sqlite3.Stmt) {
		b.isPartial = b.isPartial || !b.add(m, row.ColumnRawText(2))
	})
	b.isPartial = b.isPartial || isDamaged
	return err
}

// latest is a time after all clients, in ms.
const latest = 1 << 45

// add adds a message, of which text is the JSON. It reports whether that tells its charge.
func (b *rowBill) add(m *messageLine, text []byte) (isWhole bool) {
	of := membersIn(text)
	role := of[billedRole]
	if !role.IsString() || role.Is("user") {
		return true
	}
	at := agents.Count(of[billedTime].Member("created"))
	usage := usageOf(of[billedTokens])
	model := of[billedModel]
	a := &rowAnswer{messageLine: m, isSummary: of[billedSummary].Truthy()}
	switch {
	case usage == (agents.Usage{}): // its parts tell whether it is a copy
		return false
	case at < b.created:
		return true
	case at <= 0 || at > latest || !a.isSummary && (!model.IsString() || len(model) > maxModel):
		return false
	}
	a.charge = agents.Charge{ID: m.id, At: at, Provider: b.provider, Usage: usage}
	if !a.isSummary {
		a.charge.Model = b.memory.clone(model)
		a.charge.Cost = b.memory.clone(costMember(of[billedCost]))
	}
	b.answers = append(b.answers, a)
	return true
}

// maxModel bounds the name of a model, in bytes. The text shortens a much longer one.
const maxModel = 1 << 10

// addSummaries adds the tokens of summaries to the answers before them, or else to the first one.
func (b *rowBill) addSummaries() {
	var first agents.Usage
	var last *rowAnswer
	b.answers = slices.DeleteFunc(b.answers, func(a *rowAnswer) bool {
		switch {
		case !a.isSummary && last == nil:
			a.charge.Usage = a.charge.Usage.Plus(first)
			last = a
		case !a.isSummary:
			last = a
		case last == nil:
			first = first.Plus(a.charge.Usage)
		default:
			last.charge.Usage = last.charge.Usage.Plus(a.charge.Usage)
		}
		return a.isSummary
	})
}

// costMember returns the member with a recorded cost, nil for none: 0 is of a subscription, or of a model without
// a price.
func costMember(cost rawjson.Value) []byte {
	dollars, err := strconv.ParseFloat(string(cost), 64)
	if err != nil || dollars <= 0 {
		return nil
	}
	return append(append([]byte(`"cost":{"total":`), cost...), '}')
}
