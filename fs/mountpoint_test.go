//go:build linux

package fs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResolveMountpoint: a mount point is found by any path to it, and a missing one is an error.
func TestResolveMountpoint(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o700))
	for link, target := range map[string]string{
		"to-b":     "a/b",
		"to-link":  "to-b",
		"absolute": filepath.Join(dir, "a"),
		"up":       "a/b/..",
		"dangling": "a/none",
		"loop":     "loop",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	for in, want := range map[string]string{
		"a/b":          "a/b",
		"to-b":         "a/b",
		"to-link/":     "a/b",
		"absolute":     "a",
		"absolute/b/.": "a/b",
		"up":           "a",
		"to-b/..":      "a", // not what a textual clean-up would give
		"to-b/../b":    "a/b",
		"a/..":         "",
		"a/b/././/":    "a/b",
		"a/b/../.":     "a",
	} {
		got, err := ResolveMountpoint(dir + "/" + in)
		require.NoError(t, err, in)
		require.Equal(t, filepath.Join(dir, want), got, in)
	}
	for _, in := range []string{"loop", "none", "none/x", "loop/x", "dangling"} {
		_, err := ResolveMountpoint(dir + "/" + in)
		require.Error(t, err, in)
	}
	for _, in := range []string{"/", "//", "/."} {
		root, err := ResolveMountpoint(in)
		require.NoError(t, err)
		require.Equal(t, "/", root)
	}
	for in, want := range map[string]string{"dangling": "a/none", "none": "none", "none/x": "none/x", "dangling/x": "a/none/x"} {
		require.Equal(t, filepath.Join(dir, want), resolveFar(dir+"/"+in), in)
	}
	require.NotEmpty(t, resolveFar(dir+"/loop/x"), "it ends")
}
