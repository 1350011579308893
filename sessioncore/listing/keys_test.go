package listing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// listOf returns a listing of files, each a name and a content, and each modified a second after the one
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
	resume := func(t *testing.T, _, key string) string {
		info, err := l.Resume(context.Background(), key, false)
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotFound, "%q", key)
			return ""
		}
		return info.ID
	}
	sessiontest.Table(t, "testdata/keys.txt", resume)
	require.Equal(t, long, resume(t, "", names.FileName(long)))
	require.Equal(t, "h", resume(t, "", "\xfe"))
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
	l := listOf(t, files...)
	parent := func(t *testing.T, session string) string {
		found, err := Listings{l}.Parent(context.Background(), ListedSession{l, l.store.Session(session)})
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotFound, "%.100q", session)
			return ""
		}
		return found.Session.Name()
	}
	for session, want := range map[string]string{"p/a/Task.jsonl": "p/copy.jsonl", "p/self.jsonl": "", "p/selfpath.jsonl": "", "p/a.jsonl": ""} {
		require.Equal(t, want, parent(t, session))
	}
	sessiontest.Table(t, "testdata/parents.txt", func(t *testing.T, _, named string) string {
		l.write(t, "c/c.jsonl", child("c", named))
		return parent(t, "c/c.jsonl")
	})
}
