package search

import (
	"cmp"
	"hash/maphash"
	"slices"
)

// hitCollector collects the hits of several sessions. A hit that forks copied counts once, in the oldest
// session.
type hitCollector struct {
	limit  int  // of hits
	count  bool // only the number of each session's hits is kept
	hits   []Hit
	owners []int32          // the session of each hit, by its index in found
	found  []*FileHits      // the sessions with hits
	known  map[uint64]int32 // the index in owners of a hit, by its copyKey
	unread []*FileHits
	more   bool // there are more hits than the limit
}

// copySeed is random in each process, so that no file can provoke collisions.
var copySeed = maphash.MakeSeed()

// commonParts are the parts that a hit's copies have in common: the entry's id and time, and the shown text.
type commonParts struct {
	entry string
	what  string
	line  string
	at    int64 // in ns since 1970
}

// copyKey returns a hash of the parts that a hit's copies have in common. It is 0 for a title, which is
// each session's own.
func (h *Hit) copyKey() uint64 {
	if h.Entry == "" {
		return 0
	}
	common := commonParts{
		entry: h.Entry,
		what:  h.What,
		line:  h.Line,
		at:    h.Time.UnixNano(),
	}
	hash := maphash.Comparable(copySeed, common)
	return max(hash, 1) // as 0 is a title's
}

// add adds the hits of a session, or its error. It returns false once there are more hits than the limit.
func (g *hitCollector) add(f *FileHits) bool {
	if f.Err != nil {
		g.unread = append(g.unread, f)
	}
	if g.known == nil {
		g.known = map[uint64]int32{}
	}
	if g.count {
		g.addCounted(f)
		return true
	}
	if len(f.Hits) > 0 {
		g.found = append(g.found, f)
	}
	for i := range f.Hits {
		hit := &f.Hits[i]
		n, isCopy := g.addKey(hit.copyKey())
		if isCopy {
			g.addCopy(n, hit)
			continue
		}
		if len(g.hits) == g.limit {
			g.more = true
			return false
		}
		g.hits = append(g.hits, *hit)
	}
	return true
}

// addKey makes the session found last the owner of a hit with a key, unless the key is known: then isCopy is true,
// and n the index of the known hit. Hits with the key 0 are no copies.
func (g *hitCollector) addKey(key uint64) (n int32, isCopy bool) {
	if key != 0 {
		known, isKnown := g.known[key]
		if isKnown {
			return known, true
		}
		g.known[key] = int32(len(g.owners))
	}
	g.owners = append(g.owners, int32(len(g.found)-1))
	return 0, false
}

// addCounted is add for the number of hits alone.
func (g *hitCollector) addCounted(f *FileHits) {
	if len(f.counted) == 0 {
		return
	}
	g.found = append(g.found, f)
	for _, key := range f.counted {
		n, isCopy := g.addKey(key)
		if isCopy {
			g.setOlder(n)
		}
	}
	f.counted = nil
}

// setOlder makes the session found last the owner of hit n if it is older, and reports that.
func (g *hitCollector) setOlder(n int32) bool {
	last := len(g.found) - 1
	isOlder := g.found[last].compareAge(g.found[g.owners[n]]) < 0
	if isOlder {
		g.owners[n] = int32(last)
	}
	return isOlder
}

// addCopy adds a hit of the session found last that is a copy of hit n, or its original.
func (g *hitCollector) addCopy(n int32, hit *Hit) {
	copies := g.hits[n].Copies + 1
	if g.setOlder(n) {
		g.hits[n] = *hit
	}
	g.hits[n].Copies = copies
}

// compareAge returns a number below 0 if a session is older than another one, by their start. A fork may have
// its original's time, and is younger.
func (f *FileHits) compareAge(other *FileHits) int {
	order := f.start.Compare(other.start)
	if order != 0 {
		return order
	}
	if f.isFork != other.isFork {
		if f.isFork {
			return 1
		}
		return -1
	}
	return cmp.Compare(f.File, other.File)
}

// result returns the hits, the newest first, and of one time in the order of their addition.
func (g *hitCollector) result() *Result {
	slices.SortStableFunc(g.hits, func(a, b Hit) int {
		return b.Time.Compare(a.Time)
	})
	return &Result{Hits: g.hits, More: g.more, Unread: g.unread}
}

// sessions returns the sessions that own hits, in the order of their addition, and sets their Count. It may be
// called once.
func (g *hitCollector) sessions() []*FileHits {
	for _, n := range g.owners {
		g.found[n].Count++
	}
	return slices.DeleteFunc(g.found, func(f *FileHits) bool { return f.Count == 0 })
}
