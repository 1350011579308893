package listing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// listOf is a listing of sessions with these files and headers, each modified a second after the one
// before.
func listOf(t *testing.T, files ...[2]string) *Listing {
	mem := memory.New()
	for i, file := range files {
		require.NoError(t, mem.WriteFile(file[0], []byte(file[1])))
		require.NoError(t, mem.Chtimes(file[0], time.Unix(int64(1_700_000_000+i), 0)))
	}
	return newListing(t, mem)
}

// TestResume: keys as --resume takes them; checked against client 14.9.9.
func TestResume(t *testing.T) {
	long := strings.Repeat("long/", 60)
	header := func(id string) string {
		return string(rawjson.AppendQuoted([]byte(`{"type":"session","id":`), id)) + "}\n"
	}
	l := listOf(t,
		[2]string{"p/2026-01-01T00-00-00-000Z_0197aaaa.jsonl", header("0197aaaa")},
		[2]string{"q/2026-01-02T00-00-00-000Z_0197bbbb.jsonl", header("0197bbbb")},
		[2]string{"q/2026-01-03T00-00-00-000Z_0198.jsonl", header("other")},
		[2]string{"p/Named_by_Hand.jsonl", header("ΟΔΥΣΣΕΥΣ")},
		[2]string{"p/twin-1.jsonl", header("twin")},
		[2]string{"p/twin-2.jsonl", header("TWIN")},
		[2]string{"p/e_.jsonl", header("100%")},
		[2]string{"p/f.jsonl", header(long)},
		[2]string{"p/g.jsonl", header("-rf /")},
		[2]string{"p/h_\xff.jsonl", header("h")},
	)
	for name, want := range map[string]string{
		"0197aaaa": "0197aaaa", "0197A": "0197aaaa", "0197": "0197bbbb", "019": "other", "0198": "other", "OTHER": "other",
		"2026-01-01": "0197aaaa", "2026-01-01t": "0197aaaa", "2026-01-03T00-00-00-000Z_0198": "other", "2026-01-03T00-00-00-000Z_0198.jsonl": "",
		"named_BY": "ΟΔΥΣΣΕΥΣ", "hand": "ΟΔΥΣΣΕΥΣ", "by": "", "οδυσσευς": "",
		"οδυσσ": "ΟΔΥΣΣΕΥΣ", "ΟΔΥΣΣ": "ΟΔΥΣΣΕΥΣ",
		"twin": "TWIN", "TWIN": "TWIN", "twin-1": "twin", "TWIN-2": "TWIN",
		"100%25": "100%", "100%": "100%", "100": "100%", "100%2": "",
		names.FileName(long): long, "long%2Flong": long, "long%2Flong%2F": long, "long%2F~": "",
		"%2Drf %2F": "-rf /", "-rf": "-rf /", "%2Drf": "-rf /", "%2drf": "",
		"%": "h", "_": "", "x": "", ".": "", "h_": "h", "\xfe": "h", "\uFFFD": "h",
	} {
		info, err := l.Resume(context.Background(), name, false)
		if want == "" {
			require.ErrorIs(t, err, sessioncore.ErrNotFound, "%q", name)
			continue
		}
		require.NoError(t, err, "%q", name)
		require.Equal(t, want, info.ID, "%q", name)
	}
}

// TestParents: parentSession is a path, of this store or of the one it was copied from, or an id.
func TestParents(t *testing.T) {
	child := func(id, parent string) string {
		return `{"type":"session","id":"` + id + `","parentSession":"` + parent + `"}` + "\n"
	}
	files := [][2]string{
		{"p/a.jsonl", headerLine("a", "/w")}, {"p/a/Task.jsonl", child("task", "a")}, {"p/copy.jsonl", headerLine("a", "/w")},
		{"sessions/x.jsonl", headerLine("x", "/w")}, {"p/not.jsonl", "no session"}, {"p/.h.jsonl", headerLine("h", "/w")},
		{"p/self.jsonl", child("self", "self")}, {"p/selfpath.jsonl", child("self2", "/home/dev/.omp/agent/sessions/p/selfpath.jsonl")},
		{"p/op.jsonl", `{"type":"session_header","id":"op","parent_session":"a"}` + "\n"},
	}
	cases := map[string]string{
		"a": "p/copy.jsonl", "A": "", "task": "", "": "", "nobody": "", "op": "p/op.jsonl",
		"/home/dev/.omp/agent/sessions/p/a.jsonl":               "p/a.jsonl",
		"/home/dev/.omp/agent/sessions//p/./q/../a.jsonl":       "p/a.jsonl",
		"/home/dev/.omp/agent/sessions/p/a/Task.jsonl":          "p/a/Task.jsonl",
		"/home/dev/.omp/agent/sessions/../../p/a.jsonl":         "",
		"/somewhere/else/sessions/p/a.jsonl":                    "p/a.jsonl",
		"/srv/sessions/of/dev/agent/sessions/p/a.jsonl":         "p/a.jsonl",
		"/srv/agent/sessions/sessions/x.jsonl":                  "sessions/x.jsonl",
		"/sessions/p/a.jsonl":                                   "p/a.jsonl",
		"sessions/p/a.jsonl":                                    "",
		"/home/dev/.omp/agent/sessions/p/a":                     "",
		"/home/dev/.omp/agent/sessions/p/gone.jsonl":            "",
		"/home/dev/.omp/agent/sessions/p/not.jsonl":             "",
		"/home/dev/.omp/agent/sessions/p/.h.jsonl":              "",
		"/elsewhere/p/a.jsonl":                                  "",
		"/x/sessions/" + strings.Repeat("n", 300) + ".jsonl":    "",
		"/x/sessions/\\u0000.jsonl":                             "",
		"/x" + strings.Repeat("/sessions", 400) + "/p/a.jsonl":  "p/a.jsonl",
		"/x/sessions/" + strings.Repeat("d/", 3000) + "a.jsonl": "",
	}
	n := 0
	parents := map[string]string{}
	for parent := range cases {
		n++
		name := fmt.Sprintf("c/%d.jsonl", n)
		files = append(files, [2]string{name, child("c"+name, parent)})
		parents[name] = parent
	}
	l := listOf(t, files...)
	want := map[string]string{"p/a/Task.jsonl": "p/copy.jsonl", "p/self.jsonl": "", "p/selfpath.jsonl": "", "p/a.jsonl": ""}
	for name, parent := range parents {
		want[name] = cases[parent]
	}
	for name, parent := range want {
		found, err := Listings{l}.Parent(context.Background(), ListedSession{l, l.store.Session(name)})
		if parent == "" {
			require.ErrorIs(t, err, sessioncore.ErrNotFound, "%.100q", parents[name])
			continue
		}
		require.NoError(t, err, "%.100q", parents[name])
		require.Equal(t, parent, found.Session.Name(), "%.100q", parents[name])
	}
}
