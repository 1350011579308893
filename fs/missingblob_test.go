package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMissingBlob: an image whose blob is gone is in problems.jsonl, from the next look on, and out of it when the
// blob is back. The size is exact each time.
func TestMissingBlob(t *testing.T) {
	a := demo(t)
	m := mountForTest(t, a)
	problems := m.path(demoSession, "problems.jsonl")
	look := func() string {
		t.Helper()
		b, err := os.ReadFile(problems)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintln(len(b)), run(t, "stat", "-c", "%s", problems))
		return string(b)
	}
	require.Empty(t, look())
	const hash = "d5e9708f929211b07a346e9be72de4357afb42e14b5ee48d84adb432e0622e74"
	blob := filepath.Join(a, "blobs", hash)
	for range 5 {
		require.NoError(t, os.Rename(blob, blob+".away"))
		require.Contains(t, look(), `"problem":"blob"`)
		require.Contains(t, look(), hash)
		require.NoError(t, os.Rename(blob+".away", blob))
		require.Empty(t, look())
	}
	require.NoError(t, os.Rename(filepath.Join(a, "blobs"), filepath.Join(a, "gone")))
	require.Contains(t, look(), hash)
	require.NoError(t, os.Rename(filepath.Join(a, "gone"), filepath.Join(a, "blobs")))
	require.Empty(t, look())
}
