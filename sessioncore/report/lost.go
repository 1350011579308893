package report

import (
	"cmp"
	"context"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/message"
)

// LostTip is the end of a branch that no client shows which resumes the session.
type LostTip struct {
	Name string // in branches/
	Time time.Time
	Said string // the beginning of the user's last words on this branch alone, else of anybody's; "" for none
}

// Lost returns the tips that branches.tsv calls lost and on whose branch something was said that is
// on no other, newest first, at most a given number. Entries that several lost branches share belong
// to the newest one.
func Lost(ctx context.Context, s *sessioncore.Snapshot, most int) (tips []LostTip, err error) {
	where, err := standingIn(ctx, s)
	if err != nil {
		return nil, err
	}
	shown := make([]bool, s.Len()) // on a branch before
	alone := func(e sessioncore.Entry) (part []sessioncore.Entry) {
		for ; e != sessioncore.NoEntry && !shown[e]; e = s.Parent(e) {
			shown[e] = true
			part = append(part, e)
		}
		return part
	}
	var lost []sessioncore.Entry
	for _, e := range append(Tips(s), where.leaf, where.resumed) {
		if e != sessioncore.NoEntry && where.of(e) == branchLost {
			lost = append(lost, e)
		} else {
			alone(e)
		}
	}
	for _, e := range lost {
		if len(tips) == most {
			break
		}
		said, isLost, err := saidAlone(ctx, s, alone(e))
		if err != nil {
			return nil, err
		}
		if isLost {
			tips = append(tips, LostTip{s.Name(e, currentBranch), s.Time(e), said})
		}
	}
	return tips, nil
}

// saidAlone returns the beginning of the user's last message in a part of a branch, which begins at
// its end, or of the last message if the user said nothing there. anything reports whether the part has words of anybody: notes of a client, and an answer
// that was given up before its first word, have none.
func saidAlone(ctx context.Context, s *sessioncore.Snapshot, part []sessioncore.Entry,
) (said string, anything bool, err error) {
	for _, e := range part {
		role := s.Role(e)
		isWanted := role == sessioncore.RoleUser || !anything && role != sessioncore.RoleSystem
		if s.Kind(e) != sessioncore.TypeMessage || !isWanted {
			continue
		}
		if r, _ := s.EntryRange(e); r.Size > maxSaidEntry {
			anything = true
			continue
		}
		text, err := s.EntryText(e)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return "", false, err
		}
		m := message.Read(s.Message(e, text))
		anything = anything || len(m[message.Content]) > len(`""`) || m[message.Command] != nil || m[message.Code] != nil
		words := firstSaid(m[message.Content])
		if role == sessioncore.RoleUser {
			return words, anything, nil
		}
		said = cmp.Or(said, words)
	}
	return said, anything, nil
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
