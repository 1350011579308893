package search

import (
	"cmp"
	"hash/maphash"
	"slices"
)

// gathered are the hits of several sessions. A hit that forks copied is there once, with the session of them that began first.
type gathered struct {
	limit  int  // of hits
	count  bool // of each session it is only counted how many it has
	hits   []Hit
	of     []*Found         // whose each hit is
	found  []*Found         // the sessions that had hits
	known  map[uint64]int32 // hits by copyKey
	unread []*Found
	more   bool // there are more hits than the limit
}

// copySeed is random in each process, so that no file can be made to have collisions.
var copySeed = maphash.MakeSeed()

// copyKey returns a hash of what copies of a hit have in common: the entry's id and time, and what is shown of it. It is 0 for a
// title, which every session has for itself.
func (h *Hit) copyKey() uint64 {
	if h.Entry == "" {
		return 0
	}
	return max(1, maphash.Comparable(copySeed, struct {
		entry, what, line string
		at                int64
	}{h.Entry, h.What, h.Line, h.Time.UnixNano()}))
}

// add adds what was found in a session. It returns false once there are more hits than the limit.
func (g *gathered) add(f *Found) bool {
	if f.Err != nil {
		g.unread = append(g.unread, f)
	}
	if g.known == nil {
		g.known = map[uint64]int32{}
	}
	for i := range f.Hits {
		if key := f.Hits[i].copyKey(); key != 0 {
			if n, ok := g.known[key]; ok {
				g.copied(n, f, &f.Hits[i])
				continue
			}
			g.known[key] = int32(len(g.of))
		}
		if g.of = append(g.of, f); g.count {
			continue
		}
		if len(g.hits) == g.limit {
			g.more = true
			return false
		}
		g.hits = append(g.hits, f.Hits[i])
	}
	if g.count && len(f.Hits) > 0 {
		g.found, f.Hits = append(g.found, f), nil
	}
	return true
}

// copied adds a hit of f that is a copy of hit n, or the other way round.
func (g *gathered) copied(n int32, f *Found, hit *Hit) {
	isOlder := f.compareAge(g.of[n]) < 0
	if isOlder {
		g.of[n] = f
	}
	if g.count {
		return
	}
	copies := g.hits[n].Copies + 1
	if isOlder {
		g.hits[n] = *hit
	}
	g.hits[n].Copies = copies
}

// compareAge compares sessions by when they began. A fork can have the time of what it copied.
func (f *Found) compareAge(other *Found) int {
	fork := func(f *Found) int {
		if f.isFork {
			return 1
		}
		return 0
	}
	return cmp.Or(f.began.Compare(other.began), cmp.Compare(fork(f), fork(other)), cmp.Compare(f.File, other.File))
}

// result returns the hits, the newest first.
func (g *gathered) result() *Result {
	slices.SortStableFunc(g.hits, func(a, b Hit) int { return b.Time.Compare(a.Time) })
	return &Result{Hits: g.hits, More: g.more, Unread: g.unread}
}

// sessions returns the sessions that have hits, in the order in which they were added.
func (g *gathered) sessions() []*Found {
	for _, f := range g.of {
		f.Count++
	}
	return slices.DeleteFunc(g.found, func(f *Found) bool { return f.Count == 0 })
}
