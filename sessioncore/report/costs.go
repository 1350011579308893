package report

import (
	"cmp"
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

// Costs are the costs of a session's entries, in file order, and its covers of its subagents.
type Costs struct {
	Entries []Cost
	Covers  []Cover
}

// CallsOf returns the results of tools, in file order, each as a Cost of one message whose model is the name of the tool as in path/.
func CallsOf(ctx context.Context, s *sessioncore.Snapshot) (Costs, error) {
	if err := s.Confirm(ctx); err != nil {
		return Costs{}, err
	}
	var calls []Cost
	for e := range sessioncore.Entry(s.Len()) {
		if s.Kind(e) == sessioncore.TypeMessage && s.Role(e) == sessioncore.RoleToolResult {
			tool := strings.TrimPrefix(s.PathLabel(e), "toolResult-")
			calls = append(calls, Cost{copyKey(s, e, 0), s.Time(e).UnixMilli(), tool, Sum{AssistantMessages: 1}})
		}
	}
	return Costs{Entries: calls}, nil
}

// CostsOf returns the costs of a session's entries. Their sum is total in usage.json.
func CostsOf(ctx context.Context, s *sessioncore.Snapshot, prices Prices) (Costs, error) {
	records, err := usageRecordsOf(s).of(ctx, s)
	if err != nil {
		return Costs{}, err
	}
	covers := coversOf(s, records)
	records = prices.priced(records)
	costs := make([]Cost, len(records))
	for i := range records {
		r := &records[i]
		costs[i] = Cost{Copy: copyKey(s, r.entry, r.nth), Time: cmp.Or(r.ended, s.Time(r.entry).UnixMilli()), Model: r.model, Sum: r.Sum}
	}
	return Costs{costs, covers}, nil
}
