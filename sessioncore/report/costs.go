package report

import (
	"context"
	"strings"

	"sessionfs/sessioncore"
)

// Cost is what one entry reports.
type Cost struct {
	// Copy is the same for all copies of the entry, in whatever session, and for no other entry in this process. It is
	// 0 if there are no copies.
	Copy  uint64
	Time  int64 // of the entry, in ms since the epoch
	Model string
	Sum   Sum
}

// Calls returns the results of tools, in file order, each as a Cost of one message whose model is the name of the tool as in path/.
func Calls(ctx context.Context, s *sessioncore.Snapshot) ([]Cost, error) {
	if err := s.Confirm(ctx); err != nil {
		return nil, err
	}
	var calls []Cost
	for e := range sessioncore.Entry(s.Len()) {
		if s.Kind(e) == sessioncore.TypeMessage && s.Role(e) == sessioncore.RoleToolResult {
			tool := strings.TrimPrefix(s.PathLabel(e), "toolResult-")
			calls = append(calls, Cost{copyKey(s, e, 0), s.Time(e).UnixMilli(), tool, Sum{AssistantMessages: 1}})
		}
	}
	return calls, nil
}

// Costs returns what the entries of a session cost, in file order: what total in usage.json is the sum of.
func Costs(ctx context.Context, s *sessioncore.Snapshot, prices Prices) ([]Cost, error) {
	records, err := usageRecordsOf(s).of(ctx, s)
	if err != nil {
		return nil, err
	}
	costs := make([]Cost, len(records))
	for i, r := range prices.priced(records) {
		costs[i] = Cost{Copy: copyKey(s, r.entry, r.nth), Time: s.Time(r.entry).UnixMilli(), Model: r.model, Sum: r.Sum}
	}
	return costs, nil
}
