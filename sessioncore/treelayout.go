package sessioncore

// The directories of tree/ nest as the entries do, but a chain of thousands of entries is longer than
// a path may be. So the nesting is literal for a stretch, and goes on in tree/.deep/ (docs/design.md,
// tree/).

const (
	// maxNesting is how many levels a stretch has.
	maxNesting = 64
	// maxNestingBytes is how long the path of a stretch may be in bytes, separators counted.
	maxNestingBytes = 2000
)

// treeNames are the names in a directory of tree/ that are no ids.
var treeNames = []string{"entry.json"}

// Nesting is a place in a stretch: how many levels below its beginning, and the bytes of the path.
type Nesting struct{ Levels, Bytes int }

// Begin is the place of a stretch's first directory.
func Begin(name string) Nesting { return Nesting{1, len(name)} }

// Below is the place of a directory of that name in the one at n; ok is false where a stretch ends and
// the name is a link to another's beginning.
func (n Nesting) Below(name string) (below Nesting, ok bool) {
	below = Nesting{n.Levels + 1, n.Bytes + 1 + len(name)}
	return below, below.Levels <= maxNesting && below.Bytes <= maxNestingBytes
}

// TreeName returns the name of an entry's directory in tree/.
func (s *Snapshot) TreeName(e Entry) string {
	return fileNameAmong(s.idText(s.records[e].id), treeNames)
}

// FindTreeName returns the entry whose directory in tree/ has that name, or ErrNotFound.
func (s *Snapshot) FindTreeName(name string) (Entry, error) {
	if e := s.newest(s.findID(name, treeNames)); e != NoEntry {
		return e, nil
	}
	return NoEntry, ErrNotFound
}

// Beginnings returns the entries at which a stretch begins when one walks down from the roots: those
// that tree/.deep lists, in the order of the walk.
func (s *Snapshot) Beginnings() []Entry {
	t := s.Tree()
	s.deepOnce.Do(func() {
		type place struct {
			entry Entry
			at    Nesting
		}
		var stack []place
		for _, e := range t.roots {
			stack = append(stack, place{e, Begin(s.TreeName(e))})
		}
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, kid := range t.Children(top.entry) {
				name := s.TreeName(kid)
				at, ok := top.at.Below(name)
				if !ok {
					at = Begin(name)
					t.beginnings = append(t.beginnings, kid)
				}
				stack = append(stack, place{kid, at})
			}
		}
	})
	return t.beginnings
}
