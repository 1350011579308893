package report

import (
	"hash/maphash"

	"sessionfs/sessioncore"
)

// This file tells which entries are copies of one another: what a session took over from another one. Every way in
// which clients and this program copy entries keeps their id and their timestamp, and an id of 32 random bits is not
// drawn twice in the same millisecond (docs/design.md, usage.json).

// copySeed is random in each process, so that no file can be made to have collisions.
var copySeed = maphash.MakeSeed()

// copied is the identity that a usage of an entry shares with its copies only.
type copied struct {
	id  string
	at  int64 // ms since the epoch
	nth int   // of the entry's usages
}

// copyKey returns a hash of the identity that the nth usage of an entry shares with its copies. It
// is 0 if the entry has no copies, as it has no id or no timestamp.
func copyKey(s *sessioncore.Snapshot, e sessioncore.Entry, nth int) uint64 {
	id, ok := s.ID(e)
	at, timed := s.OwnTime(e)
	if !ok || !timed {
		return 0
	}
	return max(maphash.Comparable(copySeed, copied{id, at.UnixMilli(), nth}), 1)
}

// without returns the records of s that are not copies of records in others, which are of the session other.
func without(s *sessioncore.Snapshot, records []usageRecord, other *sessioncore.Snapshot, others []usageRecord) []usageRecord {
	taken := make(map[uint64]struct{}, len(others))
	for i := range others {
		if key := copyKey(other, others[i].entry, others[i].nth); key != 0 {
			taken[key] = struct{}{}
		}
	}
	var own []usageRecord
	for i := range records {
		if _, ok := taken[copyKey(s, records[i].entry, records[i].nth)]; !ok {
			own = append(own, records[i])
		}
	}
	return own
}
