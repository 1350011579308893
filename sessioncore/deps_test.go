package sessioncore

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImports: imports go one way, and none leads to FUSE. A line of the page names a package of the model and, behind a colon,
// those that it may import; an indented line goes on with these.
func TestImports(t *testing.T) {
	text, err := os.ReadFile("testdata/imports.txt")
	require.NoError(t, err)
	allowed := map[string][]string{}
	pkg := "" // of the line
	for line := range strings.Lines(string(text)) {
		imports := line
		name, rest, isFirst := strings.Cut(line, ":")
		if isFirst {
			pkg = name
			imports = rest
		}
		allowed[pkg] = append(allowed[pkg], strings.Fields(imports)...)
	}
	all := build.Default
	all.UseAllFiles = true
	require.NoError(t, filepath.WalkDir(".", func(pkg string, item fs.DirEntry, err error) error {
		if err != nil || !item.IsDir() || item.Name() == "testdata" {
			return err
		}
		found, err := all.ImportDir(pkg, 0)
		if len(found.GoFiles) == 0 {
			return nil
		}
		require.NoError(t, err)
		names, known := allowed[pkg]
		require.True(t, known, "package %q is not in the table", pkg)
		delete(allowed, pkg)
		for _, path := range found.Imports {
			require.NotContains(t, strings.ToLower(path), "fuse", pkg)
			if strings.HasPrefix(path, "sessionfs/") {
				own, err := filepath.Rel("sessionfs/sessioncore", path)
				require.NoError(t, err)
				require.Contains(t, names, own, pkg)
			}
		}
		return nil
	}))
	require.Empty(t, allowed, "there are no such packages")
}
