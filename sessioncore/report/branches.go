package report

import (
	"cmp"
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
	slices.SortFunc(tips, newestFirst(s))
	return tips
}

// newestFirst compares entries by time. Of equal times, the later entry in the file is the newer.
func newestFirst(s *sessioncore.Snapshot) func(a, b sessioncore.Entry) int {
	return func(a, b sessioncore.Entry) int { return cmp.Or(s.Time(b).Compare(s.Time(a)), cmp.Compare(b, a)) }
}

// branchLabel returns the label of the branch that ends at a tip: the tip's own label in effect, otherwise that of
// its nearest labelled ancestor that no other branch goes through, or "".
func branchLabel(s *sessioncore.Snapshot, tip sessioncore.Entry) string {
	tree := s.Tree()
	for e := tip; e != sessioncore.NoEntry && len(tree.Children(e)) <= 1 && len(s.Labels()) > 0; e = tree.Parent(e) {
		id, _ := s.ID(e)
		if label := s.LabelOf(id); label != "" {
			return label
		}
	}
	return ""
}

// Branches returns branches.tsv: a header line, and a row for each tip, newest first (docs/design.md,
// branches/). The leaf has a row too if it is not a tip. The columns are the entry's name in branches/, the number of
// entries in its path, its time (ISO 8601, UTC, milliseconds), the label of its branch escaped as in the file labels
// ("-" for none), whether it is the current branch, and the beginning of what the user said last on it ("-" for
// nothing).
//
// The row of the leaf says yes. If the leaf is before the first entry, no row does.
func Branches(ctx context.Context, s *sessioncore.Snapshot) (*document.Document, error) {
	where, err := standingIn(ctx, s)
	if err != nil {
		return nil, err
	}
	rows := Tips(s)
	if where.leaf != sessioncore.NoEntry && !slices.Contains(rows, where.leaf) {
		rows = append(rows, where.leaf)
		slices.SortFunc(rows, newestFirst(s))
	}
	length := pathLengths(s, rows)
	said, err := saidOn(ctx, s, rows)
	if err != nil {
		return nil, err
	}
	out := []byte("id\tentries\ttime\tlabel\tcurrent\tsaid\n")
	for i, e := range rows {
		out = append(append(out, s.Name(e, currentBranch)...), '\t')
		out = append(strconv.AppendInt(out, int64(length[e]), 10), '\t')
		out = append(s.Time(e).UTC().AppendFormat(out, rawjson.TimestampLayout), '\t')
		out = append(appendField(out, branchLabel(s, e)), '\t')
		out = append(append(out, where.of(e)...), '\t')
		out = append(appendField(out, said[i]), '\n')
	}
	return document.OfText(s, out), nil
}

// saidOn returns, for each of the entries ends, the beginning of what the user said last in its path.
func saidOn(ctx context.Context, s *sessioncore.Snapshot, ends []sessioncore.Entry) ([]string, error) {
	texts := map[sessioncore.Entry]string{}
	said := make([]string, len(ends))
	for i, e := range lastSaid(s, ends) {
		text, ok := texts[e]
		if !ok {
			var err error
			if text, err = saidIn(s, e); err != nil || ctx.Err() != nil {
				return nil, cmp.Or(err, ctx.Err())
			}
			texts[e] = text
		}
		said[i] = text
	}
	return said, nil
}

// appendField appends a text as a field of branches.tsv.
func appendField(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, '-')
	}
	return names.AppendLabelField(dst, text)
}

// lastSaid returns, for each of the entries ends, the last message of the user in its path, or sessioncore.NoEntry. What paths
// share is walked once.
func lastSaid(s *sessioncore.Snapshot, ends []sessioncore.Entry) []sessioncore.Entry {
	known := map[sessioncore.Entry]sessioncore.Entry{sessioncore.NoEntry: sessioncore.NoEntry}
	said := make([]sessioncore.Entry, len(ends))
	for i, e := range ends {
		var walk []sessioncore.Entry
		found, ok := sessioncore.NoEntry, false
		for ; !ok; e = s.Parent(e) {
			if found, ok = known[e]; ok {
				break
			}
			walk = append(walk, e)
			known[e] = sessioncore.NoEntry // where the walk closes a cycle
			if s.Kind(e) == sessioncore.TypeMessage && s.Role(e) == sessioncore.RoleUser {
				found, ok = e, true
			}
		}
		for _, e := range walk {
			known[e] = found
		}
		said[i] = found
	}
	return said
}

const (
	// maxSaid is how much is shown of what the user said, in characters.
	maxSaid = 80
	// maxSaidEntry is the size of the longest entry, in bytes, that is read for it.
	maxSaidEntry = 4 << 20
)

// saidIn returns the beginning of a message's text as one line, or "" if it has none.
func saidIn(s *sessioncore.Snapshot, e sessioncore.Entry) (string, error) {
	if e == sessioncore.NoEntry {
		return "", nil
	}
	if r, _ := s.EntryRange(e); r.Size > maxSaidEntry {
		return "", nil
	}
	v, err := s.EntryText(e)
	if err != nil {
		return "", err
	}
	return firstSaid(v.Member("message").Member("content")), nil
}

// shownNode returns the nearest node of the tree on the path to an entry, itself if it is one: a recorded move of the leaf
// is none. It returns sessioncore.NoEntry if there is none.
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

// pathLengths returns the number of entries in the path to each of the entries ends. The result is indexed by
// entry; it is 0 for entries on none of the paths. What paths share is walked once.
func pathLengths(s *sessioncore.Snapshot, ends []sessioncore.Entry) []int32 {
	length := make([]int32, s.Len()) // below 0: on this walk, with index -1 - length
	var walk []sessioncore.Entry
	for _, e := range ends {
		walk = walk[:0]
		for ; e != sessioncore.NoEntry && length[e] == 0; e = s.Parent(e) {
			walk = append(walk, e)
			length[e] = -int32(len(walk))
		}
		n := int32(0)
		if e != sessioncore.NoEntry {
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
