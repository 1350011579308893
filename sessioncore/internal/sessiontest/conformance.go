package sessiontest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case is an agent directory with the answers of the real client.
type Case struct {
	Name string // path in its folder of cases
	Dir  string
	Diff Difference
}

// Cases returns the cases of testdata/conformance, whose README says how to compare, and those of the whole
// collection if it is available beside the project or in SESSIONFS_CONFORMANCE.
func Cases(t *testing.T) (cases []Case) {
	whole := os.Getenv("SESSIONFS_CONFORMANCE")
	if whole == "" {
		whole = filepath.Join(moduleRoot(t), "../shared/conformance")
	}
	folders := []string{filepath.Join(TestData(t), "conformance"), whole}
	_, err := os.Stat(whole)
	if err != nil {
		if os.Getenv("SESSIONFS_REQUIRE_FUSE") != "" {
			t.Fatalf("SESSIONFS_REQUIRE_FUSE is set, so all conformance cases must be there, not only those in testdata: %v. SESSIONFS_CONFORMANCE "+
				"names their folder", err)
		}
		folders = folders[:1]
	}
	seen := map[string]bool{}
	for _, folder := range folders {
		diffs := readDifferences(t, folder)
		found, err := filepath.Glob(filepath.Join(folder, "*/*/expected"))
		require.NoError(t, err)
		flat, err := filepath.Glob(filepath.Join(folder, "*/expected")) // a folder of cases by itself
		require.NoError(t, err)
		require.NotEmpty(t, append(found, flat...), folder)
		for _, expected := range append(found, flat...) {
			agent := filepath.Dir(expected)
			name, err := filepath.Rel(folder, agent)
			require.NoError(t, err)
			if !seen[name] {
				seen[name] = true
				cases = append(cases, Case{name, agent, diffs[name]})
			}
		}
	}
	return cases
}

// Difference is an entry of differences.json: keys in which we differ on purpose.
type Difference struct {
	Keys []string `json:"keys"`
	Only string   `json:"only"`
}

func readDifferences(t *testing.T, folder string) map[string]Difference {
	diffs := map[string]Difference{}
	b, err := os.ReadFile(filepath.Join(folder, "differences.json"))
	if os.IsNotExist(err) {
		return diffs
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &diffs))
	return diffs
}
