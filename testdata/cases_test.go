package testdata

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCases: every case has what a reader must see in it, and a line in README.md. The readers' tests look into them.
func TestCases(t *testing.T) {
	sessions, err := filepath.Glob("cases/*.jsonl")
	require.NoError(t, err)
	wants, err := filepath.Glob("cases/*.want.json")
	require.NoError(t, err)
	require.NotEmpty(t, sessions)
	require.Len(t, wants, len(sessions))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, file := range sessions {
		name := strings.TrimSuffix(file, ".jsonl")
		assert.FileExists(t, name+".want.json")
		assert.Contains(t, string(readme), "\n- `"+filepath.Base(name)+"`: ")
	}
}

// TestConformanceCases: conformance/ has all that its README lists, and, where the collection is at hand that it is
// a part of, the files are the same to the byte.
func TestConformanceCases(t *testing.T) {
	readme, err := os.ReadFile("conformance/README.md")
	require.NoError(t, err)
	cases, err := filepath.Glob("conformance/*/*")
	require.NoError(t, err)
	assert.Equal(t, strings.Count(string(readme), "\n- `"), len(cases), "cases in README.md")
	for _, c := range cases {
		assert.Contains(t, string(readme), "\n- `"+filepath.Base(c)+"`: ")
	}

	whole := os.Getenv("SESSIONFS_CONFORMANCE")
	if whole == "" {
		whole = "../../shared/conformance"
	}
	if _, err := os.Stat(whole); err != nil {
		if os.Getenv("SESSIONFS_REQUIRE_FUSE") != "" {
			t.Fatalf("SESSIONFS_REQUIRE_FUSE is set, so all conformance cases must be there: %v. SESSIONFS_CONFORMANCE names their folder", err)
		}
		t.Skipf("the whole collection is not there to compare with: %v", err)
	}
	for _, c := range cases {
		name, err := filepath.Rel("conformance", c)
		require.NoError(t, err)
		assert.Equal(t, filesIn(t, filepath.Join(whole, name)), filesIn(t, c), name)
	}
}

// filesIn maps the path of each file in a directory to its content.
func filesIn(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(content)
		return err
	}))
	require.NotEmpty(t, files, dir)
	return files
}
