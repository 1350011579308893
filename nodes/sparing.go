package nodes

import "context"

// freeLookups is how many names of a listing always come with their attributes, which saves a round trip for each that
// is opened or stat'ed. For that many it costs some 15 ms more; larger directories are
// rarely read by a shell pattern, whose arguments would be too long for a program.
const freeLookups = 8 << 10

// sparing decides which names of a long listing come with their attributes: the first ones always, the others only
// if lookups are observed, as with ls -l but not with find. The kernel's own heuristic
// (READDIRPLUS_AUTO) returns only names to a shell that expands a pattern, so that each following open
// costs a lookup.
type sparing struct {
	request context.Context // the request for which spares was decided
	spares  bool
	began   bool   // some names came without attributes
	seen    uint32 // lookups counted at that time
	asked   bool   // lookups followed: all other names come with attributes
}

// spare reports whether the name with that number comes without its attributes; lookups is how many there were in the
// directory. Beyond freeLookups the decision is the same for all names of a request.
func (s *sparing) spare(request context.Context, lookups uint32, number int) bool {
	if number < freeLookups || s.asked {
		return false
	}
	if s.request == request {
		return s.spares
	}
	s.asked = s.began && lookups != s.seen
	s.request, s.spares, s.began, s.seen = request, !s.asked, true, lookups
	return s.spares
}
