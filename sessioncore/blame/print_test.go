package blame

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/view"
)

// edit returns an edit for a printer.
func edit(session, entry, prompt string) FileEdit {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.Local)
	found := &search.FileHits{Session: session}
	return FileEdit{Hit: &search.Hit{FileHits: found, Entry: entry, Time: at, Prompt: prompt}}
}

// TestLinesOnTerminal: the text has at least half of any terminal, what title and prompt say alike stands once, and ids are
// whole.
func TestLinesOnTerminal(t *testing.T) {
	edits := []FileEdit{
		edit("Write a small program th…", "a1020202-1111-4222-8333-444444444444", "Write a small program that prints areas, with tests"),
		edit("Ship it", "e2", "Use pi, not 3.14"),
		edit("漢字", "e3", "漢字"),
	}
	const text = "    return math.pi * r ** 2"
	lines := []Line{{0, true}, {0, false}, {Nobody, false}, {1, true}, {2, true}}
	write := func(width int) string {
		var out bytes.Buffer
		screen := &view.Screen{Writer: bufio.NewWriter(&out), People: true}
		p := &EditPrinter{Out: screen, Width: width, Last: 11, Edits: edits, Agent: func(*FileEdit) string { return "claude" }}
		for i, line := range lines {
			p.Line(7+i, text, line)
		}
		require.NoError(t, screen.Flush())
		return out.String()
	}
	for _, width := range []int{40, 60, 80, 100, 132, 200} {
		got := write(width)
		require.Contains(t, got, "a1020202")
		require.NotContains(t, got, "a1020202-")
		require.Equal(t, 1, strings.Count(got[:strings.Index(got, "\n")], "Write"), got)
		for line := range strings.Lines(got) {
			at := strings.Index(line, text)
			if at < 0 {
				require.Less(t, width, 80)
				require.LessOrEqual(t, uniseg.StringWidth(strings.TrimSuffix(line, "\n")), width)
				continue
			}
			require.LessOrEqual(t, uniseg.StringWidth(line[:at]), width/2, "%d: %s", width, line)
		}
	}
	require.Equal(t, ""+
		" 2026-11-20 claude a1020202  Write…   7     return math.pi * r ** 2\n"+
		"~2026-11-20 claude a1020202  Write…   8     return math.pi * r ** 2\n"+
		" -                                    9     return math.pi * r ** 2\n"+
		" 2026-11-20 claude e2        Ship …  10     return math.pi * r ** 2\n"+
		" 2026-11-20 claude e3        漢字    11     return math.pi * r ** 2\n", write(80))
	require.Equal(t, ""+
		"2026-11-20 claude a1020202 Write a smal…\n"+
		"  7     return math.pi * r ** 2\n"+
		"~ 8     return math.pi * r ** 2\n"+
		"-\n"+
		"  9     return math.pi * r ** 2\n"+
		"2026-11-20 claude e2 Ship it: Use pi, n…\n"+
		" 10     return math.pi * r ** 2\n"+
		"2026-11-20 claude e3 漢字\n"+
		" 11     return math.pi * r ** 2\n", write(40))
	require.Contains(t, write(200), "  Ship it: Use pi, not 3.14  ")
}
