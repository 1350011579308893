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

// bill is an agents.Ledger as lines of text.
type bill []string

func (b *bill) Begin() { *b = nil }

func (b *bill) Charge(of *agents.Charge) {
	model, _ := of.Model.Text()
	usage := of.Usage.AppendMembers(nil)
	if of.Usage == (agents.Usage{}) {
		usage = nil
	}
	entry := fmt.Sprintf("%s %d %s/%s", of.ID, of.At, of.Provider, model)
	*b = append(*b, fmt.Sprintf("%s {%s} [%s] {%s}", entry, usage, of.Calls, of.Cost))
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

// billOf returns the charges of the answers in a session's text. The charges of the session itself may lack some of
// its usages, or lack them.
func billOf(text string) (charges bill, mayLack, lacks bool) {
	for line := range strings.Lines(text) {
		entry := rawjson.Value(line)
		if line[0] != '{' || !entry.Member("type").Is("message") {
			continue
		}
		m := entry.Member("message")
		if m.Member("toolName").Is(agents.BilledTool) {
			mayLack = true
			lacks = lacks || m.Member("details").Member("usage").IsObject()
		}
		if !m.Member("role").Is("assistant") {
			continue
		}
		id, _ := entry.Member("id").Text()
		provider, _ := m.Member("provider").Text()
		model, _ := m.Member("model").Text()
		ms, _, isTimed := rawjson.ReadTimestamp(entry.Member("timestamp"))
		mayLack = mayLack || !isTimed
		var usage, cost []string
		calls := ""
		isEmpty := true
		m.Member("usage").EachMember(func(of rawjson.Member) bool {
			member := string(of.Key) + ":" + string(of.Value)
			switch {
			case of.KeyIs("modelCalls"):
				calls = string(of.Value)
			case of.KeyIs("cost"), of.KeyIs("sessionCost"):
				cost = append(cost, member)
			default:
				usage = append(usage, member)
				isEmpty = isEmpty && string(of.Value) == "0"
			}
			return true
		})
		if isEmpty {
			usage = nil
		}
		if calls == "" {
			calls = "[]"
		}
		charges = append(charges, fmt.Sprintf("%s %d %s/%s {%s} %s {%s}",
			id, ms, provider, model, strings.Join(usage, ","), calls, strings.Join(cost, ",")))
	}
	return charges, mayLack, lacks
}
