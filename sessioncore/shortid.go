package sessioncore

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// leastName is how many characters of an id ShortName returns.
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
	end := s.Shared(key{}, func() any {
		return &sharedBytes{}
	}).(*sharedBytes).of(s, e) + 1
	for i := range name {
		if i >= end && utf8.RuneCountInString(name[:i]) >= leastName {
			return name[:i]
		}
	}
	return name
}

// sharedBytes caches how many bytes each id shares with those before it at most, for the snapshots
// of an index.
type sharedBytes struct {
	mu     sync.Mutex // guards counts
	counts []int32    // by entry
}

// of returns the count of an entry. It counts for all entries at once: in the order of ids,
// the one before e that shares most with e is the nearest one on either side.
func (c *sharedBytes) of(s *Snapshot, e Entry) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int(e) < len(c.counts) {
		return int(c.counts[e])
	}
	c.counts = make([]int32, s.Len())
	id := func(e Entry) []byte {
		return s.symbols.text(s.records[e].id)
	}
	order := make([]Entry, s.Len())
	for e := range order {
		order[e] = Entry(e)
	}
	slices.SortStableFunc(order, func(a, b Entry) int {
		return bytes.Compare(id(a), id(b))
	})
	for range 2 {
		var before []Entry // in the order of the file, the nearest one last
		for _, e := range order {
			for len(before) > 0 && before[len(before)-1] > e {
				before = before[:len(before)-1]
			}
			n := len(before)
			if n > 0 {
				c.counts[e] = max(c.counts[e], commonBytes(id(before[n-1]), id(e)))
			}
			before = append(before, e)
		}
		slices.Reverse(order)
	}
	return int(c.counts[e])
}

// commonBytes returns how many bytes two texts begin alike.
func commonBytes(a, b []byte) (n int32) {
	for int(n) < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// maxCandidates is how many ids the error of FindBeginning lists.
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
		if !bytes.HasPrefix(s.symbols.text(id), []byte(text)) || s.newest(id) == NoEntry {
			continue
		}
		e = s.newest(id)
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
