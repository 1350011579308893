package sessiontest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// Page calls check with each case of a page of testdata, an archive of texts: the text that is named as the case, and the
// text "want" behind it. The newline at the end of the first belongs to the page. Both are expanded.
func Page(t *testing.T, page string, check func(t *testing.T, name, give, want string)) {
	archive, err := txtar.ParseFile(page)
	require.NoError(t, err)
	require.NotEmpty(t, archive.Files)
	for files := archive.Files; len(files) > 0; files = files[2:] {
		require.Greater(t, len(files), 1, files[0].Name)
		require.Equal(t, "want", files[1].Name, files[0].Name)
		check(t, files[0].Name, Expand(strings.TrimSuffix(string(files[0].Data), "\n")), Expand(string(files[1].Data)))
	}
}

var repeated = regexp.MustCompile(`⟨([^⟩]+) × ([0-9]+)⟩`)

// Expand writes out repeated texts: "⟨ab × 3⟩" becomes ababab.
func Expand(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(short string) string {
		parts := repeated.FindStringSubmatch(short)
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			panic(err)
		}
		return strings.Repeat(parts[1], n)
	})
}
