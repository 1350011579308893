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
// otherwise the label of its nearest labelled ancestor that no other branch goes through, or "" for
// none.
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
	said := map[sessioncore.Entry]string{sessioncore.NoEntry: ""} // by request: branches may share their last one
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

// pathsTo returns the facts of the path to each of ends, by entry; entries on no such path have the
// zero pathFacts.
func pathsTo(s *sessioncore.Snapshot, ends []sessioncore.Entry) []pathFacts {
	w := pathWalker{s: s, facts: make([]pathFacts, s.Len())}
	for _, end := range ends {
		w.add(end)
	}
	return w.facts
}

// pathWalker finds the facts of paths. It walks each path up from its end, to the first entry with
// facts, so that a part that paths share is walked once.
type pathWalker struct {
	s *sessioncore.Snapshot
	// facts has the facts of the path to each entry. The length is 0 for an entry without facts, and -n for
	// the nth entry of walk, so that a circle of parents is found.
	facts []pathFacts
	walk  []sessioncore.Entry // entries without facts, each before its parent
}

// add finds the facts of the path to an entry, and to all entries on it.
func (w *pathWalker) add(end sessioncore.Entry) {
	top := w.climb(end)
	path := pathFacts{said: sessioncore.NoEntry}
	if top != sessioncore.NoEntry {
		path = w.facts[top]
	}
	if path.length < 0 {
		path = w.closeCircle(int(-path.length) - 1)
	}
	for _, e := range slices.Backward(w.walk) {
		path.add(w.s, e)
		w.facts[e] = path
	}
}

// climb makes walk the entries from e up to the first one that has facts or is in walk already. It
// returns that entry, or NoEntry above a root.
func (w *pathWalker) climb(e sessioncore.Entry) sessioncore.Entry {
	w.walk = w.walk[:0]
	for e != sessioncore.NoEntry && w.facts[e].length == 0 {
		w.walk = append(w.walk, e)
		w.facts[e].length = -int32(len(w.walk))
		e = w.s.Parent(e)
	}
	return e
}

// closeCircle sets the facts of the entries of walk from index first on, which are a circle: the
// path to each of them goes around once. It takes them off walk, and returns the facts of the entry
// at first, the parent of the last entry that stays.
func (w *pathWalker) closeCircle(first int) pathFacts {
	circle := w.walk[first:]
	w.walk = w.walk[:first]
	path := pathFacts{said: sessioncore.NoEntry}
	for range 2 { // the first round finds the last request, which the second one needs from its beginning
		for _, e := range slices.Backward(circle) {
			path.add(w.s, e)
			path.length = int32(len(circle))
			w.facts[e] = path
		}
	}
	return path
}
