package sessioncore

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImportsNoFUSE: the model is usable as a library, and imports go one way (docs/design.md section 10).
func TestImportsNoFUSE(t *testing.T) {
	list := exec.Command("go", "list", "-deps", ".")
	var problems strings.Builder
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		t.Skipf("go list does not run here: %v\n%s", err, problems.String())
	}
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "golang.org/x/sys/unix", "the list is not this package's")
	for _, dep := range deps {
		fuse := strings.Contains(strings.ToLower(dep), "fuse")
		upwards := strings.HasPrefix(dep, "sessionfs/") && dep != "sessionfs/sessioncore" &&
			!strings.HasPrefix(dep, "sessionfs/sessioncore/internal/")
		if fuse || upwards {
			t.Errorf("sessioncore depends on %s", dep)
		}
	}
}
