package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// checkFiles compares all session files with the model.
func (m *model) checkFiles(o *options) {
	for _, s := range m.sorted() {
		file, err := readSession(filepath.Join(o.source(), s.name+".jsonl"))
		if errors.Is(err, fs.ErrNotExist) && !s.durable {
			m.counts["new sessions that a kill of the daemon took, before their first answer"]++
			delete(m.sessions, s.name)
			continue
		}
		if err != nil {
			m.problem("%v", err)
			delete(m.sessions, s.name)
			continue
		}
		m.checkFile(o, s, file)
		for _, f := range s.forks {
			m.checkFork(o, file, s.name, f)
		}
	}
}

func (m *model) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

func (m *model) sorted() []*expected {
	var names []string
	for name := range m.sessions {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []*expected
	for _, name := range names {
		list = append(list, m.sessions[name])
	}
	return list
}

// checkFile compares one session file with what it must contain.
func (m *model) checkFile(o *options, s *expected, file *session) {
	owner := ""
	for who := range s.lines {
		owner = who
	}
	ids, seen := map[string]int{}, map[string][]string{}
	for i := range file.lines {
		l := &file.lines[i]
		if ids[l.ID]++; ids[l.ID] > 1 {
			m.problem("%s: the id %s is there %d times", s.name, l.ID, ids[l.ID])
		}
		if s.refused[l.ID] {
			m.problem("%s: %s was refused and is there", s.name, l.ID)
		}
		if problem := l.blobProblem(o); problem != "" {
			m.problem("%s: %s", s.name, problem)
		}
		if i < 2 && (l.ID == rootID || l.ID == answerID) {
			continue
		}
		who, summary, problem := l.summary(s.name)
		if problem != "" {
			m.problem("%s: %s", s.name, problem)
		}
		if who == "" {
			who = owner
		}
		seen[who] = append(seen[who], summary)
		m.counts["lines checked"]++
	}
	for who := range seen {
		if _, known := s.lines[who]; !known {
			s.lines[who] = nil
		}
	}
	for who, wants := range s.lines {
		if problem := match(forFile(wants, seen[who]), seen[who]); problem != "" {
			m.problem("%s, what %s wrote: %s", s.name, who, problem)
		}
	}
	m.checkTorn(s, file)
	m.checkTitle(s, file)
}

// forFile makes the ids of the real client's lines that may be there those that are there: it was killed before it
// told them.
func forFile(wants []wanted, seen []string) []wanted {
	wants = slices.Clone(wants)
	for i, w := range wants {
		if w.certain || !strings.HasPrefix(w.summary, "turn ") {
			continue
		}
		for _, line := range seen {
			if strings.HasPrefix(line, w.summary+" ") {
				wants[i].summary = line
			}
		}
	}
	return wants
}

// checkTorn: a kill leaves at most one torn line for each write that it interrupted.
func (m *model) checkTorn(s *expected, file *session) {
	torn := 0
	for _, text := range file.torn {
		if text != "" && text != "# the line above is cut off" {
			torn++
		}
	}
	m.counts["torn lines that kills left"] += torn
	if torn > s.maybes {
		m.problem("%s: %d torn lines, and only %d writes were interrupted: %.200q", s.name, torn, s.maybes, file.torn)
	}
}

// checkTitle: the title is the last that was set, or one of those where several set it.
func (m *model) checkTitle(s *expected, file *session) {
	last := 0
	for i, t := range s.titles {
		if t.certain && isOwn(s.name) {
			last = i
		}
	}
	ok := len(s.titles) == 0
	certain := false
	for _, t := range s.titles[min(last, len(s.titles)):] {
		ok = ok || t.summary == file.title()
		certain = certain || t.certain
	}
	if old := file.title() == "" || file.title() == "new"; !ok && (certain || !old) {
		m.problem("%s: the title is %q, not one of %v", s.name, file.title(), s.titles[last:])
	}
}

// checkFork: a fork has the bytes of the path to its entry.
func (m *model) checkFork(o *options, source *session, name string, f fork) {
	file, err := readSession(filepath.Join(o.source(), f.place+".jsonl"))
	if err != nil {
		m.problem("a fork of %s at %s: %v", name, f.id, err)
		return
	}
	if path.Dir(f.place) != path.Dir(name) {
		m.problem("a fork of %s is at %s", name, f.place)
	}
	byID := map[string]*line{}
	for i := range source.lines {
		byID[source.lines[i].ID] = &source.lines[i]
	}
	var want []*line
	for l := byID[f.id]; l != nil; {
		if l.Type != "label" {
			want = append(want, l)
		}
		if l.ParentID == nil {
			break
		}
		l = byID[*l.ParentID]
	}
	slices.Reverse(want)
	var got []line
	for _, l := range file.lines {
		if l.Type != "label" {
			got = append(got, l)
		}
	}
	m.counts["forks checked"]++
	if len(got) != len(want) {
		m.problem("the fork %s of %s has %d entries, not %d", f.place, name, len(got), len(want))
		return
	}
	for i := range got {
		if got[i].ID != want[i].ID || got[i].words() != want[i].words() {
			m.problem("the fork %s of %s has %.100q, not %.100q", f.place, name, got[i].text, want[i].text)
		}
	}
}
