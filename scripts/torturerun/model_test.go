package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMatch: what a program wrote against what is there.
func TestMatch(t *testing.T) {
	for _, test := range []struct{ wants, seen, problem string }{
		{"", "", ""},
		{"a b c", "a b c", ""},
		{"leaf x leaf y leaf x", "leaf x leaf y leaf x", ""},
		{"a b c", "a c", `unexpected: "c"`},
		{"a b", "a", `"b" was acknowledged and is not there`},
		{"a b", "b a", `unexpected: "b"`},
		{"a b", "a a b", `doubled: "a"`},
		{"a b", "a b b", `doubled: "b"`},
		{"a", "a z", `unexpected: "z"`},
		{"", "z", `unexpected: "z"`},
	} {
		problem := match(fields(test.wants), fields(test.seen))
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

// TestModel: what is expected after a write, by how it ended. After a call in which the daemon died the file says which lines
// are there, of which an equal one can be there from before.
func TestModel(t *testing.T) {
	const own = "sessions/--torture-own-1--/first"
	for _, name := range []string{own, sharedSession(0)} {
		for there := range 3 {
			r := &run{model: newModel(), options: &options{dir: t.TempDir()}}
			require.NoError(t, r.makeSession(name))
			move := `{"type":"custom","id":"m","parentId":"x","customType":"sessionfs/leaf","data":{"targetId":"x"}}` + "\n"
			require.NoError(t, added(r.file(name), move))
			require.Equal(t, 1, r.wants("c1", name, outcome{acked: 1}, "leaf x"))
			require.Zero(t, r.wants("c1", name, outcome{}, "leaf none"))
			require.Zero(t, r.wants("c1", name, outcome{maybe: true}, "leaf x"))
			want := []string{"leaf x"}
			under := answerID
			entries := []entry{{"c1-1", "user", 40}, {"c1-2", "custom", 40}}
			for _, e := range entries[:there] {
				require.NoError(t, added(r.file(name), e.line(under, true)))
				line := "entry " + e.id + " of 40"
				if name == own {
					line += " under " + under
				}
				want, under = append(want, line), e.id
			}
			require.Equal(t, there, r.appended("c1", name, entries, new(answerID), outcome{acked: there / 2, maybe: true}))
			r.titled(name, "one", outcome{acked: 1})
			r.titled(name, "two", outcome{})
			r.titled(name, "three", outcome{maybe: true})
			require.Empty(t, r.problems)
			require.Equal(t, expected{lines: map[string][]string{"c1": want}, title: "one", maybes: 2}, *r.sessions[name])
		}
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
	m.expect("from", func(s *expected) { s.title = "t" })
	m.moved("from", "to")
	m.moved("to", "to")
	require.Equal(t, "t", m.sessions["to"].title)
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
		require.Equal(t, new("c1-1"), s.leaf())

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
