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
func Page[T testing.TB](t T, page string, check func(t T, name, give, want string)) {
	archive, err := txtar.ParseFile(page)
	require.NoError(t, err)
	require.NotEmpty(t, archive.Files)
	for files := archive.Files; len(files) > 0; files = files[2:] {
		require.Greater(t, len(files), 1, files[0].Name)
		require.Equal(t, "want", files[1].Name, files[0].Name)
		check(t, files[0].Name, Expand(strings.TrimSuffix(string(files[0].Data), "\n")), Expand(string(files[1].Data)))
	}
}

// Table calls answer with each line of a page of testdata, an archive of texts: the name of its text, and the part before " => ".
// The part behind that, which may be "", is the answer. Both are expanded.
func Table[T testing.TB](t T, page string, answer func(t T, name, give string) string) {
	archive, err := txtar.ParseFile(page)
	require.NoError(t, err)
	require.NotEmpty(t, archive.Files)
	for _, file := range archive.Files {
		for line := range strings.Lines(string(file.Data)) {
			give, want, ok := strings.Cut(Expand(strings.TrimSuffix(line, "\n"))+" ", " => ")
			require.True(t, ok, "%s: %s", page, line)
			require.Equal(t, strings.TrimSuffix(want, " "), answer(t, file.Name, give), line)
		}
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
