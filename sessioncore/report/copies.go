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

// copied is what an entry has in common with its copies only.
type copied struct {
	id string
	at int64 // ms since the epoch
}

// copyKey returns a hash of what copies of an entry have in common. It is 0 if the entry has no copies, as
// it has no id or no timestamp.
func copyKey(s *sessioncore.Snapshot, e sessioncore.Entry) uint64 {
	id, ok := s.ID(e)
	at, timed := s.OwnTime(e)
	if !ok || !timed {
		return 0
	}
	return max(maphash.Comparable(copySeed, copied{id, at.UnixMilli()}), 1)
}

// without returns the records of s that are not copies of records in others, which are of the session other.
func without(s *sessioncore.Snapshot, records []usageRecord, other *sessioncore.Snapshot, others []usageRecord) []usageRecord {
	taken := make(map[uint64]struct{}, len(others))
	for i := range others {
		if key := copyKey(other, others[i].entry); key != 0 {
			taken[key] = struct{}{}
		}
	}
	var own []usageRecord
	for i := range records {
		if _, ok := taken[copyKey(s, records[i].entry)]; !ok {
			own = append(own, records[i])
		}
	}
	return own
}
