package fs_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// crawlers are tools that walk a directory, $1, and print the content of the files that they find; $2 is an empty directory on
// disk. A copy must be the same tree.
var crawlers = map[string]string{
	"grep -r": `grep -rhoE 'MARK[0-9]{8}' "$1"`,
	"rg":      `rg --no-config -uuu -INo 'MARK[0-9]{8}' "$1"`,
	"tar":     `tar -C "$(dirname "$1")" -cf - "$(basename "$1")"`,
	"rsync -a": `rsync -a "$1/" "$2/copy" && cmp <(cd "$1" && find . -printf '%y %p %l\n' | sort) <(cd "$2/copy" && find . -printf '%y %p %l\n' | ` +
		`sort) && cat $(find "$2" -type f)`,
	"cp -a": `cp -a "$1" "$2/copy" && cmp <(cd "$1" && find . -printf '%y %p %l\n' | sort) <(cd "$2/copy" && find . -printf '%y %p %l\n' | sort) && ` +
		`cat $(find "$2" -type f)`,
	"os.walk": `python3 -c '
import os, sys
def fail(e): raise e
for d, dirs, files in os.walk(sys.argv[1], onerror=fail):
    for f in files:
        p = os.path.join(d, f)
        if not os.path.islink(p):
            with open(p, "rb") as c: sys.stdout.buffer.write(c.read())
' "$1"`,
}

// seesEachOnce runs a script, which must print the marks of all entries of the session in the directory $1 once each.
func seesEachOnce(t *testing.T, script string, args ...string) {
	t.Helper()
	require.Empty(t, shell(t, `set -o pipefail; marks() { grep -aoE 'MARK[0-9]{8}' | sort; }; { `+script+
		`; } | marks > "$2.seen" && marks < "$1.jsonl" | cmp - "$2.seen"`, args...))
}

// TestCrawlers: every tool walks the directory of a big session to its end, with status 0 and without a
// word, and sees the content of each entry once (docs/design.md, Crawlers).
func TestCrawlers(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	notUnderRace(t)
	m := mountForTest(t, big(t))
	for name, s := range bigSessions {
		t.Run(name, func(t *testing.T) {
			dir := m.session(name)
			for crawler, script := range crawlers {
				t.Run(crawler, func(t *testing.T) { seesEachOnce(t, script, dir, t.TempDir()) })
			}
			checkFind(t, dir, s.entries())
			// The sizes of stat are those that a read finds. Of entries a sample is read, since the copies read the rest.
			python(t, program(t, "walk.py"), dir)
		})
	}
}

// checkFind: no path is listed twice, none is deeper than 64 levels and what is above them, and there is a file for each entry.
// In branches/ there are links, and the empty place where they lead.
func checkFind(t *testing.T, dir string, entries int) {
	found := strings.Fields(shell(t, `find "$1" -printf '%d\t%y\t%i\t%P\n' | awk -F '\t' '
		$1 > 70 || seen[$4]++ || inode[$3]++ || $4 ~ "^branches/" && ($2 == "d") != ($4 == "branches/.by-id") { print "wrong:", $0 }
		$4 ~ "^entries/" { files++; if ($2 != "f") print "wrong:", $0 }
		$4 ~ "^tree/.*/entry.json$" { links++; if ($2 != "l") print "wrong:", $0 }
		END { print files, links, NR }'`, dir))
	require.Len(t, found, 3, "%.1000q", found)
	require.Equal(t, []string{fmt.Sprint(entries), fmt.Sprint(entries)}, found[:2], "files in entries/, entry.json in tree/")
	paths, err := strconv.Atoi(found[2])
	require.NoError(t, err)
	require.Less(t, paths, 4*entries+50, "no listing grows faster than the session")
}

// TestLongBranch: every name of a long path can be looked at, and the whole be copied.
func TestLongBranch(t *testing.T) {
	m := mountForTest(t, big(t))
	n := bigSessions["chain"].entries()
	branch := m.session("chain", "branches/current/")
	require.Equal(t, fmt.Sprintln(n), shell(t, `ls -l "$1/path/" | grep -c ' -> '`, branch))
	require.Empty(t, run(t, "find", branch+"/path/", "-size", "+1"))
	require.Equal(t, fmt.Sprintln(n), shell(t, `ls "$1/path" | wc -l`, branch))
	require.Equal(t, fmt.Sprintln(n), shell(t, `tar -C "$1" -cf - path | tar -t | grep -c json`, branch))
	seesEachOnce(t, `cat "$1/branches/current/entries.jsonl"`, m.session("chain"), t.TempDir())
	info, err := os.Stat(branch + "/entries.jsonl")
	require.NoError(t, err)
	raw, err := os.Stat(m.path("sessions/p/chain.jsonl"))
	require.NoError(t, err)
	require.Equal(t, raw.Size()-int64(len(header("chain"))), info.Size())
	tips := names(t, m.session("tips", "branches"))
	require.Len(t, tips, scaled(tipsCount)+2)
	require.Equal(t, fmt.Sprintln(scaled(tipsCount)+1), shell(t, `wc -l <"$1"`, m.session("tips", "branches.tsv")))

	fan := bigSessions["fan"].entries() // one root, and all others below it
	require.Equal(t, fmt.Sprintln(fan), shell(t, `ls -U "$1" | wc -l`, m.session("fan", "entries")))
	require.Equal(t, fmt.Sprintln(fan), shell(t, `ls -U "$1" | wc -l`, m.session("fan", "tree", entryID(0))), "its entry.json and its children")
}

// TestListingRendersNothing: the size of a transcript costs the reading of the session; a listing of
// names does not take it.
func TestListingRendersNothing(t *testing.T) {
	m := mountForTest(t, big(t))
	dir := m.session("chain")
	require.Contains(t, names(t, dir), "transcript.md")
	require.NotEmpty(t, names(t, m.session("chain", "branches"))) // indexed now
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
	require.True(t, raceEnabled || m.procNumber("status", "RssAnon") < maxResident)
}
