package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// model is what is known of all sessions, and of the run.
type model struct {
	guard    sync.Mutex // guards those below
	sessions map[string]*expected
	problems []string
	counts   map[string]int
}

// expected is what a session must contain.
type expected struct {
	lines   map[string][]wanted // by program, in its order
	titles  []string            // what it may be: the last that was acknowledged, and those that may be after it
	durable bool                // its file must be there
	maybes  int
}

// wanted is a line that a program wrote to a session, as a summary.
type wanted struct {
	summary string
	certain bool // acknowledged; else it may be there: the daemon was killed in that very call
}

// outcome is how a write ended: how many lines were acknowledged, and whether the others may be there.
type outcome struct {
	acked int
	maybe bool
}

func newModel() *model {
	return &model{sessions: map[string]*expected{}, counts: map[string]int{}}
}

func (m *model) problem(format string, args ...any) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

func (m *model) count(what string) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.counts[what]++
}

// expect has change note something of a session. Of damaged ones nothing is expected.
func (m *model) expect(name string, change func(s *expected)) {
	if isDamaged(name) {
		return
	}
	m.guard.Lock()
	defer m.guard.Unlock()
	if m.sessions[name] == nil {
		m.sessions[name] = &expected{lines: map[string][]wanted{}, titles: []string{""}}
	}
	change(m.sessions[name])
}

func (m *model) isDurable(name string) { m.expect(name, func(s *expected) { s.durable = true }) }

// wants notes lines that a program wrote to a session, of which some were acknowledged.
func (r *run) wants(who, name string, out outcome, summaries ...string) {
	maybe := out.maybe
	if maybe && !isOwn(name) && !isDamaged(name) {
		out = outcome{acked: r.settled(name, out.acked, summaries)}
	}
	r.expect(name, func(s *expected) {
		for i, summary := range summaries {
			if certain := i < out.acked; certain || out.maybe {
				s.lines[who] = append(s.lines[who], wanted{summary, certain})
			}
		}
		if maybe {
			s.maybes++
		}
	})
}

// settled returns how many lines of a write to a session of many are there: whoever was to write the others is dead.
func (r *run) settled(name string, acked int, summaries []string) int {
	file, err := readSession(r.file(name))
	if err != nil {
		r.problem("%v", err)
		return acked
	}
	there := map[string]bool{}
	for i := range file.lines {
		_, summary, _ := file.lines[i].summary(name)
		there[summary] = true
	}
	for acked < len(summaries) && there[summaries[acked]] {
		acked++
	}
	r.count("writes that were interrupted, and settled")
	return acked
}

// appended notes entries that a program appended. The first one's parent is known of own sessions.
func (r *run) appended(who, name string, entries []entry, parent *string, out outcome) {
	var summaries []string
	for _, e := range entries {
		summaries = append(summaries, fmt.Sprintf("entry %s of %d%s", e.id, e.size, under(name, parent)))
		parent = ref(e.id)
	}
	r.wants(who, name, out, summaries...)
}

// resolved notes how many of the last lines that may be there are.
func (m *model) resolved(who, name string, may, are int) {
	m.expect(name, func(s *expected) {
		lines := s.lines[who]
		first := len(lines) - may
		for i := range are {
			lines[first+i].certain = true
		}
		s.lines[who] = lines[:first+are]
	})
}

// moved notes that a session has another name.
func (m *model) moved(from, to string) {
	m.guard.Lock()
	defer m.guard.Unlock()
	s := m.sessions[from]
	delete(m.sessions, from)
	m.sessions[to] = s
}

// titled notes a title that was set.
func (m *model) titled(name, title string, out outcome) {
	m.expect(name, func(s *expected) {
		if out.acked > 0 {
			s.titles = nil
		}
		if out.acked > 0 || out.maybe {
			s.titles = append(s.titles, title)
		}
	})
}

// isOwn reports whether one program alone writes to a session.
func isOwn(name string) bool { return strings.Contains(path.Dir(name), "torture-own-") }

func isDamaged(name string) bool { return strings.HasPrefix(name, "sessions/--torture-damaged--/") }

// under is the parent in a summary: known only of sessions to which one program writes.
func under(session string, parent *string) string {
	if !isOwn(session) {
		return ""
	}
	return " under " + textOf(parent)
}

// match compares what a program wrote with what is there: all that is certain, in its order, once, and of what may be there,
// which is at the end, a beginning.
func match(wants []wanted, seen []string) string {
	for n, line := range seen {
		if n == len(wants) || wants[n].summary != line {
			what := "unexpected"
			if slices.Contains(seen[:n], line) && !strings.HasPrefix(line, "leaf ") {
				what = "doubled"
			}
			return fmt.Sprintf("%s: %q, after %q, where %v was expected", what, line, seen[max(n-1, 0):n], wants[n:min(n+1, len(wants))])
		}
	}
	if rest := wants[len(seen):]; len(rest) > 0 && rest[0].certain {
		return fmt.Sprintf("%q was acknowledged and is not there, nor are %d after it", rest[0].summary, len(rest)-1)
	}
	return ""
}
