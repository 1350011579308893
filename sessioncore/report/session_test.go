package report

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// testSession is a session whose file a test changes from outside.
type testSession struct {
	*sessiontest.File
	session *sessioncore.Session
}

// newTestSession returns the session in a file with this content, its header included.
func newTestSession(t *testing.T, content string) *testSession {
	f := sessiontest.NewFile(t, content)
	store := sessioncore.NewStore(f.Storage)
	t.Cleanup(store.Close)
	return &testSession{f, store.Session(sessiontest.FileName)}
}

// snapshotOf returns a snapshot of a session with these entries.
func snapshotOf(t *testing.T, entries string) *sessioncore.Snapshot {
	return newTestSession(t, sessiontest.Header+entries).acquire(t)
}

// snapshotOfFile returns a snapshot of a file of a program's.
func snapshotOfFile(t *testing.T, path string, program sessioncore.Program) *sessioncore.Snapshot {
	store := sessioncore.NewStore(sessiontest.OpenDir(t, filepath.Dir(path)))
	t.Cleanup(store.Close)
	store.SetProgram(func(string) sessioncore.Program { return program })
	return sessiontest.Snapshot(t, store.Session(filepath.Base(path)))
}

// fuzzSnapshots calls check with sessions of all kinds.
func fuzzSnapshots(f *testing.F, check func(t *testing.T, s *sessioncore.Snapshot)) {
	pool := sessiontest.AddSeeds(f, func(data []byte) { f.Add(data, uint64(0)); f.Add(data, uint64(len(data))) })
	f.Fuzz(func(t *testing.T, data []byte, mix uint64) {
		store := sessioncore.NewStore(sessiontest.Memory(t, pool.Mixed(data, mix)))
		t.Cleanup(store.Close)
		s, err := sessiontest.Acquire(t, store.Session(sessiontest.FileName))
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession)
			return
		}
		check(t, s)
	})
}

// chainOf returns n messages of the user, e0, e1, … below each other.
func chainOf(n int) string {
	var text strings.Builder
	parent := ""
	for i := range n {
		id := fmt.Sprint("e", i)
		text.WriteString(sessiontest.Entry(id, parent))
		parent = id
	}
	return text.String()
}

// messageAt is an entry with a message at second n under a parent.
func messageAt(n int, id, parent, message string) string {
	return strings.Replace(at(n, id, parent, `,"message":`+message), `"custom"`, `"message"`, 1)
}

// said is an entry with a message of the user.
func said(n int, id, parent, content string) string {
	return messageAt(n, id, parent, `{"role":"user","content":`+content+`}`)
}

// answer is an entry with an answer of a model of provider p.
func answer(n int, id, model, usage string) string {
	return messageAt(n, id, "", `{"role":"assistant","content":[],"provider":"p","model":"`+model+`","usage":`+usage+`}`)
}

// TestEditInTheMiddle: a text of the same length in the place of an entry, and a line added before anybody looks, is taken for
// growth at first. What shows the session as a whole finds it out, and from then on is what the file says.
func TestEditInTheMiddle(t *testing.T) {
	ctx := context.Background()
	text := func(d *document.Document, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return string(sessiontest.ReadExactly(t, d, nil)), nil
	}
	for name, look := range map[string]func(s *sessioncore.Snapshot) (string, error){
		"problems.jsonl": func(s *sessioncore.Snapshot) (string, error) { return text(Problems(ctx, s, nil)) },
		"branches.tsv":   func(s *sessioncore.Snapshot) (string, error) { return text(Branches(ctx, s)) },
		"usage.json": func(s *sessioncore.Snapshot) (string, error) {
			return text(Usage(ctx, s, sessioncore.NoEntry, nil, Prices{}, Sum{}))
		},
		"usage.jsonl": func(s *sessioncore.Snapshot) (string, error) {
			c, err := costsOf(ctx, s, Prices{})
			return fmt.Sprint(c), err
		},
		"by-label": func(s *sessioncore.Snapshot) (string, error) {
			l, err := FindByLabel(s, "old")
			return fmt.Sprint(l), err
		},
	} {
		filler := sessiontest.Entry(strings.Repeat("f", 5<<10), "")
		middle := `{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":"x","usage":{"output":1}}}` + "\n" +
			sessiontest.Entry("c", "b") + `{"type":"label","id":"l","parentId":"c","targetId":"a","label":"old"}` + "\n"
		content := sessiontest.Header + sessiontest.Entry("a", "") + filler + middle + filler
		s := newTestSession(t, content)
		was, err := look(s.acquire(t))
		require.NoError(t, err, name)
		s.Write(strings.NewReplacer(`"id":"b"`, `"id":"x"`, `"output":1`, `"output":2`, `"label":"old"`, `"label":"new"`).Replace(content) +
			sessiontest.Entry("d", ""))
		_, err = look(s.acquire(t))
		require.ErrorIs(t, err, storage.ErrStale, name)
		is, err := look(s.acquire(t))
		require.NotEqual(t, was, is, name)
		if name == "by-label" {
			require.ErrorIs(t, err, sessioncore.ErrNotFound)
		} else {
			require.NoError(t, err, name)
		}
	}
}

// acquire returns a snapshot of the session as its file is now, which ends with the test.
func (s *testSession) acquire(t *testing.T) *sessioncore.Snapshot {
	return sessiontest.Snapshot(t, s.session)
}
