package report

import (
	"context"
	"slices"
	"strconv"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// Values of the column current of branches.tsv.
const (
	branchCurrent   = "yes"
	branchElsewhere = "no"       // the leaf is elsewhere in this mount alone, so that a client still resumes here
	branchLost      = "lost"     // no client that resumes the session shows it
	branchArchived  = "archived" // nor does a client show it in the tree, as somebody archived it
)

// currentBranch is the name in branches/ that is no entry's.
const currentBranch = "current"

// Tips returns the ends of all branches, newest first.
func Tips(s *sessioncore.Snapshot) []sessioncore.Entry {
	var tips []sessioncore.Entry
	for e := range sessioncore.Entry(s.Len()) {
		if s.Tree().IsTip(e) {
			tips = append(tips, e)
		}
	}
	slices.SortFunc(tips, s.CompareNewest)
	return tips
}

// branchLabel returns the label of the branch that ends at a tip: the tip's own label in effect,
// otherwise the label of its nearest labelled ancestor that no other branch goes through, or "".
func branchLabel(s *sessioncore.Snapshot, tip sessioncore.Entry) string {
	if len(s.Labels()) == 0 {
		return ""
	}
	tree := s.Tree()
	for e := tip; e != sessioncore.NoEntry; e = tree.Parent(e) {
		if len(tree.Children(e)) > 1 {
			break
		}
		id, _ := s.ID(e)
		label := s.LabelOf(id)
		if label != "" {
			return label
		}
	}
	return ""
}

// Branches returns branches.tsv: a header line, and a row for each tip and for the leaf, newest
// first (docs/design.md, branches/). If the leaf is before the first entry, it has no row.
func Branches(ctx context.Context, s *sessioncore.Snapshot) (*document.Document, error) {
	where, err := standingIn(ctx, s)
	if err != nil {
		return nil, err
	}
	rows := Tips(s)
	if where.leaf != sessioncore.NoEntry && !slices.Contains(rows, where.leaf) {
		rows = append(rows, where.leaf)
		slices.SortFunc(rows, s.CompareNewest)
	}
	paths := pathsTo(s, rows)
	said := map[sessioncore.Entry]string{sessioncore.NoEntry: ""}
	out := []byte("id\tentries\ttime\tlabel\tcurrent\tsaid\n")
	for _, e := range rows {
		path := paths[e]
		words, isKnown := said[path.said]
		if !isKnown {
			text, err := shortText(ctx, s, s.EntryText, path.said)
			if err != nil {
				return nil, err
			}
			words, _ = firstSaid(s.Request(path.said, text), beginning)
			said[path.said] = words
		}
		out = append(out, s.Name(e, currentBranch)...)
		out = append(out, '\t')
		length := strconv.Itoa(int(path.length))
		at := s.Time(e).UTC().Format(rawjson.TimestampLayout)
		label := names.OrDash(branchLabel(s, e))
		out = names.AppendLabelFields(out, length, at, label, where.of(e), names.OrDash(words))
	}
	return document.OfText(s, out), nil
}

// pathFacts are facts of the path to an entry.
type pathFacts struct {
	length int32             // the number of entries in it
	said   sessioncore.Entry // the person's last request, or NoEntry
}

// add adds an entry to the end of the path.
func (p *pathFacts) add(s *sessioncore.Snapshot, e sessioncore.Entry) {
	p.length++
	if s.IsRequest(e) {
		p.said = e
	}
}

// pathsTo returns the facts of the paths to entries, by entry. A part that paths share is walked
// once.
func pathsTo(s *sessioncore.Snapshot, ends []sessioncore.Entry) []pathFacts {
	facts := make([]pathFacts, s.Len()) // of a length below 0 on this walk, at index -1 - length
	var walk []sessioncore.Entry
	for _, e := range ends {
		walk = walk[:0]
		for ; e != sessioncore.NoEntry && facts[e].length == 0; e = s.Parent(e) {
			walk = append(walk, e)
			facts[e].length = -int32(len(walk))
		}
		at := pathFacts{0, sessioncore.NoEntry}
		if e != sessioncore.NoEntry {
			at = facts[e]
		}
		if at.length < 0 { // the walk closed a circle: the path to each entry of it goes around once
			circle := walk[-1-at.length:]
			at.said = sessioncore.NoEntry
			for range 2 {
				for _, e := range slices.Backward(circle) {
					at.add(s, e)
					at.length = int32(len(circle))
					facts[e] = at
				}
			}
			walk = walk[:len(walk)-len(circle)]
		}
		for _, e := range slices.Backward(walk) {
			at.add(s, e)
			facts[e] = at
		}
	}
	return facts
}
