package fs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is a row of the tables of docs/sessionfs.1.md, FILES.
type row struct {
	Path    string
	Hidden  bool // found only by its name
	kind    fs.FileMode
	pattern *regexp.Regexp
	rank    int // of the rows that fit a path, the one with the highest is its row
}

// pathRows returns the rows of all tables of docs/sessionfs.1.md, FILES.
func pathRows(t *testing.T) []row {
	manual, err := os.ReadFile("../docs/sessionfs.1.md")
	require.NoError(t, err)
	_, files, isThere := strings.Cut(string(manual), "\n# FILES\n")
	require.True(t, isThere)
	files, _, _ = strings.Cut(files, "\n# ")
	var rows []row
	for _, cells := range regexp.MustCompile("(?m)^\\| `(.*?)`(°)? \\| .* \\|$").FindAllStringSubmatch(files, -1) {
		r := row{Path: cells[1], Hidden: cells[2] != ""}
		path := strings.TrimSuffix(strings.TrimSuffix(r.Path, "@"), "/")
		switch {
		case strings.HasSuffix(r.Path, "/"):
			r.kind = fs.ModeDir
		case strings.HasSuffix(r.Path, "@"):
			r.kind = fs.ModeSymlink
		}
		path = regexp.QuoteMeta(path)
		path = strings.ReplaceAll(path, "…/", "(?:[^/]+/)*")
		path = strings.ReplaceAll(path, "<session>", `([^/]+)`)
		path = strings.ReplaceAll(path, "<sha256>", `[0-9a-f]{64}`)
		path = regexp.MustCompile("<[a-z]+>").ReplaceAllString(path, `[^/]+`)
		r.pattern = regexp.MustCompile("^" + path + "$")
		r.rank = len(regexp.MustCompile("<[a-z0-9]+>|…").ReplaceAllString(r.Path, ""))
		if strings.Contains(r.Path, "<session>") {
			r.rank += 100
		}
		rows = append(rows, r)
	}
	return rows
}

// fits reports whether a path of the mount is of the row.
func (r *row) fits(path string, kind fs.FileMode, sessions map[string]bool) bool {
	at := r.pattern.FindStringSubmatchIndex(path)
	if kind != r.kind || at == nil {
		return false
	}
	hasSession := len(at) >= 4 // the first group is the path of a session
	return !hasSession || sessions[path[:at[3]]]
}

// TestEveryPathHasItsRow: the manual tells of all that is in a mount, and of nothing else.
func TestEveryPathHasItsRow(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	notUnderRace(t)
	a := demo(t)
	long := []string{header("long")}
	for n := range 150 {
		long = append(long, entry(n, entryID(n), before(n, n-1), "deep"))
	}
	dir := filepath.Join(a, "sessions/--home-dev-tidetable--")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long.jsonl"), []byte(strings.Join(long, "")), 0o644))
	require.NoError(t, os.Symlink("long.jsonl", filepath.Join(dir, "link")))
	require.NoError(t, os.CopyFS(filepath.Join(a, "sessions"), os.DirFS("../testdata/operator/sessions"))) // which lie flat
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(a, "archive/sessions/link")))
	accompany(t, withLease, socketOf(filepath.Join(dir, ".2026-03-30T07-12-41-318Z_019d3d96-6b66-7996-8ead-42aae5653abc.jsonl.owner.lock")))
	m := mountForTest(t, a)
	rows := pathRows(t)
	hit := map[string]int{}
	kinds := map[byte]fs.FileMode{'d': fs.ModeDir, 'l': fs.ModeSymlink, 'f': 0}
	listing := strings.Split(strings.TrimSuffix(run(t, "find", m.dir, "-printf", `%y%P\n`), "\n"), "\n")
	sessions := map[string]bool{} // which have their file beside them
	for _, line := range listing {
		file, isSession := strings.CutSuffix(strings.TrimSuffix(line, ".gz"), ".jsonl")
		if isSession && line[0] == 'f' {
			sessions[file[1:]] = true
		}
	}
	check := func(path string, kind fs.FileMode, unlisted bool) {
		var best *row
		for i := range rows {
			r := &rows[i]
			isFit := r.Hidden == unlisted && r.fits(path, kind, sessions)
			if isFit && (best == nil || r.rank > best.rank) {
				best = r
			}
		}
		if best == nil {
			t.Errorf("no row for %s (%v)", path, kind)
			return
		}
		hit[best.Path]++
	}
	for _, line := range listing {
		check(line[1:], kinds[line[0]], false)
	}
	const subagent = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_019d3d96-6b66-7996-8ead-42aae5653abc"
	require.NoError(t, os.Symlink("entries/x.json", m.path(subagent, "waiting"))) // to be renamed to leaf
	unlisted := []string{"0.bash.log", "local", "owner", "secrets.jsonl", "waiting"}
	current := readLink(t, m.path(subagent, "branches/current"))
	branch := "branches/" + current
	unlisted = append(unlisted, branch, branch+"/path/"+names(t, m.path(subagent, branch, "path"))[0])
	for _, name := range names(t, m.path(subagent, branch)) {
		unlisted = append(unlisted, branch+"/"+name)
	}
	for _, name := range unlisted {
		info, err := os.Lstat(m.path(subagent, name))
		require.NoError(t, err)
		check(subagent+"/"+name, info.Mode().Type(), true)
	}
	check("by-id/019d3d", fs.ModeSymlink, true)
	for _, query := range []string{"search/the", subagent + "/search/the", "by-file/home/dev"} {
		require.DirExists(t, m.path(query))
		check(query, fs.ModeDir, true)
		for line := range strings.Lines(run(t, "find", m.path(query), "-mindepth", "1", "-printf", `%y%P\n`)) {
			check(query+"/"+strings.TrimSuffix(line[1:], "\n"), kinds[line[0]], true)
		}
	}
	for _, name := range []string{"history/search/tides", "index.jsonl", "archive/index.jsonl", "usage.jsonl", "lost.tsv"} {
		require.FileExists(t, m.path(name))
		check(name, 0, true)
	}
	for _, r := range rows {
		require.NotZero(t, hit[r.Path], "nothing is at %s", r.Path)
	}
}
