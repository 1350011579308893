package report

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// logOf is the log of a session, a line for each of its lines: what is drawn, the name, the marks, and what was said.
func logOf(t *testing.T, s *sessioncore.Snapshot, all bool) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, Log(context.Background(), s, all, func(l *LogLine) error {
		out.WriteString(l.Graph)
		if l.Entry != sessioncore.NoEntry {
			fmt.Fprintf(&out, " %s %v %s: %s", l.ID, l.Marks, l.What, l.Said)
		}
		out.WriteString("\n")
		return nil
	}))
	return out.String()
}

func TestLog(t *testing.T) {
	said := func(role, text string) string {
		return fmt.Sprintf(`,"type":"message","message":{"role":%q,"toolName":"bash","content":[{"type":"text","text":%q}]}`, role, text)
	}
	const call = `,"type":"message",` +
		`"message":{"role":"assistant","content":[{"type":"toolCall","name":"bash","arguments":{"_i":"x","command":["sh","-c","ls\n-l"],"workdir":"/"}}]}`
	s := snapshotOf(t, sessiontest.Header+
		sessiontest.At(1, "a", "", said("user", "one\ntwo"))+sessiontest.At(1, "m", "a", `,"type":"model_change","model":"p/m"`)+
		sessiontest.At(1, "b", "m", call)+sessiontest.At(1, "r", "b", said("toolResult", "out"))+
		sessiontest.At(1, "c", "r", said("assistant", "first"))+sessiontest.At(1, "d", "c", said("user", "left"))+
		sessiontest.At(1, "e", "r", said("assistant", "second"))+sessiontest.At(1, "f", "m", said("user", "third"))+
		sessiontest.At(1, "x", "", said("user", "another root"))+sessiontest.At(1, "l", "e", `,"type":"label","targetId":"r","label":"here"`)+
		sessiontest.At(1, "g", "e", said("user", "on")))
	require.Equal(t, `* g [leaf] user: on
| * l [lost] label: here
|/
* e [] assistant: second
| * d [lost] user: left
| * c [] assistant: first
|/
* r [label: here] toolResult-bash: out
* b [] assistant: bash ls -l
| * f [lost] user: third
|/
* a [] user: one two
* x [lost] user: another root
`, logOf(t, s, false))
	require.Contains(t, logOf(t, s, true), "|/\n* m [] model_change: p/m\n* a [] user")
}

// TestShortIDs: as much of an id is shown as no other one begins with.
func TestShortIDs(t *testing.T) {
	const a, b, c = "a32dc482-96ce-4859-942a-f46d1c8d5358", "a32dc482-96ce-4859-942a-f46d1c8d5359", "a32dc482-97ce"
	require.Equal(t, "* a32dc482-97 [leaf] user: "+c+"\n* a32dc482-96 [] user: "+a+"\n",
		logOf(t, snapshotOf(t, sessiontest.Header+sessiontest.Entry(a, "")+sessiontest.Entry(c, a)), false))
	require.Equal(t, "* "+b+" [leaf] user: "+b+"\n* "+a+" [] user: "+a+"\n",
		logOf(t, snapshotOf(t, sessiontest.Header+sessiontest.Entry(a, "")+sessiontest.Entry(b, a)), false))
	require.Equal(t, "* a32dc482 [leaf] user: "+a+"\n* l1 [] user: l1\n",
		logOf(t, snapshotOf(t, sessiontest.Header+sessiontest.Entry("l1", "")+sessiontest.Entry(a, "l1")), false))
}

// checkLog draws the tree of a session and reads it again.
func checkLog(t *testing.T, s *sessioncore.Snapshot, columns int) {
	t.Helper()
	tree := s.Tree()
	var open []sessioncore.Entry // the last entry of each column
	drawn := 0
	require.NoError(t, Log(context.Background(), s, true, func(l *LogLine) error {
		column := strings.Count(l.Graph, "| ")
		require.LessOrEqual(t, column, columns)
		if l.Entry == sessioncore.NoEntry {
			require.Len(t, open, column+2)
			require.Equal(t, tree.Parent(open[column]), tree.Parent(open[column+1]))
			open = open[:column+1]
			return nil
		}
		drawn++
		if column == len(open) {
			require.Empty(t, tree.Children(l.Entry))
			open = append(open, l.Entry)
			return nil
		}
		require.Len(t, open, column+1)
		if above := open[column]; tree.Parent(above) != sessioncore.NoEntry || column > 0 {
			require.Equal(t, l.Entry, tree.Parent(above))
		}
		open[column] = l.Entry
		return nil
	}))
	for e := range sessioncore.Entry(s.Len()) {
		if tree.Has(e) {
			drawn--
		}
	}
	require.Zero(t, drawn)
}

// TestLogOfLargeTrees: a long chain, and one from whose entries, the last first, the user went back each time.
func TestLogOfLargeTrees(t *testing.T) {
	const n = 20_000
	var chain, comb strings.Builder
	chain.WriteString(sessiontest.Header)
	for i := range n {
		parent := fmt.Sprint("e", i-1)
		if i == 0 {
			parent = ""
		}
		chain.WriteString(sessiontest.Entry(fmt.Sprint("e", i), parent))
	}
	comb.WriteString(chain.String())
	for i := range n {
		comb.WriteString(sessiontest.Entry(fmt.Sprint("f", i), fmt.Sprint("e", n-1-i)))
	}
	checkLog(t, snapshotOf(t, chain.String()), 0)
	checkLog(t, snapshotOf(t, comb.String()), 2*maxColumns)
}
