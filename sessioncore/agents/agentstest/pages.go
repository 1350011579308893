package agentstest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// Pages runs check for each case of the pages testdata/convert/*.txt. A case is a file of an agent, named by what it
// shows, and behind it the outline of its session's entries.
func Pages(t *testing.T, check func(t *testing.T, file string, want []string)) {
	pages, err := filepath.Glob("testdata/convert/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		archive, err := txtar.ParseFile(page)
		require.NoError(t, err)
		for ; len(archive.Files) > 0; archive.Files = archive.Files[2:] {
			file, outline := archive.Files[0], archive.Files[1]
			require.Equal(t, "want", outline.Name, file.Name)
			t.Run(filepath.Base(page)+"/"+file.Name, func(t *testing.T) {
				check(t, string(file.Data), strings.Split(strings.TrimSuffix(string(outline.Data), "\n"), "\n"))
			})
		}
	}
}
