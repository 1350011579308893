package sessioncore

import (
	"cmp"
	"slices"
)

// Tree is the tree of a snapshot's entries, with one node per id: its last entry (docs/format.md,
// Loading). Moves of the leaf without children are no nodes (docs/design.md, leaf). A Tree is
// immutable; callers must not modify its slices.
type Tree struct {
	roots    []Entry
	parent   []Entry // NoEntry for roots; notInTree for entries that are not nodes
	first    []int32 // children of e are kids[first[e]:first[e+1]]
	kids     []Entry
	problems []Problem
}

// notInTree is the parent of entries that are not nodes.
const notInTree Entry = -2

// Roots returns the nodes without a parent, in file order.
func (t *Tree) Roots() []Entry { return t.roots }

// Children returns a node's children in order of time.
func (t *Tree) Children(e Entry) []Entry { return t.kids[t.first[e]:t.first[e+1]] }

// Parent returns the parent of node e, NoEntry for a root.
func (t *Tree) Parent(e Entry) Entry { return max(t.parent[e], NoEntry) }

// Has reports whether e is a node of the tree.
func (t *Tree) Has(e Entry) bool { return t.parent[e] != notInTree }

// IsTip reports whether e is a node without children, the end of a branch.
func (t *Tree) IsTip(e Entry) bool { return t.Has(e) && len(t.Children(e)) == 0 }

// Tree returns the snapshot's tree. It is built on first use.
func (s *Snapshot) Tree() *Tree {
	s.treeOnce.Do(func() {
		s.tree = newTree(s)
	})
	return s.tree
}

// newTree returns the tree of a snapshot's entries. Each step needs the parents that those before it
// have left.
func newTree(s *Snapshot) *Tree {
	n := len(s.records)
	t := &Tree{
		parent: make([]Entry, n),
		first:  make([]int32, n+1),
	}
	t.joinParents(s)
	t.cutCycles(s)
	t.hideLeafMoves(s)
	t.gatherChildren(s)
	return t
}

// joinParents sets each node's parent and records the entries that cannot be linked.
func (t *Tree) joinParents(s *Snapshot) {
	newest := make([]int32, len(s.symbols.symbols)) // by id: 1 + its last entry, 0 for none
	for e := range s.records {
		newest[s.records[e].id] = int32(e) + 1
	}
	newest[0] = 0 // the entries without an id, which are nobody's parent
	for e := range s.records {
		rec := &s.records[e]
		parent := Entry(newest[rec.parent]) - 1
		switch {
		case rec.id == 0 || newest[rec.id] != int32(e)+1:
			t.parent[e] = notInTree
		case rec.parent == 0:
			t.parent[e] = NoEntry
		case rec.parent == rec.id:
			t.parent[e] = NoEntry
			t.problem(s, Entry(e), ProblemSelf, "the entry names itself as the one before it; it is shown as the start of a branch")
		case parent == NoEntry:
			t.parent[e] = NoEntry
			t.problem(s, Entry(e), ProblemOrphan, "the entry before it is missing from the file; it is shown as the start of a branch")
		default:
			t.parent[e] = parent
		}
	}
}

// problem records a problem of an entry.
func (t *Tree) problem(s *Snapshot, e Entry, what ProblemKind, why string) {
	t.problems = append(t.problems, s.ProblemOf(e, what, why))
}

// cutCycles makes the first entry of each cycle of parents a root (docs/design.md, tree/). It walks
// from each entry to its root or to an entry of an earlier walk; a walk that meets itself is a cycle.
func (t *Tree) cutCycles(s *Snapshot) {
	const onWalk, finished = 1, 2
	state := make([]uint8, len(s.records))
	var walk []Entry
	for start := range s.records {
		walk = walk[:0]
		e := Entry(start)
		for e >= 0 && state[e] == 0 {
			state[e] = onWalk
			walk = append(walk, e)
			e = t.parent[e]
		}
		if e >= 0 && state[e] == onWalk {
			circle := walk[slices.Index(walk, e):]
			first := slices.Min(circle)
			t.parent[first] = NoEntry
			const why = "the entries before it lead in a circle; it is shown as the start of a branch"
			t.problem(s, first, ProblemCycle, why)
		}
		for _, e := range walk {
			state[e] = finished
		}
	}
}

// hideLeafMoves removes moves of the leaf without children from the tree, and then moves whose only
// children they were.
func (t *Tree) hideLeafMoves(s *Snapshot) {
	count := make([]int32, len(s.records))
	var moves []Entry
	for e, p := range t.parent {
		if p >= 0 {
			count[p]++
		}
		if p != notInTree && s.records[e].flags&recLeafMove != 0 {
			moves = append(moves, Entry(e))
		}
	}
	for len(moves) > 0 {
		e := moves[len(moves)-1]
		moves = moves[:len(moves)-1]
		if count[e] > 0 || t.parent[e] == notInTree {
			continue
		}
		p := t.parent[e]
		t.parent[e] = notInTree
		if p >= 0 {
			count[p]--
			if count[p] == 0 && s.records[p].flags&recLeafMove != 0 {
				moves = append(moves, p) // a move below a move
			}
		}
	}
}

// gatherChildren fills roots and children from the parents. It counts the children of each node, adds
// the counts up to the places of the first children, and then puts each child into its place.
func (t *Tree) gatherChildren(s *Snapshot) {
	for e, p := range t.parent {
		if p >= 0 {
			t.first[p+1]++
		} else if p == NoEntry {
			t.roots = append(t.roots, Entry(e))
		}
	}
	for e := range s.records {
		t.first[e+1] += t.first[e]
	}
	t.kids = make([]Entry, t.first[len(s.records)])
	next := slices.Clone(t.first[:len(s.records)])
	for e, p := range t.parent {
		if p >= 0 {
			t.kids[next[p]] = Entry(e)
			next[p]++
		}
	}
	for e := range s.records {
		kids := t.Children(Entry(e))
		if len(kids) > 1 {
			s.sortByTime(kids)
		}
	}
}

// sortByTime sorts siblings by timestamp, stable in file order; an unreadable timestamp equals all
// others (docs/format.md, Loading).
func (s *Snapshot) sortByTime(kids []Entry) {
	compare := func(a, b Entry) int {
		ra := &s.records[a]
		rb := &s.records[b]
		if ra.flags&rb.flags&recTimed == 0 {
			return 0
		}
		return cmp.Compare(ra.time, rb.time)
	}
	if !slices.IsSortedFunc(kids, compare) {
		slices.SortStableFunc(kids, compare)
	}
}

// SameText reports whether two entries of two snapshots have the same text, by size and checksum.
// NoEntry is the same as NoEntry alone.
func SameText(first *Snapshot, inFirst Entry, second *Snapshot, inSecond Entry) bool {
	if inFirst == NoEntry || inSecond == NoEntry || first.index == second.index {
		return inFirst == inSecond
	}
	a := &first.records[inFirst]
	b := &second.records[inSecond]
	return a.size == b.size && a.crc == b.crc
}

// EndsBranch reports whether a branch ends in e, which is a tip or the leaf.
func (s *Snapshot) EndsBranch(e Entry) bool {
	leaf, err := s.Leaf()
	if err == nil && leaf == e {
		return true
	}
	return s.Tree().IsTip(e)
}

// BranchBelow returns the end of e's branch of an earlier snapshot: the leaf if below e, else e.
func (s *Snapshot) BranchBelow(e Entry) Entry {
	leaf, err := s.Leaf()
	if err == nil && leaf != NoEntry && slices.Contains(s.Branch(leaf).entries, e) {
		return leaf
	}
	return e
}
