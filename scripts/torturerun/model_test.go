package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMatch: what a program wrote, where "?" marks what may be there, against what is.
func TestMatch(t *testing.T) {
	for _, test := range []struct{ wants, seen, problem string }{
		{"", "", ""},
		{"a b c", "a b c", ""},
		{"a b c?", "a b c", ""},
		{"a b?", "a", ""},
		{"a b? c?", "a b", ""},
		{"leaf x leaf y leaf x", "leaf x leaf y leaf x", ""},
		{"a b c", "a c", `unexpected: "c"`},
		{"a b? c?", "a c", `unexpected: "c"`},
		{"a b", "a", `"b" was acknowledged and is not there`},
		{"a b c?", "a", `"b" was acknowledged and is not there`},
		{"a b", "b a", `unexpected: "b"`},
		{"a b", "a a b", `doubled: "a"`},
		{"a b", "a b b", `doubled: "b"`},
		{"a", "a z", `unexpected: "z"`},
		{"", "z", `unexpected: "z"`},
	} {
		var wants []wanted
		for _, w := range fields(test.wants) {
			summary, maybe := strings.CutSuffix(w, "?")
			wants = append(wants, wanted{summary, !maybe})
		}
		problem := match(wants, fields(test.seen))
		if test.problem == "" {
			require.Empty(t, problem, "%q, %q", test.wants, test.seen)
		} else {
			require.Contains(t, problem, test.problem, "%q, %q", test.wants, test.seen)
		}
	}
}

// fields are words; "leaf x" is one.
func fields(text string) []string {
	list := strings.Fields(strings.ReplaceAll(text, "leaf ", "leaf_"))
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "leaf_", "leaf ")
	}
	return list
}

// TestModel: what is expected after a write, by how it ended.
func TestModel(t *testing.T) {
	const own = "sessions/--torture-own-1--/first"
	m := &run{model: newModel()}
	m.appended("c1", own, []entry{{id: "c1-1", size: 5}}, ref("x"), outcome{acked: 1})
	m.appended("c1", own, []entry{{id: "c1-2", size: 5}, {id: "c1-3", size: 6}}, ref("c1-1"), outcome{acked: 1})
	m.appended("c1", own, []entry{{id: "c1-4", size: 5}}, nil, outcome{maybe: true})
	m.wants("c1", own, outcome{}, "leaf none")
	m.wants("c1", own, outcome{acked: 1}, "leaf c1-1")
	m.titled(own, "one", outcome{acked: 1})
	m.titled(own, "two", outcome{})
	m.titled(own, "three", outcome{maybe: true})
	s := m.sessions[own]
	require.Equal(t, []wanted{
		{"entry c1-1 of 5 under x", true},
		{"entry c1-2 of 5 under c1-1", true},
		{"entry c1-4 of 5 under none", false},
		{"leaf c1-1", true},
	}, s.lines["c1"])
	require.Equal(t, []string{"one", "three"}, s.titles, "the second was refused")
	require.Equal(t, 1, s.maybes)
}

// TestSettled: after a call in which the daemon died, the file of a session of many says which lines are there.
func TestSettled(t *testing.T) {
	for there, want := range [][]wanted{{}, {{"entry c1-1 of 40", true}}, {{"entry c1-1 of 40", true}, {"entry c1-2 of 40", true}}} {
		r := &run{model: newModel(), options: &options{dir: t.TempDir()}}
		require.NoError(t, r.makeSession(sharedSession(0)))
		entries := []entry{{"c1-1", "user", 40}, {"c1-2", "custom", 40}}
		for _, e := range entries[:there] {
			require.NoError(t, added(r.file(sharedSession(0)), e.line(answerID, true)))
		}
		r.appended("c1", sharedSession(0), entries, nil, outcome{acked: there / 2, maybe: true})
		require.Empty(t, r.problems)
		s := r.sessions[sharedSession(0)]
		require.Equal(t, 1, s.maybes)
		require.ElementsMatch(t, want, s.lines["c1"])
	}
}

// TestResolve: after a call in which the daemon died, the leaf says which lines are there. Then they must be, and the others
// must not; and a leaf elsewhere is a problem.
func TestResolve(t *testing.T) {
	const name = "sessions/--torture-own-1--/first"
	aborted := &os.PathError{Op: "write", Err: syscall.ECONNABORTED}
	for _, test := range []struct {
		acked, lines int
		leaf         *string
		want         []wanted
		problem      string
	}{
		{0, 2, ref("x"), []wanted{}, ""},
		{0, 2, ref("1"), []wanted{{"1", true}}, ""},
		{0, 2, ref("2"), []wanted{{"1", true}, {"2", true}}, ""},
		{1, 2, ref("1"), []wanted{{"1", true}}, ""},
		{1, 2, ref("2"), []wanted{{"1", true}, {"2", true}}, ""},
		{1, 2, ref("x"), []wanted{{"1", true}}, "cannot be"},
		{0, 1, ref("y"), []wanted{}, "cannot be"},
		{0, 1, nil, []wanted{}, "cannot be"},
	} {
		c := &client{program: &program{run: &run{model: newModel()}, name: "c1"}}
		s := &own{path: name, at: ref("x"), ids: []string{"x", "y"}}
		out := outcome{test.acked, isUnclear(aborted)}
		c.wants("c1", name, out, []string{"1", "2"}[:test.lines]...)
		s.after(out, aborted, []*string{ref("1"), ref("2")}[:test.lines]...)
		require.NotNil(t, s.may)
		c.resolve(s, test.leaf)
		require.Nil(t, s.may)
		require.Equal(t, test.leaf, s.at)
		require.Equal(t, test.want, c.sessions[name].lines["c1"])
		require.Equal(t, test.problem != "", len(c.problems) > 0, "%v", c.problems)
	}
}

// TestResolveMade: a label's entry has an id that nobody knew.
func TestResolveMade(t *testing.T) {
	for leaf, problems := range map[string]int{"new": 0, "x": 1, "y": 1} {
		c := &client{program: &program{run: &run{model: newModel()}, name: "c1"}}
		s := &own{at: ref("x"), ids: []string{"x", "y"}}
		s.after(outcome{acked: 1}, nil, made)
		c.resolve(s, ref(leaf))
		require.Len(t, c.problems, problems, leaf)
	}
}

// TestUnclear: only what was sent to a daemon that died then may be done.
func TestUnclear(t *testing.T) {
	for err, want := range map[error]bool{
		&os.PathError{Op: "write", Err: syscall.ECONNABORTED}:   true,
		&os.LinkError{Op: "rename", Err: syscall.ECONNABORTED}:  true,
		&os.LinkError{Op: "symlink", Err: syscall.ECONNABORTED}: false,
		&os.PathError{Op: "write", Err: syscall.ENOTCONN}:       false,
		&os.PathError{Op: "write", Err: syscall.EIO}:            false,
		&os.PathError{Op: "write", Err: syscall.EBUSY}:          false,
	} {
		require.Equal(t, want, isUnclear(err), "%v", err)
	}
}

// TestMoved: a session that has moved keeps what is known of it, also if it was there already.
func TestMoved(t *testing.T) {
	m := newModel()
	m.isDurable("from")
	m.moved("from", "to")
	m.moved("to", "to")
	require.True(t, m.sessions["to"].durable)
	require.NotContains(t, m.sessions, "from")
}

// TestSummary: lines as the mount and others write them.
func TestSummary(t *testing.T) {
	const own = "sessions/--torture-own-1--/first"
	for _, e := range []entry{{"c1-1", "user", 40}, {"c1-1", "custom", 40}, {"c1-1", "assistant", 40}} {
		o := &options{dir: t.TempDir()}
		require.NoError(t, o.makeSession(own))
		file := o.file(own)
		require.NoError(t, added(file, e.line(answerID, true)))
		s, err := readSession(file)
		require.NoError(t, err)
		require.Empty(t, s.torn)
		require.Len(t, s.lines, 3)
		who, summary, problem := s.lines[2].summary(own)
		require.Equal(t, []string{"c1", "entry c1-1 of 40 under " + answerID, ""}, []string{who, summary, problem})
		require.Equal(t, ref("c1-1"), s.leaf())

		s.lines[2].ID = "c1-2" // the text is another's
		_, _, problem = s.lines[2].summary(own)
		require.Contains(t, problem, "is not whole")
	}
}

// TestSameCommands: the same seed gives a program the same commands.
func TestSameCommands(t *testing.T) {
	of := func(seed uint64, name string) (list []draw) {
		for p := (&program{drawer: newDrawer(seed, name)}); len(list) < 100; {
			list = append(list, p.draw())
		}
		return list
	}
	require.Equal(t, of(1, "c2"), of(1, "c2"))
	require.NotEqual(t, of(1, "c2"), of(1, "c3"))
	require.NotEqual(t, of(1, "c2"), of(2, "c2"))
}
