package sessioncore

import (
	"cmp"
	"fmt"
	"slices"

	"sessionfs/sessioncore/names"
)

// branchNames are the names in branches/ that are not ids but that an id could equal.
var branchNames = []string{"current"}

// BranchName returns the name in branches/ of the path to an entry: that of the entry's file in entries/ without
// the suffix, with its first byte encoded if branches/ has another use for the name.
func (s *Snapshot) BranchName(e Entry) string {
	name := s.Name(e)
	if slices.Contains(branchNames, name) {
		return names.EscapeFirst(name)
	}
	return name
}

// FindBranchName returns the entry for which BranchName returns name. The error wraps ErrNotFound.
func (s *Snapshot) FindBranchName(name string) (Entry, error) {
	for _, fixed := range branchNames {
		switch name {
		case fixed:
			return NoEntry, fmt.Errorf("%w: %q is no id", ErrNotFound, name)
		case names.EscapeFirst(fixed):
			return s.FindBranch(fixed)
		}
	}
	return s.FindBranch(name)
}

// FindBranch returns the entry whose path has that name in branches/.by-id/, which is the name of its file in
// entries/ without the suffix. Entries without an id are in no path (docs/format.md, Loading). The error wraps
// ErrNotFound.
func (s *Snapshot) FindBranch(name string) (Entry, error) {
	e, err := s.FindName(name)
	if err == nil && s.records[e].id == 0 {
		return NoEntry, fmt.Errorf("%w: %q has no id", ErrNotFound, name)
	}
	return e, err
}

// Tips returns the nodes of the tree that have no children, which are the ends of all branches, newest first. A
// recorded move of the leaf that has no children is not a tip (docs/design.md, leaf).
func (s *Snapshot) Tips() []Entry {
	tree := s.Tree()
	var tips []Entry
	for e := range Entry(len(s.records)) {
		if tree.Has(e) && len(tree.Children(e)) == 0 {
			tips = append(tips, e)
		}
	}
	slices.SortFunc(tips, s.newestFirst)
	return tips
}

// newestFirst compares entries by time, newest first. Of equal times, the later entry in the file is the newer.
func (s *Snapshot) newestFirst(a, b Entry) int {
	return cmp.Or(cmp.Compare(s.records[b].time, s.records[a].time), cmp.Compare(b, a))
}

// node returns the nearest node of the tree on the path to an entry, itself if it is one: a recorded move of the leaf
// is none. It returns NoEntry if there is none.
func (s *Snapshot) node(e Entry) Entry {
	if e == NoEntry {
		return NoEntry
	}
	tree := s.Tree()
	for _, at := range slices.Backward(s.Path(e)) {
		if tree.Has(at) {
			return at
		}
	}
	return NoEntry
}

// pathLengths returns the number of entries in the path to each of the entries ends. The result is indexed by
// entry; it is 0 for entries on none of the paths. What paths share is walked once.
func (s *Snapshot) pathLengths(ends []Entry) []int32 {
	length := make([]int32, len(s.records)) // below 0: on this walk, with index -1 - length
	var walk []Entry
	for _, e := range ends {
		walk = walk[:0]
		for ; e != NoEntry && length[e] == 0; e = s.Parent(e) {
			walk = append(walk, e)
			length[e] = -int32(len(walk))
		}
		n := int32(0)
		if e != NoEntry {
			n = length[e]
		}
		rest := len(walk)
		if n < 0 { // the walk closed a cycle: the path to each entry of it goes around once
			rest = int(-n) - 1
			n = int32(len(walk) - rest)
			for _, e := range walk[rest:] {
				length[e] = n
			}
		}
		for i := rest - 1; i >= 0; i-- {
			n++
			length[walk[i]] = n
		}
	}
	return length
}

// BranchLabel returns the label of the branch that ends at a tip: the tip's own label in effect, otherwise that of
// its nearest labelled ancestor that no other branch goes through, or "".
func (s *Snapshot) BranchLabel(tip Entry) string {
	tree := s.Tree()
	for e := tip; e != NoEntry; e = tree.Parent(e) {
		if len(tree.Children(e)) > 1 {
			break
		}
		if label := s.LabelOf(e); label != "" {
			return label
		}
	}
	return ""
}
