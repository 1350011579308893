package sessioncore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
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

// ids acquires the session and lists the ids of its entries, with the leaf behind a bar, "-" for none. It returns the text of
// an error of Acquire.
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
	leaf := "-"
	e := sessiontest.Leaf(s.t, snap)
	if e != NoEntry {
		leaf = ids[e]
	}
	return strings.Join(ids, ",") + "|" + leaf
}

// TestGrowth: a session follows its file through each kind of change.
func TestGrowth(t *testing.T) {
	s := newTestSession(t, "", ByUnknown)
	currentIndex := func() *index { // nil if none is cached
		snap := s.session.current.Load()
		if snap == nil {
			return nil
		}
		return snap.index
	}
	sessiontest.Table(t, "testdata/growth.txt", func(t *testing.T, _, give string) string {
		word, rest, _ := strings.Cut(give, " ")
		before := currentIndex()
		text := ""
		for entry := range strings.SplitSeq(rest, ", ") {
			id, parent, _ := strings.Cut(entry, " ")
			if id != "" {
				text += sessiontest.Entry(id, parent)
			}
		}
		switch word {
		case "add":
			s.Append(text)
		case "begin":
			s.Append(text[:20])
		case "end":
			s.Append(text[20:])
		case "unended":
			s.Append(strings.TrimSuffix(text, "\n"))
		case "append":
			text, err := strconv.Unquote(rest)
			require.NoError(t, err)
			s.Append(text)
		case "write":
			s.Write(sessiontest.Header + text)
		case "truncate":
			s.Write("")
		case "replace":
			old := s.acquire()
			require.NoError(t, os.WriteFile(s.Path+".new", []byte(sessiontest.Header+text), 0o600))
			require.NoError(t, os.Rename(s.Path+".new", s.Path))
			doc, err := old.EntryDocument(0)
			require.NoError(t, err)
			require.Contains(t, string(sessiontest.ReadObject(t, doc)), `"id":"a"`, "an old snapshot reads the old file")
		}
		ids := s.ids()
		hasGrown := before != nil && currentIndex() == before
		if hasGrown {
			ids += " grown"
		}
		return ids
	})
	require.NoError(t, os.Remove(s.Path))
	require.Contains(t, s.ids(), "no such file")
}

// TestEditInTheMiddle: an entry that is replaced by a text of the same length is at first taken for growth, if a line is added
// before the next Acquire. All that shows the entry or refers to it detects that, and the next Acquire reads the file anew.
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
		"all":            func(s *Snapshot, _ Entry) error { return s.ConfirmAll(ctx) },
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

// TestPartOfOverwrittenEntry: a reader of a part of an entry that was overwritten gets an error each time, not only at first.
func TestPartOfOverwrittenEntry(t *testing.T) {
	filler := sessiontest.Entry(strings.Repeat("f", headCheck), "b")
	s := newTestSession(t, sessiontest.Header+filler+sessiontest.Entry("b", "")+filler, ByUnknown)
	s.acquire()
	content, err := os.ReadFile(s.Path)
	require.NoError(t, err)
	overwritten := strings.Replace(string(content), `"id":"b"`, `"id":"x"`, 1)
	s.Write(overwritten + sessiontest.Entry("c", "b"))
	doc, err := s.acquire().EntryDocument(1)
	require.NoError(t, err)
	defer doc.Close()
	part := make([]byte, 8)
	for range 3 {
		_, err = doc.ReadAt(part, doc.Size()-int64(len(part)))
		require.ErrorIs(t, err, storage.ErrStale)
	}
}

// TestConfirmOnce: a verified entry is not read again until the file grows. In a file that was read as a whole, none is.
func TestConfirmOnce(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.Entry("a", "")+sessiontest.Entry("b", "a"), ByUnknown)
	missing := func() int {
		snap := s.acquire()
		left, _ := snap.index.confirmed.missingOfFirst(snap.Len())
		require.NoError(t, snap.ConfirmAll(context.Background()))
		return len(left)
	}
	require.Zero(t, missing())
	for n := range 3 {
		s.Append(sessiontest.Entry(fmt.Sprint(n), "a"))
		require.Equal(t, 2+n, missing(), "not what was added")
		require.Zero(t, missing())
	}
}

// TestRacySlot: after a title slot is overwritten within a tick of the clock of file times, Acquire returns another snapshot,
// so that the title is rendered anew.
func TestRacySlot(t *testing.T) {
	slot := func(title string) string {
		return `{"type":"title","v":1,"title":"` + title + `","source":"user","updatedAt":"2026-02-16T10:20:30.000Z","pad":""}` + "\n"
	}
	for _, racy := range []bool{true, false} {
		mem := sessiontest.Memory(t, []byte(slot("one")+sessiontest.Header+sessiontest.Entry("a", "")))
		store := NewStore(&storagetest.Stopped{Storage: mem, At: storagetest.Ticking(racy)})
		t.Cleanup(store.Close)
		session := store.Session(sessiontest.FileName)
		before := sessiontest.Snapshot(t, session)
		require.Same(t, before, sessiontest.Snapshot(t, session))
		st, err := mem.Stat(sessiontest.FileName)
		require.NoError(t, err)
		_, err = mem.Replace(sessiontest.FileName, storage.Replacement{Expect: st.Token, Head: []byte(slot("two"))})
		require.NoError(t, err)
		require.Equal(t, racy, before != sessiontest.Snapshot(t, session))
	}
}
