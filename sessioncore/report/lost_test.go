package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestTable: the lost tips of all sessions, the newest first; only sessions that changed are read again; and it is bounded.
func TestTable(t *testing.T) {
	s := newTestStore(t)
	lost := NewLost(s.store)
	table := func() (lines []string) {
		hold := budget.New(budget.Default).Hold()
		text, err := lost.Table(t.Context(), s.sessions(), &hold)
		require.NoError(t, err)
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	write := func(name, text string) { s.put(name, sessiontest.Header+text) }
	write("p/a.jsonl", said(1, "a1", "", `"one"`)+said(2, "a2", "a1", `"t\two"`)+said(4, "a4", "a1", `"four"`))
	write("p/b.jsonl", said(1, "b1", "", `"one"`)+said(3, "b3", "", `"three"`)+at(5, "b5", "b1", ""))
	write("p/c.jsonl", said(1, "c1", "", `"one"`))
	write("p/d.jsonl", "{\n")
	want := []string{
		"time\tsession\tid\tpath\tsaid",
		"2026-01-05T09:00:03.000Z\tone\tb3\tsessions/p/b/branches/b3\tthree",
		"2026-01-05T09:00:02.000Z\tone\ta2\tsessions/p/a/branches/a2\tt wo",
	}
	require.Equal(t, want, table())
	s.store.Close()
	require.Equal(t, want, table())
	require.Empty(t, s.opened, "nothing changed")
	require.NoError(t, s.Remove("p/b.jsonl"))
	write("p/c.jsonl", said(1, "c1", "", `"one"`)+said(2, "c2", "", `"other"`))
	require.Equal(t, "2026-01-05T09:00:01.000Z\tone\tc1\tsessions/p/c/branches/c1\tone", table()[2])
	require.Len(t, s.opened, 1)
	require.Len(t, lost.known, 3)

	var many strings.Builder
	for n := range maxRows + 2 {
		many.WriteString(said(n%60, fmt.Sprint("m", n), "", `"again"`))
	}
	write("p/m.jsonl", many.String())
	rows := table()
	require.Len(t, rows, 1+maxRows+1)
	require.Contains(t, rows[maxRows+1], "there are more than these 10000")
}
