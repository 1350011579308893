package layout

import "sessionfs/sessioncore"

// The directories of tree/ nest as the entries do, but a chain of thousands of entries is longer than
// a path may be. So the nesting is literal for a stretch, and goes on in tree/.deep/ (docs/design.md,
// tree/).

const (
	// maxNesting is how many levels a stretch has.
	maxNesting = 64
	// maxNestingBytes is how long the path of a stretch may be in bytes, separators counted.
	maxNestingBytes = 2000
)

const (
	// Deep is the directory in tree/ in which the nesting goes on.
	Deep = ".deep"
	// EntryLink is the link in each directory of tree/ to the entry's file. An id that looks like it has its first
	// byte encoded.
	EntryLink = "entry.json"
)

// Nesting is a place in a stretch: how many levels below its beginning, and the bytes of the path with a separator after
// each name.
type Nesting struct{ Levels, Bytes int }

// Below is the place of a directory of that name in the one at n; ok is false where a stretch ends and
// the name is a link to another's beginning.
func (n Nesting) Below(name string) (below Nesting, ok bool) {
	below = Nesting{n.Levels + 1, n.Bytes + len(name) + 1}
	return below, below.Levels <= maxNesting && below.Bytes <= maxNestingBytes+1
}

// TreeName returns the name of an entry's directory in tree/.
func TreeName(s *sessioncore.Snapshot, e sessioncore.Entry) string { return s.IDName(e, EntryLink) }

// FindTreeName returns the entry whose directory in tree/ has that name, or sessioncore.ErrNotFound.
func FindTreeName(s *sessioncore.Snapshot, name string) (sessioncore.Entry, error) {
	return s.FindIDName(name, EntryLink)
}

// Beginnings returns the entries at which a stretch begins when one walks down from the roots: those
// that tree/.deep lists, in the order of the walk.
func Beginnings(s *sessioncore.Snapshot) (beginnings []sessioncore.Entry) {
	type place struct {
		entry sessioncore.Entry
		at    Nesting
	}
	tree := s.Tree()
	var stack []place
	push := func(entries []sessioncore.Entry, in Nesting) {
		for _, e := range entries {
			name := TreeName(s, e)
			at, ok := in.Below(name)
			if !ok {
				at, _ = Nesting{}.Below(name)
				beginnings = append(beginnings, e)
			}
			stack = append(stack, place{e, at})
		}
	}
	push(tree.Roots(), Nesting{})
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		push(tree.Children(top.entry), top.at)
	}
	return beginnings
}
