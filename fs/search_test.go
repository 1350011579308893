package fs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func debugging(c *mountConfig) { c.options.Debug = true }

// searches is how many times files were read for a search.
func (m *mount) searches() int { return strings.Count(m.logged(), "msg=searched") }

// table reads the table of a query, or of a path in by-file/, without its first line; each line is cut into its fields.
func (m *mount) table(dir, query string) (rows [][]string) {
	m.t.Helper()
	lines := strings.SplitAfter(run(m.t, "cat", filepath.Join(m.path(dir), query, "results.tsv")), "\n")
	columns := map[bool]string{false: "time\tsession\twhat\tpath\ttext\tcopies\tprompt\n",
		true: "time\tsession\twhat\tpath\tprompt\ttext\tcopies\n"}[dir == "by-file"]
	require.Equal(m.t, columns, lines[0])
	for _, line := range lines[1 : len(lines)-1] {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		require.Len(m.t, rows[len(rows)-1], strings.Count(columns, "\t")+1)
	}
	return rows
}

// searchStore has two sessions that know of Zanzibar, one of them a subagent's, and one that does not.
func searchStore(t *testing.T) string {
	a := t.TempDir()
	for name, lines := range map[string][]string{
		"p/one":   {header("one"), entry(0, "a0", "", "to Zanzibar\\tby dhow"), entry(1, "a1", "a0", "and/or back")},
		"p/one/2": {header("sub"), entry(5, "b0", "", "zanzibar again")},
		"q/other": {header("other"), entry(2, "c0", "", "nothing")},
	} {
		file := filepath.Join(a, "sessions", name+".jsonl")
		writeFile(t, file, strings.Join(lines, ""))
	}
	time.Sleep(50 * time.Millisecond) // what changed just now is read again at each look
	return a
}

// TestSearch: what a search in a mount shows, as tools see it.
func TestSearch(t *testing.T) {
	t.Parallel()
	m := mountForTest(t, searchStore(t), debugging)
	require.Equal(t, "entries\nresults.tsv\nsessions\n", run(t, "ls", "-A", m.path("search/zanzibar")))
	require.DirExists(t, m.path("search/zanzibar/entries"))
	require.Zero(t, m.searches(), "looking it up and listing it search nothing")

	rows := m.table("search", "zanzibar")
	require.Len(t, rows, 2)
	require.Equal(t, []string{"user", "sessions/p/one/2/entries/b0.json", "zanzibar again", "0", "-"}, rows[0][2:])
	require.Equal(t, []string{"user", "sessions/p/one/entries/a0.json", "to Zanzibar\\tby dhow", "0", "-"}, rows[1][2:])
	require.Equal(t, 1, m.searches())
	require.Equal(t, "0001-user-b0.json\n0002-user-a0.json\n", run(t, "ls", m.path("search/zanzibar/entries")))
	shell(t, `set -e; cd "$1/search/zanzibar"; [ "$(stat -c %s results.tsv)" = "$(wc -c < results.tsv)" ]
		tail -n +2 results.tsv | cut -f 4 | (cd ../..; xargs cat) | cmp - <(cat entries/*); [ "$(ls sessions/*/header.json | wc -l)" = 2 ]`, m.dir)
	require.Equal(t, 1, m.searches(), "again")
	require.Len(t, m.table("search", "Zanzibar"), 1)
	require.Len(t, m.table("search", "and%2For"), 1)
	require.Empty(t, m.table("search", "%252F"))
	require.Empty(t, m.table("search", "zanzibar nothing"))
	require.Equal(t, "sessions/p/one/2/entries/b0.json", m.table("sessions/p/one/2/search", "again")[0][3])
	require.Empty(t, m.table("sessions/p/one/2/search", "dhow"))
	require.Equal(t, run(t, "cat", m.path("sessions/p/one/entries/a0.json")), run(t, "cat", m.path("sessions/p/one/search/dhow/entries/0001-user-a0.json")))
	require.FileExists(t, m.path("sessions/p/one/search/dhow/sessions", names(t, m.path("sessions/p/one/search/dhow/sessions"))[0], "header.json"))

	// A session that grows is found at once, and what was listed is still there.
	grow(t, filepath.Join(m.source, "sessions/q/other.jsonl"), entry(9, "c1", "c0", "now zanzibar too"))
	require.Contains(t, run(t, "cat", m.path("search/zanzibar/entries/0001-user-b0.json")), "zanzibar again")
	require.Equal(t, "sessions/q/other/entries/c1.json", m.table("search", "zanzibar")[0][3])

	// Archived sessions are another tree.
	archived := filepath.Join(m.source, "archive/sessions/p/old.jsonl")
	writeFile(t, archived, header("old")+entry(0, "d0", "", "zanzibar long ago"))
	run(t, "gzip", archived)
	require.Equal(t, "archive/p/old/entries/d0.json", m.table("search", "in:archive zanzibar")[0][3])
	require.Contains(t, run(t, "cat", m.path("search/in:archive zanzibar/entries/0001-user-d0.json")), "long ago")
	require.Len(t, m.table("archive/p/old/search", "zanzibar"), 1)

	// What a fork copied is listed with the session that it is from.
	fork := strings.Replace(header("fork"), `"cwd"`, `"parentSession":"one","cwd"`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(m.source, "sessions/p/fork.jsonl"), []byte(fork+
		entry(0, "a0", "", "to Zanzibar\\tby dhow")+entry(3, "a2", "a0", "our dhow")), 0o644))
	rows = m.table("search", "dhow")
	require.Equal(t, []string{"sessions/p/fork/entries/a2.json", "our dhow", "0", "-"}, rows[0][3:])
	require.Equal(t, []string{"sessions/p/one/entries/a0.json", "to Zanzibar\\tby dhow", "1", "-"}, rows[1][3:])
	require.Len(t, rows, 2)
	require.Len(t, m.table("sessions/p/fork/search", "dhow"), 2)

	for query, why := range map[string]string{
		"role:nobody": "role: is user, assistant or tool", `"x`: "does not end", "modle:x": "agent: after:", "agent:claude": "agent: is omp here",
	} {
		_, err := os.Stat(m.path("search", query))
		require.ErrorIs(t, err, syscall.EINVAL, query)
		require.Contains(t, run(t, "cat", m.path("last-error")), why)
	}
	// What shells, file managers and git look for in every directory costs no search, and is found if that is asked for.
	before := m.searches()
	shell(t, `cd "$1/search"; for name in .git .hidden .directory .envrc .Trash-1000; do [ -d $name ] && [ ! -e $name/HEAD ] || exit 1; done
		! git rev-parse 2>&-; rg --hidden x .; [ $? = 1 ]`, m.dir)
	require.Equal(t, before, m.searches())
	require.Len(t, m.table("search", ".x agent:omp title:nothing"), 0)
	for _, name := range []string{"search/x/entries/0001-user-x.json", "search/x/other", "search/x/sessions/1"} {
		_, err := os.Lstat(m.path(name))
		require.ErrorIs(t, err, fs.ErrNotExist, name)
	}
	require.ErrorIs(t, os.Mkdir(m.path("search/x/y"), 0o700), syscall.EPERM)
}

// TestCrawlersSearchNothing: no tool that walks the mount starts a search.
func TestCrawlersSearchNothing(t *testing.T) {
	t.Parallel()
	m := mountForTest(t, searchStore(t), debugging)
	for _, line := range []string{`ls -lR "$1"`, `find "$1" -type f -size +1 -ls`, `rg -uuu Zanzibar "$1"`, `grep -r Zanzibar "$1"`,
		`tar -cf /dev/null -C "$1" .`} {
		require.NotEmpty(t, shell(t, line+` | cat; [ -d "$1" ] && echo done`, m.dir), line)
	}
	require.Zero(t, m.searches())
	require.Len(t, m.table("search", "zanzibar"), 2)
	require.Equal(t, 1, m.searches(), "they would have been counted")
}

// TestSearchRedacted: a redacted mount neither shows nor confirms a secret.
func TestSearchRedacted(t *testing.T) {
	m := mountForTest(t, plantedStore(t), func(c *mountConfig) { c.options.Redact, c.options.ReadOnly = true, true })
	rows := m.table("search", "role:user first")
	require.Len(t, rows, 1)
	require.NotContains(t, fmt.Sprint(rows), plantedPassword)
	for _, secret := range []string{plantedToken, plantedPassword} {
		for n := 3; n <= len(secret); n++ {
			require.Empty(t, m.table("search", secret[len(secret)-n:]), "a part of a secret finds nothing")
		}
	}
	require.Len(t, m.table("search", "role:user first -"+plantedPassword), 1)
	_, err := os.Stat(m.path("search/in:archive x"))
	require.ErrorIs(t, err, syscall.EINVAL)
}

// TestListedHits: who lists the links of a query starts one search, whatever others find meanwhile; and what was listed leads
// to its entry, also where newer hits have taken its number.
func TestListedHits(t *testing.T) {
	const entries = 300
	a, lines := newAgent(t), []string{header("s")}
	for n := range entries {
		lines = append(lines, entry(n%60, entryID(n), "", "zanzibar"))
	}
	a.write("one", lines...)
	a.write("other", strings.Split(strings.ReplaceAll(strings.Join(lines, "\x00"), "zanzibar", "a zanzibar"),
		"\x00")...) // its links have the same names, but for the number
	m := mountForTest(t, a.dir, debugging)
	newer := func(n int, table string) {
		a.add("one", entry(59, entryID(entries+n), "", "zanzibar"))
		run(t, "cat", m.path(table, "results.tsv"))
		a.add("one", entry(59, entryID(entries+n+1), "", "zanzibar"))
	}
	list := m.path("search/zanzibar/entries")
	dir, err := os.Open(list)
	require.NoError(t, err)
	defer dir.Close()
	some, err := dir.Readdirnames(1) // of the first 8 KiB
	require.NoError(t, err)
	newer(0, "search/zanzibar")
	before := m.searches()
	rest, err := dir.Readdirnames(-1)
	require.NoError(t, err)
	require.Len(t, append(some, rest...), 2*entries)
	require.Equal(t, before, m.searches())

	list = m.session("one", "search/zanzibar/entries")
	listed := names(t, list)
	newer(2, "sessions/p/one/search/zanzibar")
	before = m.searches()
	for _, name := range listed {
		to := readLink(t, filepath.Join(list, name))
		require.Equal(t, name[len("0001-user-"):], filepath.Base(to))
	}
	require.Len(t, listed, entries+2)
	require.Equal(t, before, m.searches())
}
