package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sessionfs/sessioncore"
)

// LostTip is the end of a branch that no client shows which resumes the session.
type LostTip struct {
	Name string // in branches/
	Time time.Time
	Said string // the beginning of what the user said last; "" for nothing
}

// Lost returns the tips that branches.tsv calls lost, newest first, at most a given number.
func Lost(ctx context.Context, s *sessioncore.Snapshot, most int) ([]LostTip, error) {
	where, err := standingIn(ctx, s)
	if err != nil {
		return nil, err
	}
	ends := slices.DeleteFunc(Tips(s), func(e sessioncore.Entry) bool { return where.of(e) != branchLost })
	ends = ends[:min(len(ends), most)]
	said, err := saidOn(ctx, s, ends)
	if err != nil {
		return nil, err
	}
	tips := make([]LostTip, len(ends))
	for i, e := range ends {
		tips[i] = LostTip{s.Name(e, currentBranch), s.Time(e), said[i]}
	}
	return tips, nil
}

// standing is what the ends of branches are told apart by.
type standing struct {
	s             *sessioncore.Snapshot
	leaf, resumed sessioncore.Entry // nodes of the tree, or NoEntry
	archived      archive
}

// standingIn returns that of a snapshot, which it confirms.
func standingIn(ctx context.Context, s *sessioncore.Snapshot) (*standing, error) {
	leaf, err := s.Leaf()
	if err = cmp.Or(err, s.Confirm(ctx)); err != nil {
		return nil, err
	}
	archived, err := archivedIn(ctx, s)
	return &standing{s, shownNode(s, leaf), shownNode(s, s.Resumed()), archived}, err
}

// of returns what the column current says of the end of a branch.
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

// archive has the entries that are archived, with all below them, and what is known of others.
type archive map[sessioncore.Entry]bool

// archivedIn returns what the archive entries say: of those for one target the last counts.
func archivedIn(ctx context.Context, s *sessioncore.Snapshot) (archive, error) {
	var a archive
	for e := range sessioncore.Entry(s.Len()) {
		if s.Kind(e) != sessioncore.TypeArchive {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := s.EntryText(e)
		if err != nil {
			return nil, err
		}
		id, ok := text.Member("targetId").Bytes()
		if target, err := s.Find(string(id)); ok && err == nil {
			if a == nil {
				a = archive{}
			}
			if a[target] = string(text.Member("archived")) == "true"; !a[target] {
				delete(a, target)
			}
		}
	}
	return a, nil
}

// has reports whether an entry of the tree or one above it is archived. It remembers the answer for those between.
func (a archive) has(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	if len(a) == 0 {
		return false
	}
	var walk []sessioncore.Entry
	found := false
	for tree := s.Tree(); e != sessioncore.NoEntry; e = tree.Parent(e) {
		known, ok := a[e]
		if found = known; ok {
			break
		}
		walk = append(walk, e)
	}
	for _, e := range walk {
		a[e] = found
	}
	return found
}
