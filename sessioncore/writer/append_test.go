package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/persist"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

func TestAppendFillsIn(t *testing.T) {
	const stamp = `"timestamp":"` + plainNow + `"`
	tests := []struct{ name, give, want string }{
		{"all absent",
			`{"type":"message","message":{"role":"user","content":"hi"}}`,
			`{"type":"message","id":"00000001","parentId":"b",` + stamp + `,"message":{"role":"user","content":"hi"}}`},
		{"type last",
			`{"message":{"role":"user","content":"hi"},"type":"message"}`,
			`{"message":{"role":"user","content":"hi"},"type":"message","id":"00000001","parentId":"b",` + stamp + `}`},
		{"id given",
			`{"id":"x","type":"mode_change","mode":"plan"}`,
			`{"id":"x","type":"mode_change","parentId":"b",` + stamp + `,"mode":"plan"}`},
		{"parent given",
			`{"type":"mode_change","mode":"plan","parentId":"a"}`,
			`{"type":"mode_change","id":"00000001",` + stamp + `,"mode":"plan","parentId":"a"}`},
		{"a new root",
			`{"type":"mode_change","parentId":null,"mode":"plan"}`,
			`{"type":"mode_change","id":"00000001",` + stamp + `,"parentId":null,"mode":"plan"}`},
		{"all given",
			`{"type":"mode_change","id":"x","parentId":"a","timestamp":"2026-01-01T00:00:00Z","mode":"plan"}`,
			`{"type":"mode_change","id":"x","parentId":"a","timestamp":"2026-01-01T00:00:00Z","mode":"plan"}`},
		{"custom entries have them at the end",
			`{"type":"custom","customType":"t","data":{"n":1.50}}`,
			`{"type":"custom","customType":"t","data":{"n":1.50},"id":"00000001","parentId":"b",` + stamp + `}`},
		{"custom messages too",
			`{"type":"custom_message","customType":"t","id":"x","content":"c","display":true}`,
			`{"type":"custom_message","customType":"t","id":"x","content":"c","display":true,"parentId":"b",` + stamp + `}`},
		{"blanks, numbers and escapes stay",
			"  {\"type\" : \"mode_change\",\t\"mode\":\"\\u0070lan\", \"n\":[1.0, 1e2,12345678901234567890] }\r",
			"{\"type\" : \"mode_change\",\"id\":\"00000001\",\"parentId\":\"b\"," + stamp + ",\t\"mode\":\"\\u0070lan\", \"n\":[1.0, 1e2,12345678901234567890] }"},
		{"line breaks between tokens become blanks",
			"{\"type\":\"mode_change\",\n\"mode\":\r\n\"plan\"}",
			`{"type":"mode_change","id":"00000001","parentId":"b",` + stamp + `, "mode":  "plan"}`},
		{"no UTF-8",
			"{\"type\":\"mode_change\",\"mode\":\"a\xffb\xe2\x82c\"}",
			"{\"type\":\"mode_change\",\"id\":\"00000001\",\"parentId\":\"b\"," + stamp + ",\"mode\":\"a�b�c\"}"},
		{"a branch summary hangs under its fromId",
			`{"type":"branch_summary","fromId":"a","summary":"s"}`,
			`{"type":"branch_summary","id":"00000001","parentId":"a",` + stamp + `,"fromId":"a","summary":"s"}`},
		{"and at the root",
			`{"type":"branch_summary","fromId":"root","summary":"s"}`,
			`{"type":"branch_summary","id":"00000001","parentId":null,` + stamp + `,"fromId":"root","summary":"s"}`},
		{"unless it says where",
			`{"type":"branch_summary","parentId":"b","fromId":"gone","summary":"s"}`,
			`{"type":"branch_summary","id":"00000001",` + stamp + `,"parentId":"b","fromId":"gone","summary":"s"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := startMemory(t, plainFile, Options{})
			ids, err := w.append(test.give)
			require.NoError(t, err)
			require.Equal(t, []string{test.want}, w.added(plainFile))
			require.Len(t, ids, 1)
			require.Equal(t, ids[0], w.leaf())
			require.Empty(t, problemsOf(t, w.snapshot()))
		})
	}
}

func problemsOf(t testing.TB, s *sessioncore.Snapshot) []string {
	var lines []string
	problems, _ := s.Problems()
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%d: %s %s", p.Line, p.What, p.Why))
	}
	return lines
}

func TestAppendManyLines(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	ids, err := w.append(
		`{"type":"mode_change","id":"x","mode":"1"}`,
		`{"type":"label","targetId":"x","label":"L"}`,
		`{"type":"mode_change","parentId":"x","mode":"2"}`,
		`{"type":"mode_change","id":"x","mode":"3"}`,
		`{"type":"mode_change","mode":"4"}`,
	)
	require.ErrorIs(t, err, sessioncore.ErrExists)
	require.Equal(t, []string{"x", "00000001", "00000002"}, ids)
	require.Len(t, w.added(plainFile), 3)
	require.Equal(t, "00000002", w.leaf())
	require.Equal(t, "x", w.parentOfID("00000001"))

	before := w.content()
	ids, err = w.append(`{"type":"mode_change","mode":"5"}`, `{"type":"mode_change"}`, `{"type":"mode_change","mode":"6"}`)
	require.ErrorIs(t, err, sessioncore.ErrInvalid)
	require.Len(t, ids, 1)
	require.Len(t, w.added(before), 1)
}

func (w *writing) parentOfID(id string) string {
	snap := w.snapshot()
	e, err := snap.Find(id)
	require.NoError(w.t, err)
	if e = snap.Parent(e); e == sessioncore.NoEntry {
		return ""
	}
	parent, _ := snap.ID(e)
	return parent
}

// TestAppendRefuses: an error changes nothing and says why.
func TestAppendRefuses(t *testing.T) {
	tests := []struct {
		give string
		want error
	}{
		{`{"type":"mode_change","mode":"m","id":"a"}`, sessioncore.ErrExists},
		{`{"type":"mode_change","mode":"m","parentId":"gone"}`, sessioncore.ErrNotFound},
		{`{"type":"mode_change","mode":"m","parentId":""}`, sessioncore.ErrNotFound},
		{`{"type":"label","targetId":"gone","label":"x"}`, sessioncore.ErrNotFound},
		{`{"type":"branch_summary","fromId":"gone","summary":"s"}`, sessioncore.ErrNotFound},
		{"", sessioncore.ErrInvalid},
		{`{"type":"custom","customType":"x","data":"` + strings.Repeat("x", MaxLine) + `"}`, sessioncore.ErrTooBig},
	}
	for _, test := range tests {
		w := startMemory(t, plainFile, Options{})
		ids, err := w.append(test.give)
		require.ErrorIs(t, err, test.want, "%.80s", test.give)
		require.Empty(t, ids)
		require.Empty(t, w.added(plainFile))
	}
}

func TestAppendBusyAndReadOnly(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name string
		opts Options
		want error
	}{
		{"live", Options{}, sessioncore.ErrBusy},
		{"live, allowed", Options{LiveAllow: true}, nil},
		{"read-only", Options{ReadOnly: true}, sessioncore.ErrReadOnly},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := memory.New()
			putFile(t, files, plainName, plainFile)
			w := startWriting(t, answeringStorage{files, storage.WritersPresent, nil}, "", test.opts)
			_, err := w.append(`{"type":"mode_change","mode":"plan"}`)
			require.ErrorIs(t, err, test.want)
			require.ErrorIs(t, w.MoveLeaf(ctx, w.session, "a"), test.want)
			require.ErrorIs(t, w.SetLabel(ctx, w.session, "a", "L"), test.want)
			require.ErrorIs(t, w.SetTitle(ctx, w.session, "T"), test.want)
			if test.want != nil {
				require.Equal(t, plainFile, w.content())
			}
			_, err = w.Fork(ctx, w.session, "a")
			if !test.opts.ReadOnly {
				require.NoError(t, err, "it only reads its session")
				return
			}
			require.ErrorIs(t, err, sessioncore.ErrReadOnly)
		})
	}
}

// TestAppendAfterCut truncates the file at every byte of its last record: the torn line stays, and the appended line
// is read.
func TestAppendAfterCut(t *testing.T) {
	const line = `{"type":"mode_change","id":"new","mode":"plan"}`
	marks := 0
	for cut := len(plainHeader + plainUser); cut <= len(plainFile); cut++ {
		before := plainFile[:cut]
		w := startMemory(t, before, Options{})
		whole := cut >= len(plainFile)-1
		if cut%2 == 0 {
			w.snapshot() // with an index to go on from, and without
		}
		_, err := w.append(line)
		require.NoError(t, err)
		after := w.content()
		require.True(t, strings.HasPrefix(after, before))
		between := after[len(before) : strings.LastIndex(after[:len(after)-1], "\n")+1]
		marked := between == "\n"+tornMark
		if marked {
			marks++
		} else {
			require.Contains(t, []string{"", "\n"}, between)
		}
		snap := w.snapshot()
		entries, parent := 2, "a"
		if whole {
			entries, parent = 3, "b"
		}
		require.Equal(t, entries, snap.Len(), "cut at %d", cut)
		require.Equal(t, "new", w.leaf())
		require.Equal(t, parent, w.parentOfID("new"))
		torn := 0
		if !whole && !strings.HasSuffix(before, "\n") {
			torn = 1
		}
		if marked {
			torn++
		}
		require.Len(t, problemsOf(t, snap), torn, "cut at %d: %v", cut, problemsOf(t, snap))
	}
	require.Equal(t, 7, marks, "after the colons")
}

func TestAppendConcurrently(t *testing.T) {
	every.Journals(t, func(t *testing.T, s every.Store) {
		const writers, each = 8, 40
		s.WriteFile(t, plainName, plainFile)
		var group sync.WaitGroup
		var stores []*sessioncore.Session
		w := make([]*Writer, 2) // two mounts
		for i := range w {
			store := sessioncore.NewStore(s)
			t.Cleanup(store.Close)
			w[i] = New(store, Options{Journal: s})
			stores = append(stores, store.Session(plainName))
		}
		for i := range writers {
			group.Go(func() {
				for n := range each {
					line := fmt.Sprintf(`{"type":"custom","customType":"w%d","data":%d}`, i, n)
					_, err := w[i%2].Append(context.Background(), stores[i%2], []byte(line))
					for errors.Is(err, storage.ErrLocked) {
						_, err = w[i%2].Append(context.Background(), stores[i%2], []byte(line))
					}
					assert.NoError(t, err)
				}
			})
		}
		group.Wait()
		snap, err := stores[0].Acquire(context.Background())
		require.NoError(t, err)
		defer snap.Release()
		require.Equal(t, 2+writers*each, snap.Len())
		require.Empty(t, problemsOf(t, snap))
		leaf, err := snap.Leaf()
		require.NoError(t, err)
		require.Len(t, snap.Path(leaf), 2+writers*each, "each hangs under the one before")
	})
}

func TestAppendGoneAndNoSession(t *testing.T) {
	w := startMemory(t, "not a session\n", Options{})
	_, err := w.append(`{"type":"mode_change","mode":"plan"}`)
	require.ErrorIs(t, err, sessioncore.ErrNotSession)
	require.NoError(t, w.storage.(*memory.Storage).Remove(plainName))
	_, err = w.append(`{"type":"mode_change","mode":"plan"}`)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAppendMovesAndGoesOn(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	_, err := w.append(
		`{"type":"custom","customType":"sessionfs/leaf","parentId":"a","data":{"targetId":"a"}}`,
		`{"type":"mode_change","id":"x","mode":"plan"}`,
		`{"type":"custom","customType":"sessionfs/leaf","parentId":null,"data":{"targetId":null}}`,
		`{"type":"mode_change","id":"y","mode":"plan"}`,
	)
	require.NoError(t, err)
	require.Equal(t, "a", w.parentOfID("x"))
	require.Equal(t, "", w.parentOfID("y"))
}

// TestAppendBesideClient: an append fails while a program keeps the file open for writing; it waits for one that
// closes the file at once.
func TestAppendBesideClient(t *testing.T) {
	files := dirtest.New(t)
	w := startWriting(t, files, plainFile, Options{})
	if state, err := files.Writers(plainName); err != nil || state != storage.WritersNone {
		t.Skipf("live clients cannot be seen here: %v, %v", state, err)
	}
	const line = `{"type":"mode_change","mode":"plan"}`
	client, err := os.OpenFile(dirtest.Path(files, plainName), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = w.append(line)
	require.ErrorIs(t, err, sessioncore.ErrBusy)
	require.Equal(t, plainFile, w.content())
	require.Empty(t, storagetest.Leftovers(t, files.Path()))

	done := make(chan error)
	go func() {
		time.Sleep(liveLimit / 3)
		done <- client.Close()
	}()
	_, err = w.append(line)
	require.NoError(t, err)
	require.NoError(t, <-done)
}

// TestAppendLocked: an append waits for a lock for a limited time, and then fails.
func TestAppendLocked(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	unlock, err := w.opts.Journal.Lock(context.Background(), plainName)
	require.NoError(t, err)
	_, err = w.append(`{"type":"mode_change","mode":"plan"}`)
	require.ErrorIs(t, err, storage.ErrLocked)
	require.NoError(t, unlock())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = w.Append(ctx, w.session, []byte(`{"type":"mode_change","mode":"plan"}`))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, plainFile, w.content())
}

// TestAppendIndexesTheTail: the snapshot after our own append shares what was indexed before.
func TestAppendIndexesTheTail(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	before := w.snapshot()
	for range 100 {
		_, err := w.append(`{"type":"mode_change","mode":"plan"}`)
		require.NoError(t, err)
	}
	require.Same(t, before.File(), w.snapshot().File())
	require.Equal(t, 102, w.snapshot().Len())
	require.Equal(t, 2, before.Len())
}

// TestAppendWithoutUsage: the client cannot open a session with an assistant's message without usage.
func TestAppendWithoutUsage(t *testing.T) {
	d, err := parseDraft([]byte(`{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"n":1.0}} `), sessioncore.OMP, persist.Rules{})
	require.NoError(t, err)
	require.Equal(t, `{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"n":1.0,`+noUsage+`}}`, string(d.text))
}

func TestGoesOn(t *testing.T) {
	for line, want := range map[string]bool{
		`{"a":`: true, `{"a":[`: true, `{"a":[{},`: true, "[": true, "{\"a\":\t": true,
		"": false, " ": false, `{`: false, `{"a"`: false, `{"a":"x`: false, `{"a":1`: false, `{"a":{}`: false, `{"a":1}`: false,
		`{"a":tru`: false, "\x00": false, "text": false,
	} {
		require.Equal(t, want, canContinue([]byte(line)), "%q", line)
	}
}

// TestAppendUnderAnOverwrittenEntry: appended lines cannot refer to an id that is in the index but no longer in the
// file.
func TestAppendUnderAnOverwrittenEntry(t *testing.T) {
	files := dirtest.New(t)
	filler := sessiontest.Entry(strings.Repeat("f", 8<<10), "a")
	w := startWriting(t, files, plainFile+filler+sessiontest.Entry("old", "a")+filler, Options{})
	require.Equal(t, "a", w.parentOfID("old"))
	content := strings.Replace(w.content(), `"id":"old"`, `"id":"new"`, 1) + sessiontest.Entry("more", "a")
	require.NoError(t, os.WriteFile(dirtest.Path(files, plainName), []byte(content), 0o600))
	for _, line := range []string{
		`{"type":"mode_change","mode":"plan","parentId":"old"}`,
		`{"type":"label","targetId":"old","label":"L"}`,
	} {
		_, err := w.append(line)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, line)
	}
	require.ErrorIs(t, w.MoveLeaf(t.Context(), w.session, "old"), sessioncore.ErrNotFound)
	require.Equal(t, content, w.content())
	_, err := w.append(`{"type":"mode_change","mode":"plan","parentId":"new"}`)
	require.NoError(t, err)
}
