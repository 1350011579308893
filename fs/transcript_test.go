package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// transcript.md and usage.json through real tools.

// demoSession is the session of the demo that has everything in it.
const demoSession = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_019d3d96-6b66-7996-8ead-42aae5653abc"

// TestTranscriptLinksLead: every link of every transcript leads to a file of the mount, from where the
// transcript lies, wherever that is.
func TestTranscriptLinksLead(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	notUnderRace(t)
	a := demo(t)
	image := `{"type":"image","data":"blob:sha256:d5e9708f929211b07a346e9be72de4357afb42e14b5ee48d84adb432e0622e74","mimeType":"image/png"}`
	long := strings.Repeat("a line of output\\n", sized(500_000, 50_000)/17)
	id := `a (b) %41 <c> ä`
	content := header("s") + `{"type":"message","id":"` + id +
		`","parentId":null,"timestamp":"2026-02-16T11:00:00.000Z","message":{"role":"toolResult","toolName":"bash",` +
		`"content":[{"type":"text","text":"` + long + `"},` + image + `,{"type":"image","data":"R0lG","mimeType":"image/gif"}]}}` + "\n"
	flat, deep := filepath.Join(a, "sessions/flat.jsonl"), filepath.Join(a, demoSession, "a/b/deep.jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(deep), 0o755))
	for _, file := range []string{flat, deep} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	m := mountForTest(t, a)
	for _, dir := range []string{"sessions/flat", demoSession, demoSession + "/artifacts/a/b/deep", demoSession + "/a/b/deep", demoSession + "/Task-1"} {
		for pass := range 2 { // with the kernel's memory of it, and without
			text := run(t, "cat", m.path(dir, "transcript.md"))
			require.Equal(t, fmt.Sprintf("%d\n", len(text)), run(t, "stat", "-c", "%s", m.path(dir, "transcript.md")), "%d", pass)
			if strings.HasSuffix(dir, "deep") || strings.HasSuffix(dir, "flat") {
				require.Less(t, len(text), 8<<10)
				require.Equal(t, 2, strings.Count(text, "](entries/a%20%28b%29%20%252541%20%3Cc%3E%20%C3%A4.json)"))
				require.Equal(t, 1, strings.Count(text, "/blobs/"))
			}
			checkLinks(t, m.path(dir))
			branch := m.path(dir, "branches/current")
			checkLinks(t, branch)
			up := regexp.MustCompile(`\]\((\.\./)+`)
			require.True(t, up.ReplaceAllString(text, "](") == up.ReplaceAllString(run(t, "cat", branch+"/transcript.md"), "]("), branch)
		}
	}
}

// checkLinks follows the links of the transcript in a directory.
func checkLinks(t *testing.T, dir string) {
	shell(t, `cd "$1" && links=$(grep -oP '\]\(\K(\.\./)*(entries|blobs)/[^)]*' transcript.md) && while read -r link; do
		[ -f "$(printf '%b' "${link//%/\\x}")" ] || exit; done <<< "$links"`, dir)
}

// TestListingRendersNothing: the size of a transcript costs the reading of the session; who only lists the
// names does not pay for it.
func TestListingRendersNothing(t *testing.T) {
	m := mountForTest(t, big(t))
	dir := m.session("chain")
	require.Contains(t, names(t, dir), "transcript.md") // indexed now
	read := func() int { return m.procNumber("io", "rchar") }
	before := read()
	require.Contains(t, run(t, "ls", dir), "transcript.md\ntree\nusage.json\n")
	require.Less(t, read()-before, 1<<20)
	size := run(t, "stat", "-c", "%s", dir+"/transcript.md")
	raw, err := os.Stat(m.path("sessions/p/chain.jsonl"))
	require.NoError(t, err)
	most := int(raw.Size()) * 4 / 5
	require.Greater(t, read()-before, most)
	run(t, "stat", dir+"/problems.jsonl", dir+"/usage.json") // which look at the messages, too
	before = read()
	require.Contains(t, run(t, "ls", "-l", dir), " "+strings.TrimSpace(size)+" ")
	require.Equal(t, size, run(t, "stat", "-c", "%s", dir+"/transcript.md"))
	require.Less(t, read()-before, most, "once is enough")
	require.Equal(t, size, shell(t, `cat "$1" | wc -c`, dir+"/transcript.md"))
	require.Less(t, m.procNumber("status", "VmRSS"), 2*maxResident)
}
