package layout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
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

// keys is a directory of links.
type keys map[string]string

func (k keys) Stat(_ context.Context) (storage.Stat, error) { return storage.Stat{}, nil }
func (k keys) List(_ context.Context) ([]Entry, error)      { return nil, nil }

func (k keys) Find(_ context.Context, name string, _ bool) (Entry, error) {
	dir, ok := k[name]
	if !ok {
		return Entry{}, sessioncore.ErrNotFound
	}
	return Entry{Name: name, Session: dir}, nil
}

// followTable is a root with sessions/ and by-id/, in which two keys lead to sessions.
func followTable(_ context.Context, parts []string) ([]string, error) {
	switch {
	case parts[0] == "sessions":
		return parts[1:], nil
	case parts[0] == "by-id":
		below, err := Follow(context.Background(), keys{"key": "p/my session", "other": "p/other"}, parts[1:])
		if errors.Is(err, sessioncore.ErrNotFound) {
			err = ErrLeadsNowhere
		}
		return below, err
	}
	return nil, ErrLeadsNowhere
}

// TestLeafTarget: the forms of a reference to an entry, and what is none.
func TestLeafTarget(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("p/my session.jsonl", []byte(referenceSession)))
	store := sessioncore.NewStore(files)
	defer store.Close()
	snap, err := store.Session("p/my session.jsonl").Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	const missing, invalid, reset = "missing", "invalid", "before the first entry"
	in := Reference{Session: "p/my session", Follow: followTable}
	for want, targets := range map[string][]string{
		"a": {
			"a", "a.json", "entries/a.json", "./a", "././a.json", ".//entries//a.json", "tree/a", "tree/a/", "tree/a/entry.json", "tree/anything/at/all/a", "tree/.deep/a/entry.json",
			"branches/a", "branches/.by-id/a", ".by-id/a", "../entries/a.json", "../../../../entries/a.json", "../../tree/.deep/a", "/m/sessions/p/my session/entries/a.json", "/my session/entries/a.json", "../my session/tree/a", "../../p/my session/branches/a",
			"/my session/entries/x/my session/entries/a.json", "/m/my session/a", "/m/my session/a.json", "../my session/a",
			"/m/by-id/key/entries/a.json", "/m/by-id/key/a", "/by-id/key/tree/a/entry.json", "/m/by-id/sessions/p/my session/a", "/sessions/x/by-id/by-id/key/branches/a", "../../../by-id/key/entries/a.json",
			"/sessions/m/sessions/p/my session/entries/a.json", "/m/sessions/p/artifacts/my session/entries/a.json", "/m/sessions/q/../p/my session/a", "../artifacts/my session/a",
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
		"entries":    {"entries", "entries/entries.json", "/m/my session/entries/entries.json"},
		"my session": {"my session", "/m/my session/my session", "/m/my session/entries/my session.json", "tree/my session", "/m/my session/tree/a/b/my session"},
		reset:        {"tree", "./tree", "tree/", ".//tree//", "/m/my session/tree", "/m/sessions/p/my session/tree", "/m/by-id/key/tree/", "../my session/tree"},
		missing: {
			"nobody", "nobody.json", "A", "entries/nobody.json", "entries/A.json", "entries/.json", "tree/nobody", "tree/nobody/entry.json", "branches/nobody", "branches/.by-id/nobody",
			"by-label/nobody", "by-label/ghost", "by-label/second", "leaf", "append", "%", "~99", "~99.json", "a.json.json", "/my session/nobody",
			"entries/~1.json", // the header
			"branches/~2", "branches/.by-id/%63urrent", ".by-id/nobody", "branches/b/path/000001-custom-b.json", "branches/b/path/000002-user-b.json", "branches/nobody/path/000001-custom-a.json",
			"../entries/nobody.json", ".by-id",
		},
		invalid: {
			"/m/by-id/other/entries/a.json", "/m/by-id/nobody/entries/a.json", "/m/by-id/other/my session/entries/a.json", "/m/by-id/key", "/m/by-id/key/", "/m/by-id", "/m/by-id/key/append/x", "/m/by-id/key/artifacts/entries/a.json",
			"/m/sessions/q/my session/entries/a.json", "/m/sessions/my session/entries/a.json", "../../q/my session/entries/a.json", "/m/sessions/p/x/../../q/my session/a", "by-id/key/entries/a.json", "../tree",
			"", "/", "//", ".", "..", "./", "../", "./.", "./..", "../a", "../../a", "/a", "/etc/passwd", "entries/a", "entries/a/x.json", "entries/a.json/x", "tree/.deep", "tree/entry.json",
			"branches/a/path", "branches/.by-id/a/b", "branches/.by-id", "branches/a/entries.jsonl", "branches/a/path/000001-custom-a.json/x", "../../x/entries/a.json", "../append", "../..", "../entries", "x/../entries/a.json", "by-label/a/b", "artifacts/a.json", "a/b", "entries/../a", "entries/./a.json", "/m/other/entries/a.json", "/m/my session", "/my session/",
			"/m/my session/artifacts/a.json", "/m/my session/../my session/entries/a.json/..", strings.Repeat("x/", 3000), "\x00/\x01",
		},
	} {
		for _, target := range targets {
			e, err := in.Find(context.Background(), snap, target)
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
