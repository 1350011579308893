package blame

import (
	"bytes"
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/renames"
	"sessionfs/sessioncore/search"
)

// Earlier is a path where a file was before a call moved it.
type Earlier struct {
	// Touched matches the calls that name the path, up to that call.
	Touched *search.Touched
	// Hits are those calls.
	Hits []search.Hit
	// By is the entry of the call.
	By *search.Hit
	// IsWritten says that the call wrote the text of the earlier path, and did not move the file.
	IsWritten bool
}

// Tracer finds the paths where a file was before, by the calls of shells in sessions.
type Tracer struct {
	Search func(context.Context, search.Matcher) (*search.Result, error)
	// SearchIn is Search in the session of a file.
	SearchIn func(ctx context.Context, m search.Matcher, file string) (*search.Result, error)
	// Acquire returns the session of a hit, which is released.
	Acquire func(*search.Hit) (*sessioncore.Snapshot, error)
	// Known are the calls that name the file, the newest first; nil where they are to be searched for.
	Known []search.Hit
	// IsDirectory says that the file is a directory.
	IsDirectory bool
	// Exists reports whether there is a file at a path.
	Exists func(path string) bool

	left map[string]sessioncore.Entry // see firstLeaving; by the sessions' files
}

const (
	// maxEarlier bounds the earlier paths of a file.
	maxEarlier = 16
	// maxTried bounds the moves that are tried for one of them, as each costs a search of all sessions.
	maxTried = 16
)

// fileMove is a move of a shell's call that has succeeded.
type fileMove struct {
	by    *search.Hit
	at    int // among the moves of its entry
	paths []search.EarlierPath
}

// isBefore reports whether a move was made before another, which may be nil for one that is still to come.
func (m *fileMove) isBefore(other *fileMove) bool {
	switch {
	case other == nil:
		return true
	case m.by.Path() == other.by.Path():
		return m.at < other.at
	}
	return m.by.Time.Before(other.by.Time)
}

// Earlier returns the paths where the file was before, the last one first, up to the first one that calls
// name. It follows moves back from path to path: if a command moved a.go to b.go, and a later one b.go to
// c.go, it returns b.go and a.go for c.go. It ends where a file was moved in a circle, or where no call tells
// the path before. If the first call wrote all of a file, it was moved from nowhere, and no session is
// searched for a move.
func (t *Tracer) Earlier(ctx context.Context, file *search.Touched) ([]Earlier, error) {
	t.left = map[string]sessioncore.Entry{}
	hits := t.Known
	if hits == nil {
		searched, err := t.hits(ctx, file)
		if err != nil {
			return nil, err
		}
		hits = searched
	}
	var all []Earlier
	named := 0 // the length of all up to the last path that calls name
	seen := []string{file.Path()}
	at := file
	var later *fileMove
	for len(all) < maxEarlier {
		step, move, err := t.stepBack(ctx, at, hits, later)
		if err != nil {
			return nil, err
		}
		if step == nil || slices.Contains(seen, step.Touched.Path()) {
			break
		}
		seen = append(seen, step.Touched.Path())
		all = append(all, *step)
		if len(step.Hits) > 0 {
			named = len(all)
		}
		at = step.Touched
		hits = step.Hits
		later = move
	}
	return all[:named], nil
}

// stepBack returns the path of the file before the last move that was made before another, and that move; nil
// if there is none. hits are the calls that name the file.
func (t *Tracer) stepBack(
	ctx context.Context, file *search.Touched, hits []search.Hit, later *fileMove,
) (*Earlier, *fileMove, error) {
	write, err := t.firstWrite(ctx, hits, file)
	if err != nil {
		return nil, nil, err
	}
	if write != nil {
		return t.writtenFrom(ctx, file, write, later)
	}
	return t.before(ctx, file, later)
}

// before returns the path of the file before its last move that was made before another, and that move.
func (t *Tracer) before(ctx context.Context, file *search.Touched, later *fileMove) (*Earlier, *fileMove, error) {
	matcher := file.Moves()
	if matcher == nil {
		return nil, nil, nil
	}
	result, err := t.Search(ctx, matcher)
	if err != nil {
		return nil, nil, err
	}
	moves, err := t.moves(ctx, result.Hits, matcher)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(moves, func(a, b *fileMove) int {
		if a.by.Path() == b.by.Path() {
			return b.at - a.at
		}
		return b.by.Time.Compare(a.by.Time)
	})
	isLater := func(m *fileMove) bool { return !m.isBefore(later) }
	moves = slices.DeleteFunc(moves, isLater)
	for _, m := range moves[:min(len(moves), maxTried)] {
		found, err := t.choose(ctx, file, m)
		if err != nil || found != nil {
			return found, m, err
		}
	}
	return nil, nil, nil
}

// choose returns the earlier path by a move, nil if there is none. A command may be read in two ways. If
// sessions know both paths, the choice is open, and choose returns nil, too.
func (t *Tracer) choose(ctx context.Context, file *search.Touched, m *fileMove) (chosen *Earlier, err error) {
	for _, p := range m.paths {
		isMoved, err := t.isMoved(ctx, file, m, p)
		if err != nil {
			return nil, err
		}
		if !isMoved {
			continue
		}
		touched, err := search.NewTouched(p.Path)
		if err != nil {
			continue
		}
		found := &Earlier{Touched: touched.Until(m.by.Time), By: m.by}
		found.Hits, err = t.hits(ctx, found.Touched)
		if err != nil {
			return nil, err
		}
		isKnown := len(found.Hits) > 0
		switch {
		case chosen == nil:
			chosen = found
		case isKnown && len(chosen.Hits) > 0:
			return nil, nil
		case isKnown:
			chosen = found
		}
	}
	return chosen, nil
}

// isMoved reports whether a move may have moved the file. If its target was a directory before, the
// move went into that directory.
func (t *Tracer) isMoved(ctx context.Context, file *search.Touched, m *fileMove, p search.EarlierPath) (bool, error) {
	isFileItself := p.Above == file.Path() && !t.IsDirectory
	if p.Above == "" || isFileItself {
		return true, nil
	}
	above, err := search.NewTouched(p.Above)
	if err != nil {
		return false, nil // no call can name such a path
	}
	beforeMove := m.by.Time.Add(-time.Nanosecond)
	named, err := t.hits(ctx, above.Until(beforeMove))
	wasDirectory := len(named) > 0
	return !wasDirectory, err
}

// hits returns the calls that name a file.
func (t *Tracer) hits(ctx context.Context, file *search.Touched) ([]search.Hit, error) {
	result, err := t.Search(ctx, file)
	if err != nil {
		return nil, err
	}
	return result.Hits, nil
}

// moves returns the moves by the calls in entries that succeeded.
func (t *Tracer) moves(ctx context.Context, hits []search.Hit, matcher *search.Moves) (all []*fileMove, err error) {
	for i := range hits {
		found, err := t.movesIn(&hits[i], matcher)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil && !errors.Is(err, sessioncore.ErrNotFound) {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// entryOf returns the entry of a hit, with its session, which callers must release, and that one's header.
func (t *Tracer) entryOf(hit *search.Hit) (*sessioncore.Snapshot, rawjson.Value, sessioncore.Entry, error) {
	snap, err := t.Acquire(hit)
	if err != nil {
		return nil, nil, 0, err
	}
	header, _, err := snap.ReadHeader()
	if err != nil {
		snap.Release()
		return nil, nil, 0, err
	}
	e, err := snap.FindName(hit.Entry)
	if err != nil {
		snap.Release()
		return nil, nil, 0, err
	}
	return snap, header, e, nil
}

// movesIn returns the moves in an entry.
func (t *Tracer) movesIn(hit *search.Hit, matcher *search.Moves) (all []*fileMove, err error) {
	snap, header, e, err := t.entryOf(hit)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	calls, err := succeededShells(snap, e)
	if err != nil {
		return nil, err
	}
	for _, shell := range calls {
		start := shell.Start(renames.WorkingDirectory{})
		if shell.Dir == "" && !shell.IsFresh {
			start, err = t.directoryBefore(hit.File, snap, header, e)
			if err != nil {
				return nil, err
			}
		}
		for _, paths := range matcher.Earlier(header, shell, start) {
			all = append(all, &fileMove{by: hit, at: len(all), paths: paths})
		}
	}
	return all, nil
}

// succeededShells returns the calls of shells in an entry that have succeeded, as their results say: also
// those that a tool made itself.
func succeededShells(snap *sessioncore.Snapshot, e sessioncore.Entry) (list []message.ShellCall, err error) {
	text, err := snap.ShownText(e)
	if err != nil {
		return nil, err
	}
	m := message.Read(snap.Message(e, text))
	message.EachNested(&m, func(call *message.Members) {
		shell, isShell := message.Shell(call)
		if isShell && !call[message.IsError].Truthy() {
			list = append(list, shell)
		}
	})
	var ids []string
	calls := map[string]message.ShellCall{}
	message.EachCall(m[message.Content], func(call *message.Members) {
		id, hasID := call[message.ID].Text()
		shell, isShell := message.Shell(call)
		if hasID && isShell {
			ids = append(ids, id)
			calls[id] = shell
		}
	})
	succeeded := map[string]bool{}
	isShell := func(id string) bool { return calls[id].Command != "" }
	err = callIDs{}.eachResult(snap, e, isShell, len(calls), func(id string, m *message.Members) {
		succeeded[id] = !isFailed(m) && !saysFailed(m[message.Content])
	})
	for _, id := range ids {
		if succeeded[id] {
			list = append(list, calls[id])
		}
	}
	return list, err
}

// failure matches a sign in the result of a command that has failed, for agents that do not say so: an exit
// code, or a message of mv or git.
var failure = regexp.MustCompile(`(?im)\bexit(ed)?( with)?( exit)? code:? *-?[1-9]|^(/\S*/)?mv: |^fatal: `)

// saysFailed reports whether the text of a result says that a command failed.
func saysFailed(content rawjson.Value) bool {
	if content.IsString() {
		return failure.MatchString(textOf(content))
	}
	for block := range content.EachElement {
		b := message.Read(block)
		if failure.MatchString(textOf(b[message.Text])) {
			return true
		}
	}
	return false
}

// directoryBefore returns the directory in which the shell of an entry begins, if a shell may keep the
// directory of the call before it: the session's, or Unknown after a call that may have left that, as an
// agent may have put the shell back. It reads the calls of a session once.
func (t *Tracer) directoryBefore(
	file string, snap *sessioncore.Snapshot, header rawjson.Value, before sessioncore.Entry,
) (dir renames.WorkingDirectory, err error) {
	left, isKnown := t.left[file]
	if !isKnown {
		left, err = firstLeaving(snap, header)
		if err != nil {
			return dir, err
		}
		t.left[file] = left
	}
	if left < before {
		return renames.Unknown, nil
	}
	return renames.WorkingDirectory{}, nil
}

// firstLeaving returns the first entry with a call of a shell that may end in another directory than the
// session's, the number of entries for none.
func firstLeaving(snap *sessioncore.Snapshot, header rawjson.Value) (sessioncore.Entry, error) {
	text, _ := header.Member("cwd").Text()
	cwd, _, _ := names.AbsPath(text)
	start := renames.WorkingDirectory{}
	home := start.In(path.Clean(cwd))
	reader := sessioncore.NewEntryReader(snap)
	for e := range sessioncore.Entry(snap.Len()) {
		if snap.Role(e) != sessioncore.RoleAssistant {
			continue
		}
		text, err := reader.Read(e)
		if err != nil {
			return 0, err
		}
		if !bytes.Contains(text, []byte("cd")) && !bytes.Contains(text, []byte("pushd")) {
			continue
		}
		isElsewhere := false
		message.EachCall(snap.Message(e, text).Member("content"), func(call *message.Members) {
			shell, isShell := message.Shell(call)
			if !isShell || shell.IsFresh || shell.Dir != "" {
				return
			}
			_, end := renames.Find(shell.Command, start)
			if end != start && end != home {
				isElsewhere = true
			}
		})
		if isElsewhere {
			return e, nil
		}
	}
	return sessioncore.Entry(snap.Len()), nil
}
