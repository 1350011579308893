package report

import (
	"encoding/binary"
	"hash/maphash"

	"sessionfs/sessioncore"
)

// This file tells which entries are copies of one another: what a session took over from another one. Every way in
// which clients and this program copy entries keeps their id and their timestamp, and an id of 32 random bits is not
// drawn twice in the same millisecond (docs/design.md, usage.json).

// copySeed is random in each process, so that no file can be made to have collisions.
var copySeed = maphash.MakeSeed()

// copyKey returns a hash of what an entry has in common with its copies only. It is 0 if the entry has no copies, as
// it has no id or no timestamp.
func copyKey(s *sessioncore.Snapshot, e sessioncore.Entry) uint64 {
	id, ok := s.ID(e)
	at, timed := s.OwnTime(e)
	if !ok || !timed {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(copySeed)
	var ms [8]byte
	binary.LittleEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	_, _ = h.Write(ms[:])
	_, _ = h.WriteString(id)
	return max(h.Sum64(), 1)
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
