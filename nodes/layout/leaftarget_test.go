package layout

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

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
			"a", "a.json", "entries/a.json", "./a", "././a.json", ".//entries//a.json", "tree/a", "tree/a/", "tree/a/entry.json", "tree/anything/at/all/a", "tree/.deep/a/entry.json",
			"branches/a", "branches/.by-id/a", ".by-id/a", "../entries/a.json", "../../../../entries/a.json", "../../tree/.deep/a",
			"/m/sessions/p/my session/entries/a.json", "../my session/tree/a", "/m/by-id/key/tree/a/entry.json", "/home/tree/m/recent/01-x/branches/a",
		},
		"b": {"b", "entries/b.json", "tree/a/b", "branches/last/path/000002-custom-b.json", "branches/current/path/000002-custom-b.json", "branches/.by-id/b/path/000002-custom-b.json", ".by-id/b/path/000002-custom-b.json", "by-label/with%2Fslash", "/m/my session/by-label/with%2Fslash"},
		"x/y": {
			"x%2Fy", "x%2Fy.json", "entries/x%2Fy.json", "tree/x%2Fy", "tree/a/b/x%2Fy/entry.json", "branches/x%2Fy", "branches/.by-id/x%2Fy",
			"by-label/first", // of two, the one that was labelled last
		},
		"b.json":     {"b.json.json", "entries/b.json.json", "tree/b.json"},
		"entry.json": {"branches/entry.json", "branches/.by-id/entry.json", "entries/entry.json.json", "entry.json", "tree/%65ntry.json", "tree/a/b/%65ntry.json/entry.json"},
		"current":    {"current", "entries/current.json", "tree/current", "branches/%63urrent", "branches/.by-id/current", ".by-id/current", "branches/%63urrent/path/000003-custom-current.json"},
		"last":       {"branches/current", "/m/my session/branches/current"},
		"entries":    {"entries", "entries/entries.json", "/m/my session/entries/entries.json", "/m/my session/tree/a/b/entries"},
		reset:        {"tree", "./tree", "tree/", ".//tree//", "/m/sessions/p/my session/tree", "../my session/tree"},
		missing: {
			"nobody", "nobody.json", "A", "entries/nobody.json", "entries/A.json", "entries/.json", "tree/nobody", "tree/nobody/entry.json", "branches/nobody", "branches/.by-id/nobody",
			"by-label/nobody", "by-label/ghost", "by-label/second", "leaf", "append", "%", "~99", "~99.json", "a.json.json", "/m/other/entries/nobody.json",
			"entries/~1.json", // the header
			"branches/~2", "branches/.by-id/%63urrent", ".by-id/nobody", "branches/b/path/000001-custom-b.json", "branches/b/path/000002-user-b.json", "branches/nobody/path/000001-custom-a.json",
			"../entries/nobody.json", ".by-id",
		},
		invalid: {
			"/m/by-id/key", "/m/by-id/key/a", "/m/by-id/key/append/x", "by-id/key/entries/a.json", "../my session/a",
			"", "/", "//", ".", "..", "./", "../", "./.", "./..", "../a", "../../a", "/a", "/etc/passwd", "entries/a", "entries/a/x.json", "entries/a.json/x", "tree/.deep", "tree/entry.json",
			"branches/a/path", "branches/.by-id/a/b", "branches/.by-id", "branches/a/entries.jsonl", "branches/a/path/000001-custom-a.json/x", "../append", "../..", "../entries", "x/../entries/a.json", "by-label/a/b", "artifacts/a.json", "a/b", "entries/../a", "entries/./a.json", "/m/my session", "/my session/",
			"/m/my session/artifacts/a.json", "/m/my session/entries/a.json/..", strings.Repeat("x/", 3000), "\x00/\x01",
		},
	} {
		for _, target := range targets {
			e, err := FindLeaf(snap, target)
			got := ""
			switch {
			case err == nil && e == sessioncore.NoEntry:
				got = reset
			case err != nil && errors.Is(err, sessioncore.ErrNotFound):
				got = missing
			case err != nil && errors.Is(err, sessioncore.ErrInvalid):
				got = invalid
			case err != nil:
				got = fmt.Sprint(err)
			default:
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
			require.True(t, errors.Is(err, sessioncore.ErrInvalid) || errors.Is(err, sessioncore.ErrNotFound), "%q: %v", target, err)
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
