package source

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/testdata"
)

const hourFile = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_" + hourLate
const hourLate = "019d3d96-6b66-7996-8ead-42aae5653abc"

// hourNames returns names of the session hourFile in an agent directory, each with the entry that it names too, or "".
func hourNames(dir string) map[string]string {
	return map[string]string{
		hourLate:            "",
		"019d3d9":           "",
		"019D3D9":           "",
		"2026-03-30t07":     "",
		"by-id/019d3d9":     "",
		"/by-id/019d3d9/":   "",
		hourFile:            "",
		hourFile + ".jsonl": "",
		"by-cwd/home/dev/tidetable/*-An hour late*": "",
		"by-id/019d3d9/transcript.md":               "",
		"by-id/019d3d9/artifacts/0.bash.log":        "",
		filepath.Join(dir, hourFile) + ".jsonl":     "",
		filepath.Join(dir, hourFile):                "",
		filepath.Join(dir, hourFile, "0.bash.log"):  "",
		"019d3d9#3a17833e":                          "3a17833e",
		"019d3d9#3a1":                               "3a17833e",
		"019d3d9/leaf":                              "3a17833e",
		"by-id/019d3d9#3a1":                         "3a17833e",
		"019d3d9/entries/3a17833e.json":             "3a17833e",
		"019d3d9/branches/current/context.json":     "3a17833e",
		"019d3d9/branches/3a17833e":                 "3a17833e",
		"019d3d9/tree/.deep/3a17833e/entry.json":    "3a17833e",
		"019d3d9/tree":                              "",
		filepath.Join(dir, hourFile) + ".jsonl#3a1": "3a17833e",
	}
}

// TestNamedSessions: people name a session by an id, its beginning, a path in the tree, its file; with an entry or without.
func TestNamedSessions(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Unpack(testdata.Demo(), dir))
	const debug = false
	src, err := placeAt(dir).OpenTree(context.Background(), Sessions, nil, debug, io.Discard)
	require.NoError(t, err)
	defer src.Close()
	for arg, entry := range hourNames(dir) {
		got, err := src.Named(arg)
		require.NoError(t, err, arg)
		require.Equal(t, NamedSession{Dir: hourFile, Entry: entry}, got, arg)
	}
	for arg, want := range map[string]string{
		hourFile + "/artifacts/Task-1.jsonl": hourFile + "/artifacts/Task-1",
		"019b8":                              "archive/--home-dev-tidetable--/2026-01-02T19-22-08-415Z_019b8028-fc9f-7d1c-9c0a-51be0a7d3e62",
	} {
		got, err := src.Named(arg)
		require.NoError(t, err, arg)
		require.Equal(t, NamedSession{Dir: want}, got, arg)
	}
	for arg, want := range map[string]string{
		"019d":        "more than one session; type more of it:\n  019",
		"019d3d9#3a":  "more than one entry; type more of it:\n  3a17833e\n  3a35c741",
		"019d3d9#zz":  "no entry whose id begins with \"zz\"",
		"nothing":     "no session of " + dir + " has nothing as its id or path; 'sessionfs search nothing' looks into",
		"nothing#3a1": "has nothing#3a1 as its id or path",
		"nothing[":    "has nothing[ as its id or path",
		"019d3d9#[":   "no entry whose id begins with \"[\"",
		".":           "has . as its id or path",
		"recent":      "has recent as its id or path",
		"recent/*":    "stands for 5 sessions",
	} {
		_, err := src.Named(arg)
		require.ErrorContains(t, err, want, arg)
	}
}
