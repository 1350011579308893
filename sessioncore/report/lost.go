package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

const (
	// maxRows bounds lost.tsv.
	maxRows = 10_000
	// maxTips bounds the tips that are kept of sessions, in bytes.
	maxTips = 8 << 20
	// tipSize is the memory of a tip with its text, and tipsSize the memory of a session without any.
	tipSize  = 400
	tipsSize = 200
	// lostBatch is how many sessions are read before they are kept.
	lostBatch = 64
)

// Lost finds, in all sessions, the ends of branches that no client shows when it resumes the
// session (docs/design.md section 5). It is safe for concurrent use.
type Lost struct{ cache[[]lostTip, []lostTip] }

// NewLost returns the Lost of a store's sessions.
func NewLost(store *sessioncore.Store) *Lost {
	size := func(tips []lostTip) int {
		return tipsSize + len(tips)*tipSize
	}
	return &Lost{cache[[]lostTip, []lostTip]{
		store:  store,
		read:   lostIn,
		sizeOf: size,
		most:   maxTips,
		batch:  lostBatch,
		known:  map[string]cached[[]lostTip]{},
	}}
}

// lostRow is a line of lost.tsv.
type lostRow struct {
	session *listing.Info
	lostTip
}

// Table returns lost.tsv for these sessions. It leaves out sessions that cannot be read. The memory of
// the call is counted in hold. When ctx is done, the sessions that were read stay known.
func (l *Lost) Table(ctx context.Context, sessions []*listing.Info, hold *budget.Hold) ([]byte, error) {
	defer hold.Close()
	var all []lostRow
	more := false
	always := func(*listing.Info, []lostTip) bool { return true }
	asRead := func(_ *listing.Info, tips *[]lostTip) []lostTip {
		return *tips
	}
	addTips := func(info *listing.Info, tips []lostTip) error {
		for _, t := range tips {
			all = append(all, lostRow{info, t})
		}
		if len(all) > 2*maxRows {
			all = newestRows(all)
			more = true
		}
		return hold.Resize(int64(cap(all)) * tipSize)
	}
	err := l.each(ctx, sessions, always, asRead, addTips)
	if err != nil {
		return nil, err
	}
	if len(all) > maxRows {
		more = true
	}
	return lostTable(newestRows(all), more), nil
}

// newestRows sorts rows, the newest first, and returns the first maxRows of them.
func newestRows(rows []lostRow) []lostRow {
	slices.SortFunc(rows, func(a, b lostRow) int {
		bySession := cmp.Compare(a.session.Name(), b.session.Name())
		return cmp.Or(b.time.Compare(a.time), bySession, cmp.Compare(a.name, b.name))
	})
	return rows[:min(len(rows), maxRows)]
}

// lostTable returns lost.tsv with rows, and a last line if there are more.
func lostTable(rows []lostRow, more bool) []byte {
	out := []byte("time\tsession\tid\tpath\tsaid\n")
	for _, r := range rows {
		at := r.time.UTC().Format(rawjson.TimestampLayout)
		path := r.session.Path() + "/branches/" + r.name
		session := names.OrDash(r.session.DisplayName())
		out = names.AppendLabelFields(out, at, session, r.name, path, names.OrDash(r.said))
	}
	if more {
		why := fmt.Sprintf("there are more than these %d, which are the newest", maxRows)
		out = names.AppendLabelFields(out, "-", "-", "-", "-", why)
	}
	return out
}

// lostTip is the end of a branch that no client shows which resumes the session.
type lostTip struct {
	name string // in branches/
	time time.Time
	said string // the beginning of the user's last words on this branch alone, else of anybody's; "" for none
}

// lostIn returns the tips that branches.tsv calls lost and that have words on their branch that no other
// has, newest first, at most maxRows. Entries that several lost branches share belong to the newest
// one.
func lostIn(ctx context.Context, s *sessioncore.Snapshot) (tips []lostTip, err error) {
	where, err := standingIn(ctx, s)
	if err != nil {
		return nil, err
	}
	shown := make([]bool, s.Len()) // by entry: on a branch that alone was called for
	// alone returns the entries from e up that no branch before has.
	alone := func(e sessioncore.Entry) (part []sessioncore.Entry) {
		for ; e != sessioncore.NoEntry && !shown[e]; e = s.Parent(e) {
			shown[e] = true
			part = append(part, e)
		}
		return part
	}
	var lost []sessioncore.Entry
	for _, e := range append(Tips(s), where.leaf, where.resumed) { // leaf and resumed need not be tips
		if e != sessioncore.NoEntry && where.of(e) == branchLost {
			lost = append(lost, e)
		} else {
			alone(e)
		}
	}
	for _, e := range lost {
		if len(tips) == maxRows {
			break
		}
		said, isLost, err := saidAlone(ctx, s, alone(e))
		if err != nil {
			return nil, err
		}
		if isLost {
			tips = append(tips, lostTip{s.Name(e, currentBranch), s.Time(e), said})
		}
	}
	return tips, nil
}

// LostBranches returns the names in branches/ of the branches that lost.tsv has of a session, newest
// first.
func LostBranches(ctx context.Context, s *sessioncore.Snapshot) (names []string, err error) {
	tips, err := lostIn(ctx, s)
	for _, t := range tips {
		names = append(names, t.name)
	}
	return names, err
}

// saidAlone returns the beginning of the person's last request in a part of a branch, which begins at
// its end, else of the last message. anything is false if nobody says anything there: notes of a
// client, and an answer that was given up before its first word, have no words.
func saidAlone(ctx context.Context, s *sessioncore.Snapshot, part []sessioncore.Entry,
) (said string, anything bool, err error) {
	for _, e := range part {
		isRequest := s.IsRequest(e)
		isMessage := s.Kind(e) == sessioncore.TypeMessage && s.Role(e) != sessioncore.RoleSystem
		isLastMessage := isMessage && !anything // the part begins at its end
		if !isRequest && !isLastMessage {
			continue
		}
		text, err := shortText(ctx, s, s.EntryText, e)
		if err != nil {
			return "", false, err
		}
		if isRequest {
			words := s.Request(e, text)
			said, _ = firstSaid(words, beginning)
			return said, anything || text == nil || len(words) > len(`""`), nil
		}
		if text == nil {
			anything = true
			continue
		}
		m := message.Read(s.Message(e, text))
		hasText := len(m[message.Content]) > len(`""`)
		anything = anything || hasText || m[message.Command] != nil || m[message.Code] != nil
		words, _ := firstSaid(m[message.Content], beginning)
		if said == "" {
			said = words
		}
	}
	return said, anything, nil
}
