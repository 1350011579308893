package main

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// wanted is a line that a program wrote to a session, as a summary.
type wanted struct {
	summary string
	certain bool // acknowledged; else it may be there: the daemon was killed meanwhile
}

// expected is what a session must contain.
type expected struct {
	name    string
	lines   map[string][]wanted // by program, in its order
	refused map[string]bool     // ids of entries that were refused
	titles  []wanted            // what it may be
	forks   []fork
	durable bool // its file must be there
	maybes  int
}

type fork struct{ place, id string }

// model is what the records say of all sessions.
type model struct {
	sessions map[string]*expected
	problems []string
	counts   map[string]int
	excused  int // problems that a kill explains
}

func (m *model) session(name string) *expected {
	if m.sessions[name] == nil {
		m.sessions[name] = &expected{name: name, lines: map[string][]wanted{}, refused: map[string]bool{}}
	}
	return m.sessions[name]
}

// isOwn reports whether one program alone writes to a session.
func isOwn(name string) bool { return strings.HasPrefix(path.Dir(name), "sessions/--torture-own-") }

func isDamaged(name string) bool { return strings.HasPrefix(name, "sessions/--torture-damaged--/") }

// readModel reads the records.
func readModel(o *options, daemons map[string]*daemon) (*model, error) {
	m := &model{sessions: map[string]*expected{}, counts: map[string]int{}}
	files, err := filepath.Glob(filepath.Join(o.dir, "records", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		notes, err := readRecord(file)
		if err != nil {
			return nil, err
		}
		role, number, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".jsonl"), "-")
		m.add(role[:1]+number, notes, daemons)
	}
	for c := range o.clients {
		for _, name := range []string{"first", "slot"} {
			m.session(path.Join(ownProject(c), name)).durable = true
		}
	}
	return m, nil
}

// add adds the record of a program.
func (m *model) add(who string, notes []note, daemons map[string]*daemon) {
	results := map[int]note{}
	for _, n := range notes {
		if n.Of > 0 {
			results[n.Of] = n
		}
		for what, count := range n.Counts {
			m.counts[what] += count
		}
		switch d := daemons[n.Mount]; {
		case n.Problem == "":
		case d != nil && d.wasDown(n.From, n.To):
			m.excused++
		default:
			m.problems = append(m.problems, who+": "+n.Problem)
		}
	}
	for _, n := range notes {
		if n.Do == "" || isDamaged(n.Session) {
			continue
		}
		result, known := results[n.N]
		if !known {
			result.Maybe = true // the program was killed
		}
		m.write(who, n, result)
	}
}

// write adds one write to the model.
func (m *model) write(who string, n, result note) {
	switch n.Do {
	case "new":
		if result.Acked > 0 {
			m.session(result.Text)
		}
		return
	case "gone":
		return // if its file is there, or was to be, the check says so
	}
	s := m.session(n.Session)
	if !isOwn(n.Session) {
		s.durable = true
	}
	switch n.Do {
	case "sync":
		s.durable = s.durable || result.Acked > 0
	case "fork":
		if result.Acked > 0 && result.Text != "" {
			s.forks = append(s.forks, fork{result.Text, n.IDs[0]})
		}
	case "append":
		s.durable = s.durable || n.Answer && result.Acked == len(n.IDs)
		s.appends(who, n, result)
	case "turn":
		s.turn(who, n, result)
	case "label":
		s.want(who, fmt.Sprintf("label %s of %s%s", n.Text, n.IDs[0], under(n.Session, n.Under)), result)
	case "leaf":
		target := "none"
		if len(n.IDs) > 0 {
			target = n.IDs[0]
		}
		s.want(who, "leaf "+target, result)
	case "title":
		if result.Acked > 0 || result.Maybe {
			s.titles = append(s.titles, wanted{n.Text, result.Acked > 0})
		}
		if path.Base(n.Session) == "slot" {
			s.want(who, "title "+n.Text, result)
		}
	}
}

// want adds a line, if it was not refused.
func (s *expected) want(who, summary string, result note) {
	if result.Acked > 0 || result.Maybe {
		s.lines[who] = append(s.lines[who], wanted{summary, result.Acked > 0})
	}
	if result.Acked == 0 && result.Maybe {
		s.maybes++
	}
}

func (s *expected) appends(who string, n, result note) {
	parent := n.Under
	for i, id := range n.IDs {
		one := note{Maybe: result.Maybe}
		if i < result.Acked {
			one.Acked = 1
		} else if !result.Maybe {
			s.refused[id] = true
		}
		s.want(who, fmt.Sprintf("entry %s of %d%s", id, n.Sizes[i], under(s.name, parent)), one)
		parent = ref(id)
	}
}

// turn is one of the real client's: a question and an answer.
func (s *expected) turn(who string, n, result note) {
	for i, role := range []string{"user", "assistant"} {
		id := ""
		if i < len(result.IDs) {
			id = " " + result.IDs[i]
		}
		s.want(who, "turn "+role+" "+n.Text+id, note{Acked: min(len(result.IDs), 1), Maybe: result.Maybe})
	}
}

// under is the parent in a summary: known only of sessions to which one program writes.
func under(session string, parent *string) string {
	if !isOwn(session) {
		return ""
	}
	return " under " + textOf(parent)
}

// match compares what a program wrote with what is there: all that is certain, in its order, once, and nothing that
// may not be.
func match(wants []wanted, seen []string) string {
	at := []int{0} // how far in wants the lines that were seen may have come
	for n, line := range seen {
		var next []int
		for _, i := range at {
			for ; i < len(wants); i++ {
				if wants[i].summary == line && !slices.Contains(next, i+1) {
					next = append(next, i+1)
				}
				if wants[i].certain {
					break
				}
			}
		}
		if len(next) == 0 {
			return describe(wants, at, seen, n)
		}
		at = next
	}
	for _, i := range at {
		if !slices.ContainsFunc(wants[i:], func(w wanted) bool { return w.certain }) {
			return ""
		}
	}
	i := at[0]
	for !wants[i].certain {
		i++
	}
	return fmt.Sprintf("%q was acknowledged and is not there: after it come %d more, the last is %q", wants[i].summary, len(wants)-i-1, wants[len(wants)-1].summary)
}

func describe(wants []wanted, at []int, seen []string, n int) string {
	what := "unexpected"
	if slices.Contains(seen[:n], seen[n]) && !strings.HasPrefix(seen[n], "leaf ") {
		what = "doubled"
	}
	want := "nothing"
	if at[0] < len(wants) {
		want = fmt.Sprintf("%q (certain: %v)", wants[at[0]].summary, wants[at[0]].certain)
	}
	before := "nothing"
	if n > 0 {
		before = seen[n-1]
	}
	return fmt.Sprintf("%s: %q, after %q, where %s was expected", what, seen[n], before, want)
}
