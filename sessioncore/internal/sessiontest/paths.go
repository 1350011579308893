package sessiontest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestData returns the path of the project's folder testdata.
func TestData(t testing.TB) string { return filepath.Join(moduleRoot(t), "testdata") }

// moduleRoot returns the folder that holds go.mod. Tests run in the folder of their package.
func moduleRoot(t testing.TB) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir
		}
		require.NotEqual(t, filepath.Dir(dir), dir, "no go.mod above the tests")
		dir = filepath.Dir(dir)
	}
}

// DemoDir returns the folder of the demo's sessions.
func DemoDir(t testing.TB) string { return filepath.Join(TestData(t), "demo/sessions") }

// StoreFiles returns the paths of the session files of operator, xcsh and pi in testdata.
func StoreFiles(t testing.TB) (files []string) {
	for _, pattern := range []string{"operator/sessions/*.jsonl", "xcsh/sessions/*/*.jsonl", "pi/sessions/*/*.jsonl"} {
		found, err := filepath.Glob(filepath.Join(TestData(t), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	return files
}
