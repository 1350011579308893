package fs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// legacyIDs are the ids that the two real version 1 sessions are shown with: a hash over all of them, the
// first and the last. They follow from the files alone, so they are the same on every machine.
var legacyIDs = map[string][3]string{
	"before-compaction": {"f9df99bce990b51be9677801bb8bf897ec199b8e577ef3bd707051d9f7921d15", "fb561707.json", "6f028a24.json"},
	"large-session":     {"7f676133393bf343fe79ad74ba6f77528cf9b4c8b7a4b4f4f9c10d1ecd0e57fe", "e3285da3.json", "b1435350.json"},
}

// TestLegacySessions: the two real version 1 sessions mount, list and read, with ids that stay, and their
// files stay as they are.
func TestLegacySessions(t *testing.T) {
	fullOnly(t)
	cases := conformanceCases(t)
	real := slices.IndexFunc(cases, func(c conformanceCase) bool { return c.name == "real/pi-mono" })
	if real < 0 {
		t.Skip("they are in the whole of the conformance cases")
	}
	source := unpack(t, os.DirFS(filepath.Join(cases[real].dir, "agent")))
	before := treeSum(t, source)
	for range 2 { // the second time in a new daemon
		t.Run("mount", func(t *testing.T) {
			m := mountForTest(t, source)
			for name, want := range legacyIDs {
				dir := m.path("sessions/--Users-badlogic-workspaces-pi-mono--", name)
				ids := strings.Fields(run(t, "ls", "-U", filepath.Join(dir, "entries")))
				require.Equal(t, want, [3]string{sum256(strings.Join(ids, "\n")), ids[0], ids[len(ids)-1]}, name)
				target, err := os.Readlink(filepath.Join(dir, "leaf"))
				require.NoError(t, err)
				require.Equal(t, "entries/"+ids[len(ids)-1], target)
				run(t, "jq", "-e", ".messages|length>100", filepath.Join(dir, "context.json"))
				require.Equal(t, "3\n", run(t, "jq", ".version", filepath.Join(dir, "header.json")))
				parents := shell(t, `cd "$1/entries" && ls -U | xargs cat | jq -r '.parentId'`, dir)
				chain := append([]string{"null"}, ids[:len(ids)-1]...)
				require.Equal(t, strings.Join(chain, "\n"), strings.ReplaceAll(strings.Join(withSuffix(strings.Fields(parents)), "\n"), "null.json", "null"))
			}
		})
	}
	require.Equal(t, before, treeSum(t, source), "reading changes no file")
}

func withSuffix(ids []string) []string {
	for i := range ids {
		ids[i] += ".json"
	}
	return ids
}

// treeSum is a hash over names, content, modes and times of a directory tree on disk.
func treeSum(t testing.TB, dir string) string { return sum256(statListing(t, dir)) }

// statListing is all that there is to know of a directory on disk: the hash of each file, and modes, times, sizes and
// targets.
func statListing(t testing.TB, dir string) string {
	return shell(t, `cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum && find . -printf '%P %y %m %T@ %C@ %s %l\n' | sort`, dir)
}
