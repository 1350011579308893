package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// model is the knowledge of all sessions, and of the run.
type model struct {
	guard    sync.Mutex // guards those below
	sessions map[string]*expected
	problems []string
	counts   map[string]int
}

// expected is the content that a session must have.
type expected struct {
	lines  map[string][]string // as summaries, by program, in its order
	title  string
	maybes int // writes that a kill interrupted
}

// outcome is how a write ended: how many lines were acknowledged, and whether the others may be there.
type outcome struct {
	acked int
	maybe bool
}

// newModel returns an empty model.
func newModel() *model {
	return &model{sessions: map[string]*expected{}, counts: map[string]int{}}
}

// problem notes a problem, which fails the run at its end.
func (m *model) problem(format string, args ...any) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// count counts an event, for the figures of the run.
func (m *model) count(what string) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.counts[what]++
}

// expect calls change with the expected content of a session, under the guard. Of damaged ones nothing is expected.
func (m *model) expect(name string, change func(s *expected)) {
	if isDamaged(name) {
		return
	}
	m.guard.Lock()
	defer m.guard.Unlock()
	if m.sessions[name] == nil {
		m.sessions[name] = &expected{lines: map[string][]string{}}
	}
	change(m.sessions[name])
}

// wants notes the lines that a program wrote to a session, by their summaries, and returns how many of them are there:
// the acknowledged ones, and after an interrupted write those that its file has.
func (r *run) wants(who, name string, out outcome, summaries ...string) int {
	if out.maybe && !isDamaged(name) {
		out.acked = r.settled(who, name, out.acked, summaries)
	}
	r.expect(name, func(s *expected) {
		s.lines[who] = append(s.lines[who], summaries[:out.acked]...)
		if out.maybe {
			s.maybes++
		}
	})
	return out.acked
}

// movedFor is how long a file is at most away that another program moves.
const movedFor = 3 * time.Second

// left reads the file of a session in which a write was interrupted: its daemon is dead. Where the file cannot be read, the check
// at the end says which lines must be there.
func (r *run) left(name string) *session {
	began := time.Now()
	for {
		file, err := readSession(r.file(name))
		isAway := errors.Is(err, fs.ErrNotExist)
		if !isAway || time.Since(began) > movedFor {
			return file
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// settled returns how many lines of an interrupted write are there; acked of them are known to be. A line counts if the
// file has it more often than the program wrote it before.
func (r *run) settled(who, name string, acked int, summaries []string) int {
	there := map[string]int{}
	file := r.left(name)
	for i := range file.lines {
		_, summary, _ := file.lines[i].summary(name)
		there[summary]++
	}
	r.expect(name, func(s *expected) {
		for _, summary := range s.lines[who] {
			there[summary]--
		}
	})
	for acked < len(summaries) && there[summaries[acked]] > 0 {
		acked++
	}
	r.count("writes that were interrupted, and settled")
	return acked
}

// appended notes entries that a program appended, each under the one before, and returns how many are there. The first
// one's parent is known of own sessions.
func (r *run) appended(who, name string, entries []entry, parent *string, out outcome) int {
	var summaries []string
	for _, e := range entries {
		summaries = append(summaries, fmt.Sprintf("entry %s of %d%s", e.id, e.size, under(name, parent)))
		parent = new(e.id)
	}
	return r.wants(who, name, out, summaries...)
}

// moved notes that a session has another name.
func (m *model) moved(from, to string) {
	m.guard.Lock()
	defer m.guard.Unlock()
	s := m.sessions[from]
	delete(m.sessions, from)
	m.sessions[to] = s
}

// titled notes a title that was set, or after an interrupted write the one that the file has.
func (r *run) titled(name, title string, out outcome) {
	isSet := out.acked > 0
	if !isSet && out.maybe {
		isSet = r.left(name).title == title
	}
	if isSet {
		r.expect(name, func(s *expected) { s.title = title })
	}
}

// isOwn reports whether one program alone writes to a session.
func isOwn(name string) bool { return strings.Contains(path.Dir(name), "torture-own-") }

// isDamaged reports whether others may do as they like with the file of a session.
func isDamaged(name string) bool { return strings.HasPrefix(name, "sessions/--torture-damaged--/") }

// under returns the end of a summary with the parent, "" where it is not known: only one program writes to own sessions.
func under(session string, parent *string) string {
	if !isOwn(session) {
		return ""
	}
	return " under " + textOf(parent)
}

// match compares the lines that a program wrote with the lines that are there, which must be the same, in their order. It
// returns the first difference for people, "" for none.
func match(wants, seen []string) string {
	for n, line := range seen {
		if n < len(wants) && wants[n] == line {
			continue
		}
		what := "unexpected"
		mayRepeat := strings.HasPrefix(line, "leaf ") // a leaf may go to and fro
		if slices.Contains(seen[:n], line) && !mayRepeat {
			what = "doubled"
		}
		before := seen[max(n-1, 0):n]
		expected := wants[n:min(n+1, len(wants))]
		return fmt.Sprintf("%s: %q, after %q, where %q was expected", what, line, before, expected)
	}
	missing := wants[len(seen):]
	if len(missing) > 0 {
		return fmt.Sprintf("%q was acknowledged and is not there, nor are %d after it", missing[0], len(missing)-1)
	}
	return ""
}
