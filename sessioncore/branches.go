package sessioncore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
)

// branchNames are the names in branches/ that are not ids but that an id could equal.
var branchNames = []string{"current"}

// BranchName returns the name in branches/ of the path to an entry: that of the entry's file in entries/ without
// the suffix, with its first byte encoded if branches/ has another use for the name.
func (s *Snapshot) BranchName(e Entry) string {
	name := s.Name(e)
	if slices.Contains(branchNames, name) {
		return escapeFirst(name)
	}
	return name
}

// FindBranchName returns the entry for which BranchName returns name. The error wraps ErrNotFound.
func (s *Snapshot) FindBranchName(name string) (Entry, error) {
	for _, fixed := range branchNames {
		switch name {
		case fixed:
			return NoEntry, fmt.Errorf("%w: %q is no id", ErrNotFound, name)
		case escapeFirst(fixed):
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

// CurrentTip returns the tip of the current branch: the leaf if it is a tip, otherwise the newest of the tips below
// it, which is where the conversation went on last. It returns NoEntry if the leaf is before the first entry.
func (s *Snapshot) CurrentTip() (Entry, error) {
	leaf, err := s.Leaf()
	if err != nil || leaf == NoEntry {
		return NoEntry, err
	}
	tree := s.Tree()
	at := NoEntry
	for _, e := range slices.Backward(s.Path(leaf)) { // the leaf can be the record of a move, which is not a node
		if tree.Has(e) {
			at = e
			break
		}
	}
	tip := NoEntry
	for stack := []Entry{at}; at != NoEntry && len(stack) > 0; {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		kids := tree.Children(e)
		stack = append(stack, kids...)
		if len(kids) == 0 && (tip == NoEntry || s.newestFirst(e, tip) < 0) {
			tip = e
		}
	}
	return tip, nil
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

// BranchesDocument returns branches.tsv: a header line, and a row for each tip, newest first (docs/design.md,
// branches/). The columns are the tip's name in branches/, the number of entries in its path, its time (ISO 8601,
// UTC, milliseconds), the label of its branch escaped as in the file labels ("-" for none), and whether it is the
// current branch ("yes" or "no").
//
// The row of CurrentTip says yes. If the leaf is before the first entry, no row does.
func (s *Snapshot) BranchesDocument(_ context.Context) (*Document, error) {
	current, err := s.CurrentTip()
	if err != nil {
		return nil, err
	}
	tips := s.Tips()
	length := s.pathLengths(tips)
	out := []byte("id\tentries\ttime\tlabel\tcurrent\n")
	for _, e := range tips {
		out = append(append(out, s.BranchName(e)...), '\t')
		out = append(strconv.AppendInt(out, int64(length[e]), 10), '\t')
		out = append(time.UnixMilli(s.records[e].time).UTC().AppendFormat(out, rawjson.TimestampLayout), '\t')
		if label := s.BranchLabel(e); label != "" {
			out = AppendLabelField(out, label)
		} else {
			out = append(out, '-')
		}
		if e == current {
			out = append(out, "\tyes\n"...)
		} else {
			out = append(out, "\tno\n"...)
		}
	}
	return textDocument(s, out), nil
}
