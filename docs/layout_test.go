package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A place is a path of the mount in a table: where it can be found, and what it answers.
type place struct {
	unlisted   bool
	operations string
}

// layoutRow is a row of a table in layout.md.
var layoutRow = regexp.MustCompile("^\\| `([^`]+)` \\| (not listed)? ?\\| ([a-z ]+) \\| (\\S.*) \\|$")

// TestLayout: layout.md has each path of the table in nodes/doc.go, once and with the same operations, and no other.
func TestLayout(t *testing.T) {
	want := map[string]place{}
	text, err := os.ReadFile(filepath.Join(root, "nodes/doc.go"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "//\t"))
		if !strings.HasPrefix(line, "//\t") || fields[0] == "path" {
			continue
		}
		var p place
		if p.unlisted = fields[1] == "(unlisted)"; p.unlisted {
			fields = slices.Delete(fields, 1, 2)
		}
		p.operations = strings.Join(fields[4:len(fields)-1], " ") // behind type, reads and writes; cache is last
		want[fields[0]] = p
	}
	require.Greater(t, len(want), 20)

	text, err = os.ReadFile("layout.md")
	require.NoError(t, err)
	got := map[string]place{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		m := layoutRow.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		require.NotNil(t, m, "layout.md: not a row: %s", line)
		_, twice := got[m[1]]
		require.False(t, twice, "layout.md has %s twice", m[1])
		got[m[1]] = place{m[2] != "", m[3]}
	}
	require.Equal(t, want, got, "layout.md and nodes/doc.go (expected)")
}
