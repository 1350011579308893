package nodes

import (
	"context"
	"sync/atomic"
)

// freeLookups is how many names of a listing come with their attributes unasked, which saves whoever opens or
// stats them a round trip each. Listing so many costs some 15 ms more; a directory with more of them is
// rarely read by a pattern: the shell's arguments would be too long for a program.
const freeLookups = 8 << 10

// sparing decides which names of a long listing come with their attributes: those beyond the first only
// where somebody is seen to look names up, as ls -l does and find does not. The kernel's own way of
// finding that out (READDIRPLUS_AUTO) gives a shell that expands a pattern names alone, and each open that
// follows costs a lookup.
type sparing struct {
	request context.Context // for which the answer below is
	spares  bool
	began   bool   // some names came without attributes
	seen    uint32 // lookups that were counted then
	asked   bool   // somebody looked names up after that: all others come with theirs
}

// counted is a directory that counts the lookups in it.
type counted interface{ lookedUp() uint32 }

// lookupCount is the count of a directory that can have many names.
type lookupCount struct{ n atomic.Uint32 }

func (c *lookupCount) lookedUp() uint32 { return c.n.Load() }

// spare reports whether the name with that number comes without its attributes, which is the same for the whole
// of a request that begins so far in.
func (s *sparing) spare(request context.Context, dir any, number int) bool {
	c, ok := dir.(counted)
	if !ok || number < freeLookups || s.asked {
		return false
	}
	if s.request == request {
		return s.spares
	}
	now := c.lookedUp()
	s.asked = s.began && now != s.seen
	s.request, s.spares, s.began, s.seen = request, !s.asked, true, now
	return s.spares
}
