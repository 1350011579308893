package docs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
)

// TestLayout: the tables of layout.md are what nodes.Layout says. SESSIONFS_UPDATE_DOCS=1 writes them anew.
func TestLayout(t *testing.T) {
	text, err := os.ReadFile("layout.md")
	require.NoError(t, err)
	want := string(text)
	for _, section := range nodes.Layout {
		table := regexp.MustCompile(`(?m)(^## ` + section.Title + `\n(?:[^|#].*\n|\n)*)(?:\|.*\n)*`)
		require.True(t, table.MatchString(want), "layout.md has no section %s", section.Title)
		want = table.ReplaceAllString(want, "${1}"+strings.ReplaceAll(tableOf(section), "$", "$$"))
	}
	if os.Getenv("SESSIONFS_UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile("layout.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "SESSIONFS_UPDATE_DOCS=1 go test ./docs writes it anew")
}

func tableOf(s nodes.Section) string {
	out := "| path | | what it is | code |\n| --- | --- | --- | --- |\n"
	for _, r := range s.Rows {
		hidden := ""
		if r.Hidden {
			hidden = "not listed "
		}
		out += fmt.Sprintf("| `%s` | %s| %s | %s |\n", r.Path, hidden, r.What, r.File)
	}
	return out
}
