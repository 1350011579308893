package fs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEntriesAreReadWhole: entries of all sizes around those of pipes, at all offsets in a page, are read
// to their last byte at the first try. (Spliced from the session file, some came back short.)
func TestEntriesAreReadWhole(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	lines := []string{header("s")}
	for _, around := range []int{4096, 57_000, 59_000, 61_000, 61_400, 122_500, 124_000, 126_000, 254_000, 257_000} {
		for k := 0; k < 30; k += sized(1, 4) {
			lines = append(lines, fmt.Sprintf(`{"type":"x","id":"e%d","text":"%s"}`+"\n", len(lines), strings.Repeat("x", around+k*137)))
		}
	}
	a.write("s", lines...)
	m := mountForTest(t, a.dir)
	for n, line := range lines[1:] {
		got := read(t, m.session("s", "entries", fmt.Sprintf("e%d.json", n+1)))
		require.True(t, string(got) == line, "%d bytes of %d", len(got), len(line))
	}
	require.True(t, string(read(t, m.path("sessions/p/s.jsonl"))) == strings.Join(lines, ""))
}
