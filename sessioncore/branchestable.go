package sessioncore

import (
	"context"
	"slices"
	"strconv"
	"time"

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

// BranchesDocument returns branches.tsv: a header line, and a row for each tip, newest first (docs/design.md,
// branches/). The leaf has a row too if it is not a tip. The columns are the entry's name in branches/, the number of
// entries in its path, its time (ISO 8601, UTC, milliseconds), the label of its branch escaped as in the file labels
// ("-" for none), whether it is the current branch, and the beginning of what the user said last on it ("-" for
// nothing).
//
// The row of the leaf says yes. If the leaf is before the first entry, no row does.
func (s *Snapshot) BranchesDocument(ctx context.Context) (*document.Document, error) {
	leaf, err := s.Leaf()
	if err != nil {
		return nil, err
	}
	current, resumed := s.node(leaf), s.node(s.newest(s.leafID))
	rows := s.Tips()
	if current != NoEntry && !slices.Contains(rows, current) {
		rows = append(rows, current)
		slices.SortFunc(rows, s.newestFirst)
	}
	archived, err := s.archived(ctx)
	if err != nil {
		return nil, err
	}
	length, said := s.pathLengths(rows), s.lastSaid(rows)
	texts := map[Entry]string{}
	out := []byte("id\tentries\ttime\tlabel\tcurrent\tsaid\n")
	for i, e := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(append(out, s.BranchName(e)...), '\t')
		out = append(strconv.AppendInt(out, int64(length[e]), 10), '\t')
		out = append(time.UnixMilli(s.records[e].time).UTC().AppendFormat(out, rawjson.TimestampLayout), '\t')
		out = append(appendField(out, s.BranchLabel(e)), '\t')
		switch e {
		case current:
			out = append(out, branchCurrent...)
		case resumed:
			out = append(out, branchElsewhere...)
		default:
			if archived.has(s, e) {
				out = append(out, branchArchived...)
			} else {
				out = append(out, branchLost...)
			}
		}
		text, ok := texts[said[i]]
		if !ok {
			if text, err = s.saidIn(said[i]); err != nil {
				return nil, err
			}
			texts[said[i]] = text
		}
		out = append(appendField(append(out, '\t'), text), '\n')
	}
	return document.OfText(s, out), nil
}

// archive has the entries that are archived, with all below them, and what is known of others.
type archive map[Entry]bool

// archived returns what the archive entries say: of those for one target the last counts.
func (s *Snapshot) archived(ctx context.Context) (archive, error) {
	var a archive
	for e := range Entry(len(s.records)) {
		if s.records[e].kind != TypeArchive {
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
		if target := s.newest(s.symbols.find(id)); ok && target != NoEntry {
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
func (a archive) has(s *Snapshot, e Entry) bool {
	if len(a) == 0 {
		return false
	}
	var walk []Entry
	found := false
	for tree := s.Tree(); e != NoEntry; e = tree.Parent(e) {
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

// appendField appends a text as a field of branches.tsv.
func appendField(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, '-')
	}
	return names.AppendLabelField(dst, text)
}

// lastSaid returns, for each of the entries ends, the last message of the user in its path, or NoEntry. What paths
// share is walked once.
func (s *Snapshot) lastSaid(ends []Entry) []Entry {
	known := map[Entry]Entry{NoEntry: NoEntry}
	said := make([]Entry, len(ends))
	for i, e := range ends {
		var walk []Entry
		found, ok := NoEntry, false
		for ; !ok; e = s.Parent(e) {
			if found, ok = known[e]; ok {
				break
			}
			walk = append(walk, e)
			known[e] = NoEntry // where the walk closes a cycle
			if rec := &s.records[e]; rec.kind == TypeMessage && rec.role == RoleUser {
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
func (s *Snapshot) saidIn(e Entry) (string, error) {
	if e == NoEntry || s.records[e].size > maxSaidEntry {
		return "", nil
	}
	v, err := s.EntryText(e)
	if err != nil {
		return "", err
	}
	content := v.Member("message").Member("content")
	text, ok := content.Text()
	if ok {
		return names.FirstWords(text, maxSaid), nil
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		if block.Member("type").Is("text") {
			text, _ = block.Member("text").Text()
			text = names.FirstWords(text, maxSaid)
		}
		return text == ""
	})
	return text, nil
}
