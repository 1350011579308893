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

func TestLog(t *testing.T) {
	sessiontest.Page(t, "testdata/log.txt", func(t *testing.T, name, give, want string) {
		var out strings.Builder
		s := snapshotOf(t, give+"\n")
		require.NoError(t, Log(context.Background(), s, name == "all entries", func(l *LogLine) error {
			out.WriteString(l.Graph)
			if l.Entry != sessioncore.NoEntry {
				fmt.Fprintf(&out, " %s %v %s: %s", l.ID, l.Marks, l.What, l.Said)
			}
			out.WriteString("\n")
			return nil
		}))
		require.Equal(t, want, out.String(), name)
	})
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
	sessiontest.NotUnderRace(t)
	const n = 20_000
	chain, comb := chainOf(n), strings.Builder{}
	comb.WriteString(chain)
	for i := range n {
		comb.WriteString(sessiontest.Entry(fmt.Sprint("f", i), fmt.Sprint("e", n-1-i)))
	}
	checkLog(t, snapshotOf(t, chain), 0)
	checkLog(t, snapshotOf(t, comb.String()), 2*maxColumns)
}
