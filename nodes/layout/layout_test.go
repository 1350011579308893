package layout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/"}` + "\n"

// entry is an entry under a parent, "" for none.
func entry(id, parent string) string {
	return fmt.Sprintf(`{"type":"custom","id":%q,"parentId":%q,"timestamp":"2026-02-16T10:20:31.000Z"}`+"\n", id, parent)
}

// acquire returns a snapshot of a session with that content.
func acquire(t testing.TB, content string) (*sessioncore.Snapshot, error) {
	t.Helper()
	files := memory.New()
	require.NoError(t, files.WriteFile("s.jsonl", []byte(content)))
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	snap, err := store.Session("s.jsonl").Acquire(context.Background())
	if err == nil {
		t.Cleanup(snap.Release)
	}
	return snap, err
}

func snapshotOf(t testing.TB, content string) *sessioncore.Snapshot {
	t.Helper()
	snap, err := acquire(t, content)
	require.NoError(t, err)
	return snap
}

func TestNesting(t *testing.T) {
	for _, c := range []struct {
		name   string // of each level
		levels int
	}{
		{"a", 64}, {strings.Repeat("b", 8), 64}, {strings.Repeat("c", 100), 19}, {strings.Repeat("d", 217), 9}, {strings.Repeat("e", 2000), 1},
	} {
		levels := 0
		place, isWithin := Nesting{}.Below(c.name)
		for isWithin {
			levels++
			path := strings.Repeat(c.name+"/", levels)
			require.EqualValues(t, levels, place.Levels)
			require.EqualValues(t, len(path), place.Bytes)
			place, isWithin = place.Below(c.name)
		}
		require.Equal(t, c.levels, levels, "levels of %d bytes each", len(c.name))
	}
}

func TestTreeNames(t *testing.T) {
	s := snapshotOf(t, header+entry("a", "")+entry("x/y", "a")+entry("entry.json", "a")+entry(".deep", "a")+entry("a", ""))
	for _, c := range []struct {
		entry sessioncore.Entry
		name  string
	}{{1, "x%2Fy"}, {2, "%65ntry.json"}, {3, "%2Edeep"}, {4, "a"}} {
		require.Equal(t, c.name, TreeName(s, c.entry))
		e, err := FindTreeName(s, c.name)
		require.NoError(t, err)
		require.Equal(t, c.entry, e, c.name)
	}
	for _, name := range []string{"", "b", "entry.json", ".deep", "a~2", "%61"} {
		_, err := FindTreeName(s, name)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, name)
	}
}

// TestStretchStarts: a chain goes on in .deep after each 64 levels, a branch of it at the same depth too.
func TestStretchStarts(t *testing.T) {
	text := header
	for i := range 130 {
		text += entry(fmt.Sprint(i), fmt.Sprint(i-1))
	}
	text += entry("side", "63") + entry("short", "62")
	require.ElementsMatch(t, []sessioncore.Entry{64, 128, 130}, StretchStarts(snapshotOf(t, text)))
	require.Empty(t, StretchStarts(snapshotOf(t, header+entry("a", "")+entry("b", "a"))))
}

func TestPathNames(t *testing.T) {
	long := strings.Repeat("i", 300)
	s := snapshotOf(t, header+`{"id":"a","type":"message","message":{"role":"user"}}`+"\n"+
		`{"id":"x/y","parentId":"a","type":"message","message":{"role":"toolResult","toolName":"bash"}}`+"\n"+
		`{"id":"`+long+`","parentId":"x/y","type":"`+strings.Repeat("%", 20)+`"}`+"\n")
	branch := s.Branch(2)
	for place, want := range []string{
		"000001-user-a.json",
		"000002-toolResult-bash-x%2Fy.json",
		"000003--" + names.FileName(long) + ".json",
	} {
		e := sessioncore.Entry(place)
		require.Equal(t, want, PathName(s, place, e))
		require.LessOrEqual(t, len(want), 255)
		found, err := FindPathName(s, branch, want)
		require.NoError(t, err)
		require.Equal(t, e, found)
	}
	for _, name := range []string{"", "a", "1-user-a.json", "000000-user-a.json", "000001-user-a", "000001-assistant-a.json", "000002-user-a.json",
		"000004-user-a.json", "-1-user-a.json", "+00001-user-a.json", "0000001-user-a.json", "99999999999999999999-user-a.json"} {
		_, err := FindPathName(s, branch, name)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, name)
	}
}

// FuzzLayout: whatever is in a file, each entry of its tree has one directory in tree/, each entry of a branch one name
// in path/, and all are names that a directory can hold.
func FuzzLayout(f *testing.F) {
	chain := header
	for i := range 200 {
		chain += entry(fmt.Sprint(i), fmt.Sprint(i-1))
	}
	long := strings.Repeat("é", 150)
	for _, text := range []string{
		chain,
		header + entry("a", "") + entry("b", "a") + entry("b", "c") + entry("c", "b") + "torn",
		header + entry("entry.json", "") + entry(".deep", "entry.json") + entry("%65ntry.json", ".deep"),
		header + entry(long, "") + entry(long+"x", long) + `{"type":"` + long + `","id":"t","parentId":"` + long + `"}` + "\n",
		header + `{"type":"message","message":{"role":"tool_result","tool_name":"a/b%"}}` + "\n" + `{"id":"\ud800","type":"x"}` + "\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := acquire(t, string(data))
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession)
			return
		}
		tree, dirs := s.Tree(), map[string]bool{}
		for e := range sessioncore.Entry(s.Len()) {
			if tree.Has(e) {
				name := TreeName(s, e)
				require.False(t, dirs[name], "two directories are called %q", name)
				dirs[name] = true
				checkName(t, name)
				require.NotEqual(t, EntryLink, name)
				found, err := FindTreeName(s, name)
				require.NoError(t, err, name)
				require.Equal(t, e, found, name)
			}
			branch := s.Branch(e)
			for place, at := range branch.Entries() {
				name := PathName(s, place, at)
				checkName(t, name)
				require.True(t, strings.HasPrefix(name, fmt.Sprintf("%06d-", place+1)), name)
				require.True(t, strings.HasSuffix(name, "-"+s.Name(at)+EntrySuffix), name)
				found, err := FindPathName(s, branch, name)
				require.NoError(t, err, name)
				require.Equal(t, at, found, name)
			}
		}
		deep := map[sessioncore.Entry]bool{}
		for _, e := range StretchStarts(s) {
			require.False(t, deep[e], ".deep lists an entry twice")
			require.True(t, tree.Has(e))
			deep[e] = true
		}
	})
}

// checkName requires that a directory can hold a name, and that no program takes it for an option or hides it.
func checkName(t *testing.T, name string) {
	require.NotEmpty(t, name)
	text := name
	if strings.Contains(name, "~") { // cut at 200 bytes, which may be within a character
		text = strings.ToValidUTF8(name, "")
		require.Less(t, len(name)-len(text), utf8.UTFMax)
	}
	require.True(t, utf8.ValidString(text), "%q", name)
	require.LessOrEqual(t, len(name), 255)
	require.NotContains(t, ".-", name[:1], "%q", name)
	require.False(t, strings.ContainsAny(name, "/\x00"), "%q", name)
}

// referenceSession has ids that are plain names, one that is not, one that another name looks like, one
// that is there twice, and labels.
const referenceSession = `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/"}
{"type":"custom","customType":"x","id":"a","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z"}
{"type":"custom","customType":"x","id":"b","parentId":"a","timestamp":"2026-02-16T10:20:32.000Z"}
{"type":"custom","customType":"x","id":"x/y","parentId":"b","timestamp":"2026-02-16T10:20:33.000Z"}
{"type":"custom","customType":"x","id":"b.json","parentId":"b","timestamp":"2026-02-16T10:20:34.000Z"}
{"type":"custom","customType":"x","id":"entry.json","parentId":"b","timestamp":"2026-02-16T10:20:35.000Z"}
{"type":"custom","customType":"x","id":"current","parentId":"b","timestamp":"2026-02-16T10:20:36.000Z"}
{"type":"custom","customType":"x","id":"entries","parentId":"b","timestamp":"2026-02-16T10:20:37.000Z"}
{"type":"custom","customType":"x","id":"my session","parentId":"b","timestamp":"2026-02-16T10:20:38.000Z"}
{"type":"label","id":"l1","parentId":"a","timestamp":"2026-02-16T10:20:39.000Z","targetId":"a","label":"first"}
{"type":"label","id":"l2","parentId":"a","timestamp":"2026-02-16T10:20:40.000Z","targetId":"b","label":"with/slash"}
{"type":"label","id":"l3","parentId":"a","timestamp":"2026-02-16T10:20:41.000Z","targetId":"x/y","label":"first"}
{"type":"label","id":"l4","parentId":"a","timestamp":"2026-02-16T10:20:42.000Z","targetId":"nobody","label":"ghost"}
{"type":"custom","customType":"x","id":"last","parentId":"b","timestamp":"2026-02-16T10:20:43.000Z"}
`

// TestLeafTarget: the forms of a reference to an entry, and what is none.
func TestLeafTarget(t *testing.T) {
	snap := snapshotOf(t, referenceSession)
	const missing, invalid, reset = "missing", "invalid", "before the first entry"
	for want, targets := range map[string][]string{
		"a": {
			"a", "a.json", "entries/a.json", "./a", "././a.json", ".//entries//a.json", "tree/a", "tree/a/", "tree/a/entry.json",
			"tree/anything/at/all/a", "tree/.deep/a/entry.json",
			"branches/a", "branches/.by-id/a", ".by-id/a", "../entries/a.json", "../../../../entries/a.json", "../../tree/.deep/a",
			"/m/sessions/p/my session/entries/a.json", "../my session/tree/a", "/m/by-id/key/tree/a/entry.json", "/home/tree/m/recent/01-x/branches/a",
		},
		"b": {"b", "entries/b.json", "tree/a/b", "branches/last/path/000002-custom-b.json", "branches/current/path/000002-custom-b.json",
			"branches/.by-id/b/path/000002-custom-b.json", ".by-id/b/path/000002-custom-b.json", "by-label/with%2Fslash",
			"/m/my session/by-label/with%2Fslash"},
		"x/y": {
			"x%2Fy", "x%2Fy.json", "entries/x%2Fy.json", "tree/x%2Fy", "tree/a/b/x%2Fy/entry.json", "branches/x%2Fy", "branches/.by-id/x%2Fy",
			"by-label/first", // of two, the one that was labelled last
		},
		"b.json": {"b.json.json", "entries/b.json.json", "tree/b.json"},
		"entry.json": {"branches/entry.json", "branches/.by-id/entry.json", "entries/entry.json.json", "entry.json", "tree/%65ntry.json",
			"tree/a/b/%65ntry.json/entry.json"},
		"current": {"current", "cur", "c", "entries/current.json", "tree/current", "branches/%63urrent", "branches/.by-id/current", ".by-id/current",
			"branches/%63urrent/path/000003-custom-current.json"},
		"last":    {"branches/current", "/m/my session/branches/current"},
		"entries": {"entries", "entries/entries.json", "/m/my session/entries/entries.json", "/m/my session/tree/a/b/entries"},
		reset:     {"tree", "./tree", "tree/", ".//tree//", "/m/sessions/p/my session/tree", "../my session/tree"},
		missing: {
			"nobody", "nobody.json", "A", "entries/nobody.json", "entries/A.json", "entries/cur.json", "branches/cur", "tree/cur", "entries/.json",
			"tree/nobody", "tree/nobody/entry.json", "branches/nobody", "branches/.by-id/nobody",
			"by-label/nobody", "by-label/ghost", "by-label/second", "leaf", "append", "%", "~99", "~99.json", "a.json.json", "/m/other/entries/nobody.json",
			"entries/~1.json", // the header
			"branches/~2", "branches/.by-id/%63urrent", ".by-id/nobody", "branches/b/path/000001-custom-b.json", "branches/b/path/000002-user-b.json",
			"branches/nobody/path/000001-custom-a.json",
			"../entries/nobody.json", ".by-id",
		},
		invalid: {
			"e", "l", "entr", // the beginnings of several ids
			"/m/by-id/key", "/m/by-id/key/a", "/m/by-id/key/append/x", "by-id/key/entries/a.json", "../my session/a",
			"", "/", "//", ".", "..", "./", "../", "./.", "./..", "../a", "../../a", "/a", "/etc/passwd", "entries/a", "entries/a/x.json",
			"entries/a.json/x", "tree/.deep", "tree/entry.json",
			"branches/a/path", "branches/.by-id/a/b", "branches/.by-id", "branches/a/entries.jsonl", "branches/a/path/000001-custom-a.json/x",
			"../append", "../..", "../entries", "x/../entries/a.json", "by-label/a/b", "artifacts/a.json", "a/b", "entries/../a", "entries/./a.json",
			"/m/my session", "/my session/",
			"/m/my session/artifacts/a.json", "/m/my session/entries/a.json/..", strings.Repeat("x/", 3000), "\x00/\x01",
		},
	} {
		for _, target := range targets {
			e, err := FindLeaf(snap, target)
			got := ""
			switch {
			case errors.Is(err, sessioncore.ErrNotFound):
				got = missing
			case errors.Is(err, sessioncore.ErrInvalid):
				got = invalid
			case err == nil && e == sessioncore.NoEntry:
				got = reset
			default:
				require.NoError(t, err, target)
				got, _ = snap.ID(e)
			}
			require.Equal(t, want, got, "%.100q", target)
		}
	}
}

// FuzzLeafTarget: a target names an entry of the session, the place before the first one, or nothing; it means the same
// with "./" before it and with slashes doubled; and what it names is found by its file too.
func FuzzLeafTarget(f *testing.F) {
	for _, target := range []string{
		"a", "b.json", "entries/b.json", "entries/x%2Fy.json", "tree", "tree/a/b", "tree/a/b/entry.json", "tree/.deep", "branches/current",
		"branches/.by-id/a", "branches/last/path/000002-custom-b.json", "by-label/first", "by-label/with%2Fslash", "../my session/entries/a.json",
		"/m/by-id/key/entries/a.json", "/sessions/p/other/entries/a.json", "../../../etc/passwd", "entries/../a", "./tree", "%65ntries", "~3", "\xff", "",
	} {
		f.Add(target)
	}
	snap := snapshotOf(f, referenceSession)
	f.Fuzz(func(t *testing.T, target string) {
		e, err := FindLeaf(snap, target)
		if err != nil {
			isExpected := errors.Is(err, sessioncore.ErrInvalid) || errors.Is(err, sessioncore.ErrNotFound)
			require.True(t, isExpected, "%q: %v", target, err)
		} else if e != sessioncore.NoEntry {
			require.True(t, e >= 0 && int(e) < snap.Len())
			again, err := FindLeaf(snap, Entries+"/"+snap.Name(e)+EntrySuffix)
			require.NoError(t, err)
			require.Equal(t, e, again)
		}
		same := []string{strings.ReplaceAll(target, "/", "//")}
		if target != "" && !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "../") {
			same = append(same, "./"+target)
		}
		for _, other := range same {
			got, otherErr := FindLeaf(snap, other)
			require.Equal(t, err == nil, otherErr == nil, "%q: %v, %q: %v", target, err, other, otherErr)
			require.Equal(t, e, got, "%q and %q", target, other)
		}
	})
}

func TestSourceNames(t *testing.T) {
	for name, hidden := range map[string]bool{
		".s.jsonl.lock": true, ".s.jsonl.0aF9.tmp": true, "s.jsonl.12ab.bak": true,
		"s.jsonl": false, ".lock": false, ".s.lock": false, ".s.jsonl.xyz.tmp": false, ".s.jsonl.tmp": false, "s.jsonl.bak": false,
		"s.jsonl.12ab.tmp": false, "": false,
	} {
		require.Equal(t, hidden, Hidden(name), name)
	}
	for file, want := range map[string]string{"s.jsonl": "s", "a.b.jsonl": "a.b", ".s.jsonl": "", ".jsonl": "", "s.json": "", "": ""} {
		name, ok := SessionName(file)
		require.Equal(t, want != "", ok, file)
		if ok {
			require.Equal(t, want, name)
			require.Equal(t, want, SessionDir(file))
		}
	}
}
