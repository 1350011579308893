package report

import (
	"math"

	"sessionfs/sessioncore"
)

// Cover is a span of time for which a session has the costs of its subagents. It is comparable.
type Cover struct {
	From, To int64 // in ms since the epoch, both included
	// Tokens says that the session has their tokens too, and not only their cost.
	Tokens bool
}

// coversOf returns the spans that a session's records cover: from the call of a tool to its result, if that reports a usage, and
// all time up to the answer behind the one after which the client recorded the cost of the whole session.
func coversOf(s *sessioncore.Snapshot, records []usageRecord) (covers []Cover) {
	for i := range records {
		r := &records[i]
		at := s.Time(r.entry).UnixMilli()
		if r.session != nil {
			to := int64(math.MaxInt64)
			if i+1 < len(records) {
				to = max(at, s.Time(records[i+1].entry).UnixMilli()-1)
			}
			covers = append(covers, Cover{math.MinInt64, to, false})
		}
		if s.Kind(r.entry) == sessioncore.TypeMessage && s.Role(r.entry) == sessioncore.RoleToolResult {
			covers = append(covers, Cover{calledAt(s, r.entry), at, true})
		}
	}
	return covers
}

// maxCalls bounds how many results of the calls of one answer are passed on the way to it.
const maxCalls = 1000

// calledAt returns the time of the answer that a tool's result belongs to, that of the result if there is none.
func calledAt(s *sessioncore.Snapshot, result sessioncore.Entry) int64 {
	e := result
	for range maxCalls {
		if e = s.Parent(e); e == sessioncore.NoEntry {
			break
		}
		if isAnswer(s, e) {
			return s.Time(e).UnixMilli()
		}
	}
	return s.Time(result).UnixMilli()
}

// Covered returns the rest of a cost in a subagent's session that covers of the calling session leave
// over, and whether there is any.
func (c *Cost) Covered(covers []Cover) (left Sum, ok bool) {
	left = c.Sum
	for _, of := range covers {
		if c.Time < of.From || c.Time > of.To {
			continue
		}
		if of.Tokens {
			return Sum{}, false
		}
		left.Cost, left.Listed, left.Unpriced = usageCost{known: true}, 0, 0
	}
	return left, true
}
