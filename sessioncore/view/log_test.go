package view

import (
	"bufio"
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestLogWidths: on a narrow terminal what an entry says stands below its id and time. No id is cut, and off a terminal
// nothing is.
func TestLogWidths(t *testing.T) {
	text := sessiontest.Header + sessiontest.MessageLine(1, `{"role":"user","content":"Why is every sheet on the wall an hour late since Sunday?"}`) +
		sessiontest.MessageLine(2, `{"role":"assistant","content":[{"type":"text","text":"The clocks went forward, and the code asks for the offset of today."}]}`)
	store := sessioncore.NewStore(sessiontest.Memory(t, []byte(text)))
	snap := sessiontest.Snapshot(t, store.Session(sessiontest.FileName))
	write := func(width int) string {
		var out bytes.Buffer
		screen := &Screen{Writer: bufio.NewWriter(&out)}
		require.NoError(t, (&Log{Session: snap}).WriteText(context.Background(), screen, width))
		require.NoError(t, screen.Flush())
		return out.String()
	}
	whole := write(-1)
	require.Equal(t, whole, write(0))
	require.Equal(t, whole, write(200))
	require.Contains(t, whole, "asks for the offset of today.\n")
	ids := []string{}
	for line := range strings.Lines(whole) {
		fields := strings.Fields(line)
		isEntry := fields[0] == "*"
		if isEntry {
			ids = append(ids, "* "+fields[1]+" ")
		}
	}
	require.Len(t, ids, 2)
	for _, width := range []int{20, 40, 80} {
		got := write(width)
		for _, id := range ids {
			require.Contains(t, got, id)
		}
		for line := range strings.Lines(got) {
			require.LessOrEqual(t, uniseg.StringWidth(strings.TrimSuffix(line, "\n")), width)
		}
	}
	require.Equal(t, 2, strings.Count(write(80), "\n"))
	require.Contains(t, write(40), "\n| assistant: The clocks went forward, a…\n")
	require.Contains(t, write(40), "\n  user: Why is every sheet on the wall …\n")
}
