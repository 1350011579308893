package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnCases: every session of the project's own cases shows in the mount what the real client reads. Package sessioncore
// compares the model with these and with the cases of testdata/conformance.
func TestOwnCases(t *testing.T) {
	onceIsEnough(t)
	a := newAgent(t)
	require.NoError(t, os.CopyFS(a.path(""), os.DirFS("../testdata/cases")))
	require.NoError(t, os.Rename(a.path("blobs"), filepath.Join(a.dir, "blobs")))
	m := mountForTest(t, a.dir)
	wants, err := filepath.Glob(a.path("*.want.json"))
	require.NoError(t, err)
	require.NotEmpty(t, wants)
	for _, want := range wants {
		name := strings.TrimSuffix(filepath.Base(want), ".want.json")
		switch {
		case name == "odd-ids": // lone surrogates: TestNames
		case strings.HasPrefix(name, "refused-"):
			require.NoDirExists(t, m.session(name))
		default:
			require.Empty(t, shell(t, likeTheClient, m.session(name), want), name)
		}
	}
}
