package writer

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// outline lists a snapshot's entries as id<parent, labels as (parent target=label) with "prev" for the
// entry before.
func outline(t testing.TB, s *sessioncore.Snapshot) string {
	var out []string
	name := func(e sessioncore.Entry) string {
		if e == sessioncore.NoEntry {
			return "null"
		}
		id, _ := s.ID(e)
		return id
	}
	labels := map[string]string{}
	for _, l := range s.Labels() {
		labels[l.Target] = l.Label
	}
	for e := range sessioncore.Entry(s.Len()) {
		if s.Kind(e) != sessioncore.TypeLabel {
			out = append(out, name(e)+"<"+name(s.Parent(e)))
			continue
		}
		require.Equal(t, e-1, s.Parent(e), "labels hang in a chain")
		text, err := s.ShownText(e)
		require.NoError(t, err)
		target, _ := text.Member("targetId").Text()
		out = append(out, fmt.Sprintf("(%s=%s)", target, labels[target]))
	}
	return strings.Join(out, " ")
}

// TestForkAsClient compares with what omp 14.9.9's createBranchedSession made of the same sessions.
func TestForkAsClient(t *testing.T) {
	tests := []struct{ file, id, want string }{
		{"labels", "l10", "u1<null a2<u1 (u1=start again) (a2= )"},
		{"labels", "l11", "u1<null a1<u1 (a1=north, leeks) (u1=start again)"},
		{"labels", "l12", "u1<null a1<u1 (a1=north, leeks) (u1=start again)"},
		{"branch-summary", "u3", "u1<null a1<u1 b1<a1 u3<b1"},
		{"branch-summary", "a3", "u1<null a1<u1 b1<a1 u3<b1 b2<u3 a3<b2"},
		{"leaf-then-append", "v1", "u1<null a1<u1 v1<a1"},
		{"leaf-then-append", "a3", "u1<null a1<u1 u3<a1 a3<u3"},
		{"linear", "r1", "u1<null a1<u1 r1<a1"},
	}
	for _, test := range tests {
		t.Run(test.file+" "+test.id, func(t *testing.T) {
			content, err := os.ReadFile("../../testdata/cases/" + test.file + ".jsonl")
			require.NoError(t, err)
			w := startMemory(t, string(content), Options{Root: "/agent/sessions"})
			name, err := w.Fork(context.Background(), w.session, test.id)
			require.NoError(t, err)
			require.Equal(t, string(content), w.content())
			require.Regexp(t, `^scope/2026-03-01T00-00-00-000Z_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.jsonl$`, name)
			id := regexp.MustCompile(`_(.*)\.jsonl$`).FindStringSubmatch(name)[1]
			snap, err := w.store.Session(name).Acquire(context.Background())
			require.NoError(t, err)
			defer snap.Release()
			require.Equal(t, test.want, outline(t, snap))
			require.Empty(t, problemsOf(t, snap))
			header, _, err := snap.ReadHeader()
			require.NoError(t, err)
			require.Equal(t, `{"type":"session","version":3,"id":"`+id+`","timestamp":"`+plainNow+
				`","cwd":"/home/dev/allotment","parentSession":"/agent/sessions/`+plainName+`"}`, string(header))
			forked := fileContent(t, w.storage, name)
			kept := 0
			for line := range strings.Lines(string(content)) {
				if e, err := snap.Find(idOf(line)); err == nil && !strings.Contains(line, `"type":"label"`) {
					text, _ := snap.ShownText(e)
					require.Contains(t, line, string(text), "entries keep their bytes")
					kept++
				}
			}
			require.Positive(t, kept)
			require.True(t, strings.HasSuffix(forked, "\n"))
		})
	}
}

func idOf(line string) string {
	id, _ := rawjson.Value(strings.TrimSpace(line)).Member("id").Text()
	return id
}

// TestForkMends: an entry whose parent was a label entry gets another parent.
func TestForkMends(t *testing.T) {
	w := startMemory(t, plainFile+
		`{"type":"label","id":"l1","parentId":"b","targetId":"a","label":"L"}`+"\n"+
		`{"type":"label","id":"l2","parentId":"l1","targetId":"b","label":"M"}`+"\n"+
		`{"parentId":"l2","type":"mode_change","id":"c","mode":"x", "n":1.0}`+"\n"+
		`{"type":"label","id":"l3","parentId":null,"targetId":"c","label":"N"}`+"\n"+
		`{"type":"mode_change","id":"d","parentId":"l3","mode":"x"}`+"\n", Options{})
	name, err := w.Fork(context.Background(), w.session, "c")
	require.NoError(t, err)
	require.Contains(t, fileContent(t, w.storage, name), "\n"+`{"parentId":"b","type":"mode_change","id":"c","mode":"x", "n":1.0}`+"\n")
	snap, err := w.store.Session(name).Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	require.Equal(t, "a<null b<a c<b (a=L) (b=M) (c=N)", outline(t, snap))
	require.Empty(t, problemsOf(t, snap))

	name, err = w.Fork(context.Background(), w.session, "d")
	require.NoError(t, err)
	require.Contains(t, fileContent(t, w.storage, name), `"id":"d","parentId":null`)
	_, err = w.Fork(context.Background(), w.session, "gone")
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
}

// TestForkOld: a fork of an old file has the current version and the ids that were shown; the old file is unchanged.
func TestForkOld(t *testing.T) {
	content := oldFile
	w := startMemory(t, content, Options{})
	source := w.snapshot()
	id, _ := source.ID(2)
	name, err := w.Fork(context.Background(), w.session, id)
	require.NoError(t, err)
	require.Equal(t, content, w.content())
	snap, err := w.store.Session(name).Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	require.Equal(t, 3, snap.Version())
	require.Equal(t, 3, snap.Len())
	got, _ := snap.ID(2)
	require.Equal(t, id, got)
}
