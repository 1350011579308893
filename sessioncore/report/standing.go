package report

import (
	"context"
	"slices"

	"sessionfs/sessioncore"
)

// standing tells the ends of branches apart.
type standing struct {
	s             *sessioncore.Snapshot
	leaf, resumed sessioncore.Entry // nodes of the tree, or NoEntry
	archived      archive
}

// standingIn returns the standing of a snapshot, which it confirms.
func standingIn(ctx context.Context, s *sessioncore.Snapshot) (*standing, error) {
	leaf, err := s.Leaf()
	if err == nil {
		err = s.ConfirmAll(ctx)
	}
	if err != nil {
		return nil, err
	}
	archived, err := archivedIn(ctx, s)
	return &standing{
		s:        s,
		leaf:     shownNode(s, leaf),
		resumed:  shownNode(s, s.Resumed()),
		archived: archived,
	}, err
}

// of returns the column current of the end of a branch.
func (w *standing) of(e sessioncore.Entry) string {
	switch {
	case e == w.leaf:
		return branchCurrent
	case e == w.resumed:
		return branchElsewhere
	case w.archived.has(w.s, e):
		return branchArchived
	}
	return branchLost
}

// archive says of entries whether they, or an entry above them, are archived.
type archive map[sessioncore.Entry]bool

// archivedIn reads the archive entries: of those for one target the last counts. It is nil without any.
func archivedIn(ctx context.Context, s *sessioncore.Snapshot) (archive, error) {
	var a archive
	for e := range sessioncore.Entry(s.Len()) {
		if s.Kind(e) != sessioncore.TypeArchive {
			continue
		}
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		text, err := s.EntryText(e)
		if err != nil {
			return nil, err
		}
		id, ok := text.Member("targetId").Bytes()
		target, err := s.Find(string(id))
		if ok && err == nil {
			if a == nil {
				a = archive{}
			}
			isArchived := text.Member("archived").IsTrue()
			if isArchived {
				a[target] = true
			} else {
				delete(a, target) // an entry above it may be archived
			}
		}
	}
	return a, nil
}

// has reports whether an entry of the tree or one above it is archived. It remembers the answer for
// those between.
func (a archive) has(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	if len(a) == 0 {
		return false
	}
	var walk []sessioncore.Entry
	found := false
	for tree := s.Tree(); e != sessioncore.NoEntry; e = tree.Parent(e) {
		known, ok := a[e]
		found = known
		if ok {
			break
		}
		walk = append(walk, e)
	}
	for _, e := range walk {
		a[e] = found
	}
	return found
}

// shownNode returns the nearest node of the tree on the path to an entry, NoEntry if there is none.
// A recorded move of the leaf is no node.
func shownNode(s *sessioncore.Snapshot, e sessioncore.Entry) sessioncore.Entry {
	if e == sessioncore.NoEntry {
		return sessioncore.NoEntry
	}
	tree := s.Tree()
	for _, at := range slices.Backward(s.Path(e)) {
		if tree.Has(at) {
			return at
		}
	}
	return sessioncore.NoEntry
}
