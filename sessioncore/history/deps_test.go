package history

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImports: the package is usable without the file system, and nothing in it needs cgo (docs/design.md section 10).
func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.CgoFiles}}", ".")
	var problems strings.Builder
	list.Stderr = &problems
	out, err := list.Output()
	require.NoError(t, err, problems.String())
	require.Contains(t, string(out), "github.com/ncruces/go-sqlite3 []", "the list is not this package's")
	for dep := range strings.Lines(string(out)) {
		name, cgo, _ := strings.Cut(strings.TrimSpace(dep), " ")
		if strings.Contains(strings.ToLower(name), "fuse") || strings.Contains(name, ".") && cgo != "[]" {
			t.Errorf("it depends on %s", dep)
		}
	}
}
