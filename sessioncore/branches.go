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
	slices.SortFunc(tips, s.NewestFirst)
	return tips
}

// NewestFirst compares entries by time, newest first. Of equal times, the later entry in the file is the newer.
func (s *Snapshot) NewestFirst(a, b Entry) int {
	return cmp.Or(cmp.Compare(s.records[b].time, s.records[a].time), cmp.Compare(b, a))
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
