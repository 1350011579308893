package sessioncore

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// testSession is a session whose file a test changes from outside.
type testSession struct {
	*sessiontest.File
	t       *testing.T
	session *Session
}

// newTestSession makes a session in an agent directory of a program, ByUnknown for omp's.
func newTestSession(t *testing.T, content string, root Program) *testSession {
	f := sessiontest.NewFile(t, content)
	store := NewStore(f.Storage)
	t.Cleanup(store.Close)
	store.SetProgram(func(string) Program { return root })
	return &testSession{f, t, store.Session(sessiontest.FileName)}
}

func (s *testSession) acquire() *Snapshot { return sessiontest.Snapshot(s.t, s.session) }

// snapshotOf returns a snapshot of a session's text.
func snapshotOf(t testing.TB, content string) *Snapshot {
	_, session := fuzzSession(t, []byte(content))
	return sessiontest.Snapshot(t, session)
}

// ids acquires the session and lists the ids of its entries, with the leaf behind a bar.
func (s *testSession) ids() string {
	snap, err := sessiontest.Acquire(s.t, s.session)
	if err != nil {
		return err.Error()
	}
	var ids []string
	for e := range Entry(snap.Len()) {
		id, _ := snap.ID(e)
		ids = append(ids, id)
	}
	leaf := sessiontest.Leaf(s.t, snap)
	id := "-"
	if leaf != NoEntry {
		id, _ = snap.ID(leaf)
	}
	return strings.Join(ids, ",") + "|" + id
}

func TestGrowth(t *testing.T) {
	s := newTestSession(t, sessiontest.Header, ByUnknown)
	require.Equal(t, "|-", s.ids())
	s.Append(sessiontest.Entry("a", ""))
	require.Equal(t, "a|a", s.ids())
	index := s.session.current.Load().index
	s.Append(sessiontest.Entry("b", "a") + sessiontest.Entry("c", "a"))
	require.Equal(t, "a,b,c|c", s.ids())
	require.Same(t, index, s.session.current.Load().index, "growth is indexed from the tail")

	torn := sessiontest.Entry("d", "c")
	s.Append(torn[:20])
	require.Equal(t, "a,b,c|c", s.ids())
	s.Append(torn[20:])
	require.Equal(t, "a,b,c,d|d", s.ids())
	require.Same(t, index, s.session.current.Load().index)

	noNewline := strings.TrimSuffix(sessiontest.Entry("e", "d"), "\n")
	s.Append(noNewline)
	require.Equal(t, "a,b,c,d,e|e", s.ids(), "the last line needs no newline")
	s.Append("\n" + sessiontest.Entry("f", "e"))
	require.Equal(t, "a,b,c,d,e,f|f", s.ids())
	require.Same(t, index, s.session.current.Load().index)
	s.Append(noNewline)
	require.Equal(t, "a,b,c,d,e,f,e|e", s.ids())
	s.Append(`, "glued"`)
	require.Equal(t, "a,b,c,d,e,f,e|e", s.ids(), "of a line with more behind its value the value counts")
	s.Append("\n")
	require.Equal(t, "a,b,c,d,e,f,e|e", s.ids())
}

func TestGrowthOfOpenRun(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+"[\n{\"type\":\"x\",\n\"id\":\"z\"}\n", ByUnknown)
	require.Equal(t, "z|z", s.ids(), "the array is not closed, so its second line begins a value")
	s.Append("]\n")
	require.Equal(t, "|-", s.ids(), "now it is, and swallows the lines")
	s.Append(sessiontest.Entry("a", ""))
	require.Equal(t, "a|a", s.ids())
}

func TestReplacement(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.Entry("a", ""), ByUnknown)
	require.Equal(t, "a|a", s.ids())
	old := s.acquire()

	tmp := s.Path + ".new"
	require.NoError(t, os.WriteFile(tmp, []byte(sessiontest.Header+sessiontest.Entry("b", "")), 0o600))
	require.NoError(t, os.Rename(tmp, s.Path))
	require.Equal(t, "b|b", s.ids(), "same size, another file")

	doc, err := old.EntryDocument(0)
	require.NoError(t, err)
	require.Contains(t, string(sessiontest.ReadObject(t, doc)), `"id":"a"`, "an old snapshot reads the old file")

	s.Write(sessiontest.Header)
	require.Equal(t, "|-", s.ids(), "truncated in place")
	s.Write(sessiontest.Header + sessiontest.Entry("c", "") + sessiontest.Entry("d", "c"))
	require.Equal(t, "c,d|d", s.ids())
	s.Write(sessiontest.Header + sessiontest.Entry("e", "") + sessiontest.Entry("f", "e"))
	require.Equal(t, "e,f|f", s.ids(), "overwritten in place with the same size")
	s.Write("")
	require.Equal(t, ErrNotSession.Error(), s.ids())
	s.Write(sessiontest.Header + sessiontest.Entry("g", ""))
	require.Equal(t, "g|g", s.ids())
	require.NoError(t, os.Remove(s.Path))
	require.Contains(t, s.ids(), "no such file")
}

// TestEditInTheMiddle: a text of the same length in the place of an entry, and a line added before anybody looks, is
// taken for growth at first. Whatever shows the entry or refers to it finds it out, and from then on the session is what the
// file says.
func TestEditInTheMiddle(t *testing.T) {
	ctx := context.Background()
	filler := sessiontest.Entry(strings.Repeat("f", headCheck), "b")
	move := strings.Replace(sessiontest.Entry("m", "c"), `"type":"message"`, `"type":"custom","customType":"`+LeafMoveType+`","data":{"targetId":"b"}`, 1)
	read := func(d *document.Document, err error) error {
		if err != nil {
			return err
		}
		defer d.Close()
		_, err = d.ReadAt(make([]byte, d.Size()), 0)
		return err
	}
	for name, look := range map[string]func(s *Snapshot, b Entry) error{
		"its text":       func(s *Snapshot, b Entry) error { _, err := s.EntryText(b); return err },
		"its name":       func(s *Snapshot, _ Entry) error { _, err := s.FindName("b"); return err },
		"as a parent":    func(s *Snapshot, _ Entry) error { _, err := s.Verify("b"); return err },
		"the new parent": func(s *Snapshot, _ Entry) error { _, err := s.Verify("x"); return err },
		"all":            func(s *Snapshot, _ Entry) error { return s.Confirm(ctx) },
		"the leaf":       func(s *Snapshot, _ Entry) error { _, err := s.Leaf(); return err },
		"its file":       func(s *Snapshot, b Entry) error { return read(s.EntryDocument(b)) },
		"a part of its file": func(s *Snapshot, b Entry) error {
			d, err := s.EntryDocument(b)
			require.NoError(t, err)
			defer d.Close()
			_, err = d.ReadAt(make([]byte, 8), d.Size()-8)
			return err
		},
		"a context": func(s *Snapshot, b Entry) error { return read(s.Context(ctx, b, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSession(t, sessiontest.Header+sessiontest.Entry("a", "")+filler+sessiontest.Entry("b", "a")+filler+sessiontest.Entry("c", "b")+move, ByUnknown)
			require.NotContains(t, s.ids(), "x")
			content, err := os.ReadFile(s.Path)
			require.NoError(t, err)
			added := strings.Replace(move, `"id":"m"`, `"id":"d"`, 1)
			s.Write(strings.Replace(string(content), `"id":"b"`, `"id":"x"`, 1) + added)

			snap := s.acquire()
			e, err := snap.Find("b")
			require.NoError(t, err, "nothing tells yet")
			require.ErrorIs(t, look(snap, e), storage.ErrStale)

			now := s.acquire()
			_, err = now.Find("b")
			require.ErrorIs(t, err, ErrNotFound)
			for _, id := range []string{"x", "d"} {
				_, err = now.Find(id)
				require.NoError(t, err, id)
			}
		})
	}
}

// TestConfirmOnce: what was found to be as it was indexed is not read again until the file grows; a file that was read as a
// whole needs none of that.
func TestConfirmOnce(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.Entry("a", "")+sessiontest.Entry("b", "a"), ByUnknown)
	missing := func() int {
		snap := s.acquire()
		left, _ := snap.index.confirmed.missing(snap.Len(), nil)
		require.NoError(t, snap.Confirm(context.Background()))
		return len(left)
	}
	require.Zero(t, missing())
	for n := range 3 {
		s.Append(sessiontest.Entry(fmt.Sprint(n), "a"))
		require.Equal(t, 2+n, missing(), "not what was added")
		require.Zero(t, missing())
	}
}
