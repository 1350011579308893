package report

import (
	"context"

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

// Costs returns what the entries of a session cost, in file order: what total in usage.json is the sum of.
func Costs(ctx context.Context, s *sessioncore.Snapshot, prices Prices) ([]Cost, error) {
	records, err := usageRecordsOf(s).of(ctx, s)
	if err != nil {
		return nil, err
	}
	costs := make([]Cost, len(records))
	for i := range records {
		r := &records[i]
		costs[i] = Cost{Copy: copyKey(s, r.entry), Time: s.Time(r.entry).UnixMilli(), Model: r.model, Sum: prices.priced(r.model, r.Sum)}
	}
	return costs, nil
}
