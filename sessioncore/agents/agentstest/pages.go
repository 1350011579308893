package agentstest

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// eachCase calls f for each case of the pages testdata/convert/*.txt: a file, and behind it the file "want".
func eachCase(t testing.TB, f func(name, file, want string)) {
	pages, err := filepath.Glob("testdata/convert/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		archive, err := txtar.ParseFile(page)
		require.NoError(t, err)
		for ; len(archive.Files) > 0; archive.Files = archive.Files[2:] {
			file := archive.Files[0]
			want := archive.Files[1]
			require.Equal(t, "want", want.Name, file.Name)
			name := filepath.Base(page) + "/" + file.Name
			f(name, string(file.Data), string(want.Data))
		}
	}
}

// Seeds adds the files of the cases to the corpus of a fuzz target.
func Seeds(f *testing.F, add func(file string)) {
	eachCase(f, func(_, file, _ string) { add(file) })
}
