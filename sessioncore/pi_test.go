package sessioncore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// piContext returns the members of a context that pi gives.
func piContext(t testing.TB, s *Snapshot, at Entry) rawjson.Value {
	t.Helper()
	doc, err := s.Context(context.Background(), at, nil)
	require.NoError(t, err)
	got := sessiontest.ReadObject(t, doc)
	var edits rawjson.Edits
	return edits.Object(got, 0, "", func(m rawjson.Member) bool {
		return !m.KeyIs("messages") && !m.KeyIs("thinkingLevel") && !m.KeyIs("model")
	}).Apply(got)
}

// TestPiClient: recorded sessions of pi read as pi itself reads them.
func TestPiClient(t *testing.T) {
	files, err := filepath.Glob("../testdata/piclient/*/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "../testdata/piclient/"), func(t *testing.T) {
			text, err := os.ReadFile(strings.TrimSuffix(file, ".jsonl") + ".want.json")
			require.NoError(t, err)
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			snap := newTestSession(t, string(content), ByPi).acquire()
			want := rawjson.Value(strings.TrimSpace(string(text)))
			a := &answers{t: t, snap: snap, want: want}
			a.compare("leafId", a.id(a.leaf()))
			a.compare("labels", a.labels())
			a.compare("entries", a.entries())
			title, err := snap.Title()
			require.NoError(t, err)
			a.compare("name", string(rawjson.AppendQuoted(nil, title)))
			compareJSON(t, "context", want.Member("context"), piContext(t, snap, a.leaf()))
			for m := range want.Member("contexts").EachMember {
				id, _ := m.Key.Text()
				sum, _ := m.Value.Member("sha256").Text()
				require.Equal(t, sum, sumOf(piContext(t, snap, a.find(id))), "context at %s", id)
			}
		})
	}
}

// TestPiIsKnown: which program's rules hold for a file follows its entries as it grows, and omp's entries end doubts.
func TestPiIsKnown(t *testing.T) {
	named := `{"type":"session_info","id":"n","parentId":"a","timestamp":"2026-01-05T09:00:02.000Z","name":" A\nname "}` + "\n"
	mode := `{"type":"mode_change","id":"m","parentId":"n","timestamp":"2026-01-05T09:00:03.000Z","mode":"plan"}` + "\n"
	content := sessiontest.Header + sessiontest.Entry("a", "")
	for root, want := range map[Program][]*Dialect{
		ByUnknown:  {OMP, Pi, OMP},
		LikelyByPi: {OMP, Pi, OMP},
		ByOMP:      {OMP, OMP, OMP},
		ByPi:       {Pi, Pi, OMP},
	} {
		s := newTestSession(t, content, root)
		for i, add := range []string{"", named, mode} {
			s.Append(add)
			snap := s.acquire()
			require.Same(t, want[i], snap.Dialect(), "root %d, after %q", root, add)
			title, err := snap.Title()
			require.NoError(t, err)
			if want[i] == Pi && i > 0 {
				require.Equal(t, "A\nname", title)
			} else {
				require.Empty(t, title)
			}
			whole := newTestSession(t, content+[]string{"", named, named + mode}[i], root)
			require.Same(t, want[i], whole.acquire().Dialect(), "read at once")
		}
	}
	require.Same(t, Operator, newTestSession(t, `{"type":"session_header","id":"s"}`+"\n", ByPi).acquire().Dialect())
}

// TestPiContext: contexts of pi with entries that no recorded session has.
func TestPiContext(t *testing.T) {
	sessiontest.Page(t, "testdata/pi-context.txt", func(t *testing.T, name, lines, want string) {
		snap := newTestSession(t, sessiontest.Header+lines+"\n", ByPi).acquire()
		got := piContext(t, snap, sessiontest.Leaf(t, snap))
		compareJSON(t, name, rawjson.Value(want), got.Member("messages"))
		require.Equal(t, "null", string(got.Member("model")), name)
	})
}
