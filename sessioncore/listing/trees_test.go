package listing

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// cwdListing is a listing of sessions s0, s1, … in these directories.
func cwdListing(t *testing.T, cwds ...string) *Listing {
	var files [][2]string
	for i, cwd := range cwds {
		header := string(rawjson.AppendQuoted(fmt.Appendf(nil, `{"type":"session","id":"id%d","cwd":`, i), cwd)) + "}\n"
		files = append(files, [2]string{fmt.Sprintf("p/s%d.jsonl", i), header})
	}
	return listOf(t, files...)
}

// cwdNames lists a directory.
func cwdNames(t *testing.T, l *Listing, dir string) []string { return namesIn(t, l, ByCwd, dir) }

// namesIn lists a directory of a tree, with a slash behind directories.
func namesIn(t *testing.T, l *Listing, tree KeyTable, dir string) []string {
	entries, err := l.TreeList(context.Background(), tree, dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name+map[bool]string{true: "/"}[e.Dir != ""])
	}
	slices.Sort(names)
	return names
}

// TestCwdNames: the names of by-cwd/, what they stand for, and what else is found.
func TestCwdNames(t *testing.T) {
	for dir, shown := range map[string]string{
		"plain": "plain", ".hidden": ".hidden", "-rf": "-rf", "100%": "100%", " ": " ", "é🌱": "é🌱", "C:\\x": "C:\\x", "latest": "%6Catest",
		"%6Catest": "%6Catest", "\xED\xA0\xBD": "\xED\xA0\xBD", strings.Repeat("l", 255): strings.Repeat("l", 255),
	} {
		l := cwdListing(t, "/w/"+dir, "/w/"+dir+"/below")
		require.Equal(t, []string{shown + "/"}, cwdNames(t, l, "/w"), "%q", dir)
		for _, name := range []string{dir, shown} {
			require.Equal(t, "/w/"+dir, l.named(t, ByCwd, "/w", name), "%q", name)
		}
		require.Equal(t, []string{"below/", "id0", "latest"}, cwdNames(t, l, "/w/"+dir))
		if dir != "latest" {
			require.Empty(t, l.named(t, ByCwd, "/w", "latest"), "%q: there is no session in /w itself", dir)
		}
		for _, name := range []string{shown + "x", "id0", "%70lain"} {
			require.Empty(t, l.named(t, ByCwd, "/w", name), "%q", name)
		}
	}
}

// TestCwdPaths: a working directory of any system is shown as a clean path, or not at all.
func TestCwdPaths(t *testing.T) {
	sessiontest.Table(t, "testdata/cwd.txt", func(t *testing.T, _, cwd string) string {
		l := cwdListing(t, cwd)
		dir, ok := cleanCwd(cwd)
		if !ok {
			require.Empty(t, cwdNames(t, l, "/"), "%.60q", cwd)
			return ""
		}
		require.Equal(t, "p/s0.jsonl", l.named(t, ByCwd, dir, "latest"), "%.60q", cwd)
		_, err := l.TreeStat(context.Background(), ByCwd, dir)
		require.NoError(t, err)
		return dir
	})
	_, ok := cleanCwd("/a\x00b")
	require.False(t, ok)
	l := cwdListing(t, `C:\Users\Ada`)
	require.Equal(t, "/C:/Users", l.named(t, ByCwd, "/", `c:\Users`), "a directory of Windows is found by its path there")
}

// TestCwdCollisions: latest wins, then a directory, then a session; and each has a name of its own.
func TestCwdCollisions(t *testing.T) {
	header := func(title, cwd string) string {
		return `{"type":"session","id":"x","title":"` + title + `","cwd":"` + cwd + `"}` + "\n"
	}
	l := listOf(t,
		[2]string{"p/a.jsonl", header("latest", "/w")}, [2]string{"p/b.jsonl", header("twin", "/w")}, [2]string{"q/b.jsonl", header("twin", "/w")},
		[2]string{"p/c.jsonl", header("sub", "/w")}, [2]string{"p/1.jsonl", header("", "/w/sub")}, [2]string{"p/2.jsonl", header("", "/w/latest/x")},
		[2]string{"p/d.jsonl", header("own", "/w")},
	)
	names := cwdNames(t, l, "/w")
	hash := regexp.MustCompile("~[0-9a-f]+")
	require.Equal(t, "%6Catest/ latest latest~ own sub/ sub~ twin~ twin~", hash.ReplaceAllString(strings.Join(names, " "), "~"))
	found := map[string]bool{}
	for _, name := range names {
		at := l.named(t, ByCwd, "/w", strings.TrimSuffix(name, "/"))
		require.Equal(t, strings.HasSuffix(name, "/"), strings.HasPrefix(at, "/w/"), name)
		found[at] = true
	}
	require.Len(t, found, 7, "latest is one of them")
	require.Equal(t, "/w/latest/x", l.named(t, ByCwd, "/w/latest", "x"))

	alone := listOf(t, [2]string{"p/a.jsonl", header("latest", "/w")}, [2]string{"p/b.jsonl", header("own", "/w")})
	require.Equal(t, "latest latest~ own", hash.ReplaceAllString(strings.Join(cwdNames(t, alone, "/w"), " "), "~"))
}

// TestTreeNames: in both trees a link is named by when the session began, as a clock here shows it, and by its title; it has
// another name when the title changes, even where only its directory is looked at.
func TestTreeNames(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.FixedZone("", -5*3600)
	header := func(at, title, more string) string {
		return `{"type":"session","version":3,"id":"x","timestamp":"` + at + `","cwd":"/w","title":"` + title + `"` + more + "}\n"
	}
	l := listOf(t, [2]string{"p/a.jsonl", header("2026-01-06T02:07:09.000Z", "Tide sheets", "")},
		[2]string{"p/b.jsonl", header("2026-01-06T05:00:00.000Z", "Tide sheets", `,"parentSession":"/agent/sessions/p/a.jsonl"`)},
		[2]string{"p/c.jsonl", header("never", "Tide sheets", "")})
	list := func(tree KeyTable, dir string) []string { return namesIn(t, l, tree, dir) }
	require.Equal(t, []string{"2026-01-05/", "2026-01-06/"}, list(ByDate, "/"))
	require.Equal(t, []string{"21-07-Tide sheets", "latest"}, list(ByDate, "/2026-01-05"))
	require.Equal(t, []string{"00-00-Tide sheets (fork)", "latest"}, list(ByDate, "/2026-01-06"))
	require.Equal(t, []string{"2026-01-05T21-07-Tide sheets", "2026-01-06T00-00-Tide sheets (fork)", "Tide sheets", "latest"}, list(ByCwd, "/w"))
	l.write(t, "p/a.jsonl", header("2026-01-06T02:07:09.000Z", "Tide charts", ""))
	require.Empty(t, l.named(t, ByDate, "/2026-01-05", "21-07-Tide sheets"))
	require.Equal(t, "p/a.jsonl", l.named(t, ByDate, "/2026-01-05", "21-07-Tide charts"))
	l.write(t, "p/a.jsonl", header("2026-01-06T02:07:09.000Z", "Tides", ""))
	require.Equal(t, []string{"21-07-Tides", "latest"}, list(ByDate, "/2026-01-05"))
}

// TestCwdDepth: the depth of listings is bounded; a deeper directory is found by its path.
func TestCwdDepth(t *testing.T) {
	deep := strings.Repeat("/d", 400)
	l := cwdListing(t, deep)
	require.Equal(t, []string{"d/"}, cwdNames(t, l, strings.Repeat("/d", maxListedLevels-1)))
	require.Empty(t, cwdNames(t, l, strings.Repeat("/d", maxListedLevels)))
	require.Equal(t, "p/s0.jsonl", l.named(t, ByCwd, deep, "latest"))
}

// checkTrees walks both trees, and checks that each listed name is a file name, once in its directory, and found as the kind
// that it was listed as.
func checkTrees(t *testing.T, l *Listing) {
	type place struct {
		tree KeyTable
		dir  string
	}
	places := []place{{ByCwd, "/"}, {ByDate, "/"}}
	for len(places) > 0 {
		at := places[0]
		places = places[1:]
		listed := map[string]bool{}
		entries, err := l.TreeList(context.Background(), at.tree, at.dir)
		require.NoError(t, err)
		for _, e := range entries {
			require.False(t, listed[e.Name], "%q is listed twice", e.Name)
			listed[e.Name] = true
			require.NotContains(t, []string{"", ".", ".."}, e.Name)
			require.False(t, strings.ContainsAny(e.Name, "/\x00"), "%q", e.Name)
			require.LessOrEqual(t, len(e.Name), maxElement)
			found, err := l.TreeFind(context.Background(), at.tree, at.dir, e.Name, false)
			require.NoError(t, err)
			require.Equal(t, e.Dir, found.Dir, "%q", e.Name)
			if e.Dir != "" {
				places = append(places, place{at.tree, e.Dir})
			}
		}
	}
}

// TestScope: the directory that has the sessions of a working directory, whatever its name; of several the one with the
// latest session.
func TestScope(t *testing.T) {
	header := func(cwd string) string { return `{"type":"session","version":3,"id":"x","cwd":"` + cwd + `"}` + "\n" }
	l := listOf(t,
		[2]string{"-dev-pi/2026-01-01T00-00-00-000Z_a.jsonl", header("/home/dev/pi")},
		[2]string{"-dev-pi/2026-01-05T00-00-00-000Z_a.jsonl", header("/home/dev/other/")},
		[2]string{"--home-dev-pi--/2026-01-02T00-00-00-000Z_a.jsonl", header("/home/dev/pi")},
		[2]string{"--home-dev-pi--/.2026-01-03T00-00-00-000Z_a.jsonl.1.tmp", header("/home/dev/old")},
		[2]string{"--home-dev-pi--/2026-01-04T00-00-00-000Z_a.jsonl", "no session\n"},
		[2]string{"flat.jsonl", header("/home/dev/flat")},
	)
	for cwd, want := range map[string]string{
		"/home/dev/pi": "--home-dev-pi--", "/home/dev/other": "-dev-pi", "/home/dev/old": "", "/home/dev/flat": "", "relative": "",
	} {
		got, err := l.Scope(t.Context(), cwd, "")
		require.NoError(t, err)
		require.Equal(t, want, got, cwd)
	}
	got, err := l.Scope(t.Context(), "/home/dev/pi", "--home-dev-pi--/2026-01-02T00-00-00-000Z_a.jsonl")
	require.NoError(t, err)
	require.Equal(t, "-dev-pi", got, "without the one that is to be moved")
}
