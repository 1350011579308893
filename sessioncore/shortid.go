package sessioncore

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// leastName is the number of characters of an id that ShortName returns at least.
const leastName = 8

// ShortName returns the beginning of an entry's id that tells it from all entries before it. Names
// that are not the id itself (docs/design.md section 1, Names) are returned whole. It depends on no
// later entry's id, so that a text with it only grows.
func (s *Snapshot) ShortName(e Entry) string {
	name := s.Name(e)
	id, _ := s.ID(e)
	if name != id || utf8.RuneCountInString(name) <= leastName {
		return name
	}
	type key struct{}
	newCache := func() any { return &sharedBytes{} }
	cache := s.Shared(key{}, newCache).(*sharedBytes)
	telling := cache.of(s, e) + 1 // bytes that no earlier id begins with
	for end := range name {
		if end >= telling && utf8.RuneCountInString(name[:end]) >= leastName {
			return name[:end]
		}
	}
	return name
}

// sharedBytes caches for each id the length in bytes of the longest beginning that it shares with an
// id before it, for the snapshots of an index.
type sharedBytes struct {
	mu     sync.Mutex // guards counts
	counts []int32    // by entry
}

// of returns the count of an entry. On first use, or for a new entry, it counts for all of s.
func (c *sharedBytes) of(s *Snapshot, e Entry) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int(e) >= len(c.counts) {
		c.count(s)
	}
	return int(c.counts[e])
}

// count fills the counts. Of the ids sorted as texts, the one that shares most with the id of e is the
// nearest one on either side that is earlier in the file. So one pass goes up the sorted ids and one
// goes down, each with a stack of the ids passed. Callers must hold c.mu.
func (c *sharedBytes) count(s *Snapshot) {
	c.counts = make([]int32, s.Len())
	id := func(e Entry) []byte {
		return s.symbols.text(s.records[e].id)
	}
	sorted := make([]Entry, s.Len())
	for e := range sorted {
		sorted[e] = Entry(e)
	}
	slices.SortStableFunc(sorted, func(a, b Entry) int {
		return bytes.Compare(id(a), id(b))
	})
	const passes = 2
	for range passes {
		var earlier []Entry // in the order of the file, the nearest one last
		for _, e := range sorted {
			for len(earlier) > 0 && earlier[len(earlier)-1] > e {
				earlier = earlier[:len(earlier)-1]
			}
			if len(earlier) > 0 {
				nearest := earlier[len(earlier)-1]
				shared := commonBytes(id(nearest), id(e))
				c.counts[e] = max(c.counts[e], shared)
			}
			earlier = append(earlier, e)
		}
		slices.Reverse(sorted)
	}
}

// commonBytes returns the number of bytes at the beginning of two texts that are equal.
func commonBytes(a, b []byte) (n int32) {
	for int(n) < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// maxCandidates bounds the ids that an error of FindBeginning lists.
const maxCandidates = 10

// FindBeginning returns the entry with an id, else the only one with an id that begins with text. The
// error wraps ErrNotFound, or where several ids begin with it ErrInvalid.
func (s *Snapshot) FindBeginning(text string) (Entry, error) {
	e, err := s.Find(text)
	if err == nil || text == "" {
		return e, err
	}
	var candidates []string
	for id := symbol(1); int(id) < len(s.symbols.symbols); id++ {
		if !bytes.HasPrefix(s.symbols.text(id), []byte(text)) {
			continue
		}
		newest := s.newest(id)
		if newest == NoEntry {
			continue // the symbol is no entry's id
		}
		e = newest
		if len(candidates) == maxCandidates {
			candidates = append(candidates, "…")
			break
		}
		candidates = append(candidates, s.Name(e))
	}
	switch len(candidates) {
	case 0:
		return NoEntry, err
	case 1:
		return e, nil
	}
	return NoEntry, fmt.Errorf("%w: the ids of several entries begin with %q; type more of one: %s",
		ErrInvalid, text, strings.Join(candidates, ", "))
}
