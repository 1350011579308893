package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMatch: what a program wrote, where "?" marks what may be there, against what is.
func TestMatch(t *testing.T) {
	for _, test := range []struct{ wants, seen, problem string }{
		{"", "", ""},
		{"a b c", "a b c", ""},
		{"a b? c", "a c", ""},
		{"a b? c", "a b c", ""},
		{"a b?", "a", ""},
		{"leaf x? leaf x", "leaf x", ""}, // either of them
		{"a? a?", "a a", ""},
		{"a b c", "a c", `unexpected: "c"`},
		{"a b", "a", `"b" was acknowledged and is not there`},
		{"a b", "b a", `unexpected: "b"`},
		{"a b", "a a b", `doubled: "a"`},
		{"a b", "a b b", `doubled: "b"`},
		{"a", "a z", `unexpected: "z"`},
		{"", "z", `unexpected: "z"`},
		{"a? b? c", "b a c", `unexpected: "a"`},
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

// TestModel: what a record says of a write, by how it ended.
func TestModel(t *testing.T) {
	const own = "sessions/--torture-own-1--/first"
	m := &model{sessions: map[string]*expected{}, counts: map[string]int{}}
	m.add("c1", []note{
		{N: 1, Do: "append", Session: own, IDs: []string{"c1-1"}, Sizes: []int{5}, Under: ref("x")}, {Of: 1, Acked: 1},
		{N: 2, Do: "append", Session: own, IDs: []string{"c1-2", "c1-3"}, Sizes: []int{5, 6}, Under: ref("c1-1")}, {Of: 2, Acked: 1},
		{N: 3, Do: "append", Session: own, IDs: []string{"c1-4"}, Sizes: []int{5}}, {Of: 3, Maybe: true},
		{N: 4, Do: "leaf", Session: own}, {Of: 4},
		{N: 5, Do: "leaf", Session: own, IDs: []string{"c1-1"}}, {Of: 5, Acked: 1},
		{N: 6, Do: "label", Session: own, IDs: []string{"c1-1"}, Text: "c1-7", Under: ref("c1-1")}, // the program was killed
	}, nil)
	s := m.sessions[own]
	require.Equal(t, []wanted{
		{"entry c1-1 of 5 under x", true},
		{"entry c1-2 of 5 under c1-1", true},
		{"entry c1-4 of 5 under none", false},
		{"leaf c1-1", true},
		{"label c1-7 of c1-1 under c1-1", false},
	}, s.lines["c1"])
	require.Equal(t, map[string]bool{"c1-3": true}, s.refused)
	require.Equal(t, 2, s.maybes)
}

// TestSummary: lines as the mount and others write them.
func TestSummary(t *testing.T) {
	const own = "sessions/--torture-own-1--/first"
	for _, e := range []entry{newEntry("c1-1", "user", 40, 0), newEntry("c1-1", "custom", 40, 0), newEntry("c1-1", "assistant", 40, 900)} {
		file := t.TempDir() + "/s.jsonl"
		require.NoError(t, writeSession(file, own))
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
	of := func(seed uint64, number int) (list []draw) {
		for d := newDrawer(&options{role: "client", seed: seed, number: number}); len(list) < 100; {
			list = append(list, d.next())
		}
		return list
	}
	require.Equal(t, of(1, 2), of(1, 2))
	require.NotEqual(t, of(1, 2), of(1, 3))
	require.NotEqual(t, of(1, 2), of(2, 2))
}
