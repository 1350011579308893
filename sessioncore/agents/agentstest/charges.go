package agentstest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// bill is an agents.Ledger as lines of text: "ID TIME PROVIDER/MODEL {USAGE} [CALLS] {COST}".
type bill []string

// Begin implements agents.Ledger.
func (b *bill) Begin() { *b = nil }

// Charge implements agents.Ledger.
func (b *bill) Charge(of *agents.Charge) {
	model, _ := of.Model.Text()
	var usage []byte
	if of.Usage != (agents.Usage{}) {
		usage = of.Usage.AppendMembers(nil)
	}
	answer := fmt.Sprintf("%s %d %s/%s", of.ID, of.At, of.Provider, model)
	line := fmt.Sprintf("%s {%s} [%s] {%s}", answer, usage, of.Calls, of.Cost)
	*b = append(*b, line)
}

// checkCharges checks that the charges of a session are the charges of the answers in its text.
func (h *Home) checkCharges(name, text string) {
	if h.Format == nil || !h.Format.IsSession(name) {
		return
	}
	facts := h.Facts()
	if facts == storage.Files(h.Files) {
		return // the agent has none
	}
	want, mayLack, lacks := billOf(text)
	obj, err := facts.Open(name)
	require.NoError(h.T, err)
	defer obj.Close()
	charging := obj.(agents.Charging)
	var got bill
	isWhole, err := charging.Charge(h.T.Context(), &got)
	require.NoError(h.T, err)
	if !isWhole {
		require.True(h.T, mayLack, "%s: %d answers are not charged", name, len(want))
		return
	}
	require.False(h.T, lacks, name)
	mayOmitCopies := h.isOfRows() // copies of a fork's origin that have no usage need no charge
	if mayOmitCopies && len(got) < len(want) {
		want = slices.DeleteFunc(want, func(charge string) bool {
			return isUnbilledCopy(charge, text)
		})
	}
	require.Equal(h.T, want, got, name)
}

// isOfRows reports whether the agent's files have a form for a bill of their own.
func (h *Home) isOfRows() bool {
	shown := h.Files.Files.(agents.Shown)
	_, isBilled := shown.Files.(agents.Billed)
	return isBilled
}

// isUnbilledCopy reports whether a charge without a usage is older than its session.
func isUnbilledCopy(charge, session string) bool {
	first, _, _ := strings.Cut(session, "\n")
	header := rawjson.Value(first)
	began, _, _ := rawjson.ReadTimestamp(header.Member("timestamp"))
	at := int64(0)
	_, err := fmt.Sscanf(charge, "%s %d", new(string), &at)
	return err == nil && at < began && strings.HasSuffix(charge, "{} [] {}")
}

// billOf returns the charges of the answers in a session's text. mayLack says that the charges that the session itself
// gives may be no whole bill, lacks that they are none, as a result has a usage.
func billOf(text string) (charges bill, mayLack, lacks bool) {
	for line := range strings.Lines(text) {
		entry := rawjson.Value(line)
		if line[0] != '{' || !entry.Member("type").Is("message") {
			continue
		}
		m := entry.Member("message")
		if m.Member("toolName").Is(agents.BilledTool) {
			mayLack = true
			details := m.Member("details")
			if details.Member("usage").IsObject() {
				lacks = true
			}
		}
		if !m.Member("role").Is("assistant") {
			continue
		}
		ms, _, isTimed := rawjson.ReadTimestamp(entry.Member("timestamp"))
		if !isTimed {
			mayLack = true
		}
		charges = append(charges, chargeOf(entry, ms))
	}
	return charges, mayLack, lacks
}

// chargeOf returns the charge of an answer with a time in ms, as bill writes it.
func chargeOf(entry rawjson.Value, ms int64) string {
	id, _ := entry.Member("id").Text()
	m := entry.Member("message")
	provider, _ := m.Member("provider").Text()
	model, _ := m.Member("model").Text()
	var usage, cost []string
	calls := "[]"
	isEmpty := true
	for member := range m.Member("usage").EachMember {
		text := string(member.Key) + ":" + string(member.Value)
		switch {
		case member.KeyIs("modelCalls"):
			calls = string(member.Value)
		case member.KeyIs("cost"), member.KeyIs("sessionCost"):
			cost = append(cost, text)
		default:
			usage = append(usage, text)
			isEmpty = isEmpty && string(member.Value) == "0"
		}
	}
	if isEmpty { // such a usage counts as none
		usage = nil
	}
	answer := fmt.Sprintf("%s %d %s/%s", id, ms, provider, model)
	usages := strings.Join(usage, ",")
	costs := strings.Join(cost, ",")
	return fmt.Sprintf("%s {%s} %s {%s}", answer, usages, calls, costs)
}
