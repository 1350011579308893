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
	paths := []string{file.Path()}
	current := file
	var later *fileMove
	for len(all) < maxEarlier {
		step, move, err := t.stepBack(ctx, current, hits, later)
		if err != nil {
			return nil, err
		}
		if step == nil {
			break
		}
		path := step.Touched.Path()
		isCircle := slices.Contains(paths, path)
		if isCircle {
			break
		}
		paths = append(paths, path)
		all = append(all, *step)
		if len(step.Hits) > 0 {
			named = len(all)
		}
		current = step.Touched
		hits = step.Hits
		later = move
	}
	return all[:named], nil
}

// stepBack returns the path of the file before the last move that was made before another, and that move; nil
// if there is none. hits are the calls that name the file. If the first of them wrote all of it, only a path with
// the same text is sought.
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

// before returns the path of the file before its last move that was made before another, and that move; nil if
// there is none. It tries the newest moves, at most maxTried.
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
	slices.SortStableFunc(moves, newerMoveFirst)
	isLater := func(m *fileMove) bool {
		return !m.isBefore(later)
	}
	moves = slices.DeleteFunc(moves, isLater)
	for _, m := range moves[:min(len(moves), maxTried)] {
		found, err := t.choose(ctx, file, m)
		if err != nil || found != nil {
			return found, m, err
		}
	}
	return nil, nil, nil
}

// newerMoveFirst puts the newer one of two moves first, of one entry the later one.
func newerMoveFirst(a, b *fileMove) int {
	if a.by.Path() == b.by.Path() {
		return b.at - a.at
	}
	return b.by.Time.Compare(a.by.Time)
}

// choose returns the earlier path of the file by a move, nil if there is none. A command may be read in two ways:
// then a path that sessions know is chosen. If they know both, the choice is open, and choose returns nil, too.
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

// isMoved reports whether a move may have moved the file from an earlier path p. If the move's target was a
// directory before, as calls that named files in it tell, the move went into that directory.
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

// moves returns the moves by the calls in the entries of hits that succeeded. An entry that is gone meanwhile has
// none.
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

// hitEntry is the entry of a hit, with its session and the session's header.
type hitEntry struct {
	snap   *sessioncore.Snapshot
	header rawjson.Value
	entry  sessioncore.Entry
}

// entryOf returns the entry of a hit. Callers must release its session, unless there is an error. The error wraps
// ErrNotFound if the entry is gone.
func (t *Tracer) entryOf(hit *search.Hit) (found hitEntry, err error) {
	snap, err := t.Acquire(hit)
	if err != nil {
		return hitEntry{}, err
	}
	defer func() {
		if err != nil {
			snap.Release()
		}
	}()
	header, _, err := snap.ReadHeader()
	if err != nil {
		return hitEntry{}, err
	}
	e, err := snap.FindName(hit.Entry)
	if err != nil {
		return hitEntry{}, err
	}
	return hitEntry{snap: snap, header: header, entry: e}, nil
}

// movesIn returns the moves by the calls in the entry of a hit that succeeded, in their order.
func (t *Tracer) movesIn(hit *search.Hit, matcher *search.Moves) (all []*fileMove, err error) {
	found, err := t.entryOf(hit)
	if err != nil {
		return nil, err
	}
	defer found.snap.Release()
	calls, err := succeededShells(found.snap, found.entry)
	if err != nil {
		return nil, err
	}
	for _, shell := range calls {
		start := shell.Start(renames.WorkingDirectory{})
		keepsDirectory := shell.Dir == "" && !shell.IsFresh // of the call before it
		if keepsDirectory {
			start, err = t.directoryBefore(hit.File, found)
			if err != nil {
				return nil, err
			}
		}
		for _, paths := range matcher.Earlier(found.header, shell, start) {
			all = append(all, &fileMove{by: hit, at: len(all), paths: paths})
		}
	}
	return all, nil
}

// succeededShells returns the calls of shells in an entry that have succeeded, as their results say: also
// those that a tool made itself, which come first.
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
	ids, calls := shellCalls(m[message.Content])
	succeeded := map[string]bool{}
	isShell := func(id string) bool {
		_, isKnown := calls[id]
		return isKnown
	}
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

// shellCalls returns the calls of shells with an id in the content of a message, and the ids in their order.
func shellCalls(content rawjson.Value) (ids []string, calls map[string]message.ShellCall) {
	calls = map[string]message.ShellCall{}
	message.EachCall(content, func(call *message.Members) {
		id, hasID := call[message.ID].Text()
		shell, isShell := message.Shell(call)
		if hasID && isShell {
			ids = append(ids, id)
			calls[id] = shell
		}
	})
	return ids, calls
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

// directoryBefore returns the directory in which the shell of an entry of a session's file begins, if a shell may
// keep the directory of the call before it: the session's, or Unknown after a call that may have left that, as an
// agent may have put the shell back. It reads the calls of a session once.
func (t *Tracer) directoryBefore(file string, at hitEntry) (dir renames.WorkingDirectory, err error) {
	left, isKnown := t.left[file]
	if !isKnown {
		left, err = firstLeaving(at.snap, at.header)
		if err != nil {
			return dir, err
		}
		t.left[file] = left
	}
	if left < at.entry {
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
		mayLeave := bytes.Contains(text, []byte("cd")) || bytes.Contains(text, []byte("pushd"))
		if !mayLeave { // as most do not, so that they need not be parsed
			continue
		}
		isElsewhere := false
		content := snap.Message(e, text).Member("content")
		message.EachCall(content, func(call *message.Members) {
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
