package writer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
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
			name := w.forks(test.id)
			require.Equal(t, string(content), w.content())
			require.Regexp(t, `^scope/2026-03-01T00-00-00-000Z_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.jsonl$`, name)
			id := regexp.MustCompile(`_(.*)\.jsonl$`).FindStringSubmatch(name)[1]
			snap := sessiontest.Snapshot(t, w.store.Session(name))
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
	name := w.forks("c")
	require.Contains(t, fileContent(t, w.storage, name), "\n"+`{"parentId":"b","type":"mode_change","id":"c","mode":"x", "n":1.0}`+"\n")
	snap := sessiontest.Snapshot(t, w.store.Session(name))
	require.Equal(t, "a<null b<a c<b (a=L) (b=M) (c=N)", outline(t, snap))
	require.Empty(t, problemsOf(t, snap))

	name = w.forks("d")
	require.Contains(t, fileContent(t, w.storage, name), `"id":"d","parentId":null`)
	_, err := w.Fork(context.Background(), w.session, "gone")
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
}

// contextAt returns the context at an entry, as context.json without blobs.
func contextAt(t testing.TB, s *sessioncore.Snapshot, at sessioncore.Entry) string {
	doc, err := s.Context(context.Background(), at, nil)
	require.NoError(t, err)
	defer doc.Close()
	text := make([]byte, doc.Size())
	_, err = doc.ReadAt(text, 0)
	require.NoError(t, err)
	return string(text)
}

// forkedAt forks a session at an entry and calls f with the fork's snapshot.
func (w *writing) forkedAt(id string, f func(fork *sessioncore.Snapshot)) {
	name, err := w.Fork(context.Background(), w.session, id)
	require.NoError(w.t, err, id)
	snap, err := w.store.Session(name).Acquire(context.Background())
	require.NoError(w.t, err, id)
	defer snap.Release()
	f(snap)
}

// forkSamples is how many entries of a session are forked.
const forkSamples = 12

// TestForkKeepsContext: the context at a fork's leaf is that at the forked entry. All compactions and all children of
// labels are tested, and a sample of the other entries.
func TestForkKeepsContext(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for _, file := range caseFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		w := startMemory(t, string(content), Options{})
		source, err := w.session.Acquire(context.Background())
		if err != nil {
			continue
		}
		step := max(source.Len()/forkSamples, 1)
		for e := range sessioncore.Entry(source.Len()) {
			id, ok := source.ID(e)
			if at, err := source.Find(id); !ok || err != nil || at != e {
				continue
			}
			parent := source.Parent(e)
			pointed := parent != sessioncore.NoEntry && isPointer(source, parent)
			if int(e)%step != 0 && source.Kind(e) != sessioncore.TypeCompaction && !pointed {
				continue
			}
			if target, isMove := w.movesElsewhere(source, e); isMove {
				require.NotEqual(t, source.Parent(e), target)
				continue // the fork's leaf is what it names
			}
			w.forkedAt(id, func(fork *sessioncore.Snapshot) {
				leaf := sessiontest.Leaf(t, fork)
				require.Equal(t, contextAt(t, source, e), contextAt(t, fork, leaf), "%s at %s", filepath.Base(file), id)
			})
		}
		source.Release()
	}
}

// movesElsewhere reports whether an entry is a move of the leaf to another entry than its parent, which only
// files that were made by hand have.
func (w *writing) movesElsewhere(s *sessioncore.Snapshot, e sessioncore.Entry) (sessioncore.Entry, bool) {
	if s.Kind(e) != s.Dialect().MoveType {
		return sessioncore.NoEntry, false
	}
	text, err := s.ShownText(e)
	require.NoError(w.t, err)
	target, isMove := s.Dialect().MoveTarget(text)
	if !isMove {
		return sessioncore.NoEntry, false
	}
	id, _ := target.Text()
	at, err := s.Find(id)
	if err != nil {
		at = sessioncore.NoEntry
	}
	return at, at != s.Parent(e)
}

// compacted is a session whose compaction keeps from a label on. %KEPT% is that entry's id.
const compacted = plainFile +
	`{"type":"message","id":"u","parentId":"b","timestamp":"2026-02-16T10:20:34.000Z","message":{"role":"user","content":"two"}}` + "\n" +
	`{"type":"label","id":"l1","parentId":"u","timestamp":"2026-02-16T10:20:35.000Z","targetId":"a","label":"L"}` + "\n" +
	`{"type":"label","id":"l2","parentId":"l1","timestamp":"2026-02-16T10:20:36.000Z","targetId":"b","label":"M"}` + "\n" +
	`{"type":"message","id":"v","parentId":"l2","timestamp":"2026-02-16T10:20:37.000Z","message":{"role":"user","content":"three"}}` + "\n" +
	`{"type":"message","id":"w","parentId":"v","timestamp":"2026-02-16T10:20:38.000Z","message":{"role":"user","content":"four"}}` + "\n" +
	`{"type":"label","id":"l3","parentId":"w","timestamp":"2026-02-16T10:20:39.000Z","targetId":"u","label":"N"}` + "\n" +
	`{"type":"compaction","id":"c","parentId":"l3","timestamp":"2026-02-16T10:20:40.000Z","summary":"s","firstKeptEntryId":"%KEPT%",` +
	`"tokensBefore":1, "providerReplayThroughEntryId":"%KEPT%"}` + "\n" +
	`{"type":"label","id":"l4","parentId":"c","timestamp":"2026-02-16T10:20:41.000Z","targetId":"c","label":"O"}` + "\n" +
	`{"type":"message","id":"x","parentId":"l4","timestamp":"2026-02-16T10:20:42.000Z","message":{"role":"user","content":"five"}}` + "\n"

// TestForkKeepsCompaction: where a compaction names a label entry, its copy in a fork names the next entry
// that is there.
func TestForkKeepsCompaction(t *testing.T) {
	tests := []struct{ kept, want, through string }{
		{"u", "u", "u"},
		{"l1", "v", "u"},
		{"l2", "v", "u"},
		{"w", "w", "w"},
		{"l3", "c", "w"}, // nothing is kept
		{"l4", "x", "c"}, // nor here: it follows
		{"gone", "gone", "gone"},
	}
	for _, test := range tests {
		w := startMemory(t, strings.ReplaceAll(compacted, "%KEPT%", test.kept), Options{})
		source := w.snapshot()
		w.forkedAt("x", func(fork *sessioncore.Snapshot) {
			c, err := fork.Find("c")
			require.NoError(t, err)
			text, err := fork.ShownText(c)
			require.NoError(t, err)
			require.Equal(t, `{"type":"compaction","id":"c","parentId":"w","timestamp":"2026-02-16T10:20:40.000Z","summary":"s","firstKeptEntryId":"`+
				test.want+`","tokensBefore":1, "providerReplayThroughEntryId":"`+test.through+`"}`, string(text))
			leaf := sessiontest.Leaf(t, fork)
			at, err := source.Find("x")
			require.NoError(t, err)
			require.Equal(t, contextAt(t, source, at), contextAt(t, fork, leaf), test.kept)
			require.Empty(t, problemsOf(t, fork))
		})
	}
}

// TestForkKeepsHeader: the title with its source, in a slot where there was one, and the working directories.
func TestForkKeepsHeader(t *testing.T) {
	const head = `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/home/dev/pi"`
	slot := func(title, source string) string {
		return string(titleSlot(title, source, plainNow))
	}
	tests := []struct{ name, head, slot, want string }{
		{"automatic, in the header", head + `,"title":"T","titleSource":"auto"}`, "", `,"title":"T","titleSource":"auto"}`},
		{"the user's, in the header", head + `,"title":"T","titleSource":"user"}`, "", `,"title":"T","titleSource":"user"}`},
		{"of unknown source", head + `,"title":"T"}`, "", `,"title":"T"}`},
		{"automatic, in a slot", slot("T", "auto") + head + `,"title":"old","titleSource":"user"}`, slot("T", "auto"), `,"title":"T","titleSource":"auto"}`},
		{"of unknown source, in a slot", slot("T", "") + head + `}`, slot("T", ""), `,"title":"T"}`},
		{"none, in a slot", slot("", "") + head + `}`, slot("", ""), `}`},
		{"directories", head + `,"additionalDirectories":["/a", "/b"],"previousSessionFiles":["/x.jsonl"]}`, "", `,"additionalDirectories":["/a", "/b"]}`},
		{"directories that no client could read", head + `,"additionalDirectories":[7]}`, "", `}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := startMemory(t, test.head+"\n"+strings.TrimPrefix(plainFile, plainHeader), Options{Root: "/agent/sessions"})
			name := w.forks("b")
			content := fileContent(t, w.storage, name)
			if test.slot != "" {
				require.Equal(t, test.slot, content[:slotSize])
			}
			w.forkedAt("b", func(fork *sessioncore.Snapshot) {
				header, slot, err := fork.ReadHeader()
				require.NoError(t, err)
				require.Equal(t, test.slot != "", slot != nil)
				_, rest, found := strings.Cut(string(header), `"parentSession":"/agent/sessions/`+plainName+`"`)
				require.True(t, found)
				require.Equal(t, test.want, rest)
			})
		})
	}
}
