package renames

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestFind: the moves that a command tells, and no others. ⏎ is a newline. > stands before a path that the
// file has afterwards, / before a directory in which it is, and ? where it may be either. "in" is the
// directory behind the command if that is another, ? if nothing tells it.
func TestFind(t *testing.T) {
	signOf := func(m Move) string {
		switch {
		case m.Into && m.Onto:
			return "?"
		case m.Into:
			return "/"
		}
		return ">"
	}
	sessiontest.Table(t, "testdata/commands.txt", func(_ *testing.T, _, command string) string {
		moves, end := Find(strings.ReplaceAll(command, "⏎", "\n"), WorkingDirectory{})
		var got []string
		for _, m := range moves {
			from := strings.Join(m.From, ",")
			got = append(got, from+" "+signOf(m)+" "+m.To)
		}
		switch {
		case end.isUnknown:
			got = append(got, "in ?")
		case end.path != "":
			got = append(got, "in "+end.path)
		}
		return strings.Join(got, "; ")
	})
}

// FuzzFind: no command makes the reader panic or go on for ever.
func FuzzFind(f *testing.F) {
	f.Add("cd \"a\\\"b\" && mv 'x y' $Z ~/q 2>&1 || git -C d mv a\\\n b # c")
	f.Fuzz(func(t *testing.T, command string) {
		moves, _ := Find(command, WorkingDirectory{})
		for _, m := range moves {
			require.True(t, m.Into || m.Onto)
			require.NotEmpty(t, m.To)
			require.NotEmpty(t, m.From)
		}
	})
}
