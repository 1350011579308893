package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// problemsOf returns the problems of a session, a text each.
func problemsOf(_ testing.TB, s *sessioncore.Snapshot) []string {
	var lines []string
	problems, _ := s.Problems()
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%d: %s %s", p.Line, p.What, p.Why))
	}
	return lines
}

// parentOfID returns the id of the parent of the entry id, "" for none.
func (w *writing) parentOfID(id string) string {
	snap := w.snapshot()
	e, err := snap.Find(id)
	require.NoError(w.t, err)
	parent := snap.Parent(e)
	if parent == sessioncore.NoEntry {
		return ""
	}
	parentID, _ := snap.ID(parent)
	return parentID
}

// TestTooLong: a line, a title and a working directory have a bound.
func TestTooLong(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	_, err := w.append(`{"type":"custom","customType":"x","data":"` + strings.Repeat("x", MaxLine) + `"}`)
	require.ErrorIs(t, err, sessioncore.ErrTooBig)
	require.ErrorIs(t, w.SetTitle(t.Context(), w.session, strings.Repeat("x", maxTitle+1)), sessioncore.ErrInvalid)
	require.ErrorIs(t, w.SetCWD(t.Context(), w.session, "/"+strings.Repeat("x", sessioncore.MaxPath)), sessioncore.ErrInvalid)
	require.Equal(t, plainFile, w.content())
}

// TestAppendBusyAndReadOnly: if the storage cannot tell whether a program has the file open for writing, a write
// succeeds; if its check fails, the write fails too.
func TestAppendBusyAndReadOnly(t *testing.T) {
	for name, test := range map[string]struct {
		state storage.WriterState
		err   error
		opts  Options
		want  error
	}{
		"nobody":        {storage.WritersNone, nil, Options{}, nil},
		"unknown":       {storage.WritersUnknown, nil, Options{}, nil},
		"failed":        {storage.WritersUnknown, unix.EACCES, Options{}, unix.EACCES},
		"live":          {storage.WritersPresent, nil, Options{}, sessioncore.ErrBusy},
		"live, allowed": {storage.WritersPresent, nil, Options{LiveAllow: true}, nil},
		"read-only":     {storage.WritersPresent, nil, Options{ReadOnly: true}, sessioncore.ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			files := memory.New()
			putFile(t, files, plainName, plainFile)
			w := startWriting(t, answeringStorage{files, test.state, test.err}, "", test.opts)
			for what, write := range everyWrite {
				require.ErrorIs(t, write(w.Writer, w.session), test.want, what)
			}
			require.Equal(t, test.want != nil, w.content() == plainFile)
			if _, err := w.Fork(t.Context(), w.session, "a", ""); test.opts.ReadOnly {
				require.ErrorIs(t, err, sessioncore.ErrReadOnly)
			} else {
				require.NoError(t, err, "it only reads its session")
			}
		})
	}
}

// TestAppendAfterCut truncates the file at every byte of its last record: the torn line stays, and the appended line
// is read. A mark stands between them where the torn line could go on in it.
func TestAppendAfterCut(t *testing.T) {
	const line = `{"type":"mode_change","id":"new","mode":"plan"}`
	marks := 0
	for cut := len(plainHeader + plainUser); cut <= len(plainFile); cut++ {
		before := plainFile[:cut]
		w := startMemory(t, before, Options{})
		if cut%2 == 0 {
			w.snapshot() // so that half of the appends continue an index
		}
		w.adds(line)
		after := w.content()
		require.True(t, strings.HasPrefix(after, before))
		lastLine := strings.LastIndex(strings.TrimSuffix(after, "\n"), "\n") + 1
		between := after[len(before):lastLine]
		isMarked := between == "\n"+tornMark
		if isMarked {
			marks++
		} else {
			require.Contains(t, []string{"", "\n"}, between)
		}
		isWhole := cut >= len(plainFile)-1 // but for the newline
		entries := 2
		parent := "a"
		if isWhole {
			entries = 3
			parent = "b"
		}
		snap := w.snapshot()
		require.Equal(t, entries, snap.Len(), "cut at %d", cut)
		require.Equal(t, "new", w.leaf())
		require.Equal(t, parent, w.parentOfID("new"))
		problems := 0
		if !isWhole && !strings.HasSuffix(before, "\n") {
			problems++ // the torn line
		}
		if isMarked {
			problems++ // the mark is no entry either
		}
		require.Len(t, problemsOf(t, snap), problems, "cut at %d: %v", cut, problemsOf(t, snap))
	}
	require.Equal(t, 7, marks, "after the colons")
}

// TestAppendGone: an append to a file that was removed makes no new one.
func TestAppendGone(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	require.NoError(t, w.storage.(*memory.Storage).Remove(plainName))
	_, err := w.append(`{"type":"mode_change","mode":"plan"}`)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestAppendBesideClient: an append fails while a program keeps the file open for writing; it waits for one that
// closes the file at once.
func TestAppendBesideClient(t *testing.T) {
	files := sessiontest.OpenDir(t, t.TempDir())
	w := startWriting(t, files, plainFile, Options{})
	if state, err := files.Writers(plainName); err != nil || state != storage.WritersNone {
		t.Skipf("live clients cannot be seen here: %v, %v", state, err)
	}
	const line = `{"type":"mode_change","mode":"plan"}`
	client, err := os.OpenFile(filepath.Join(files.Path(), plainName), os.O_WRONLY|os.O_APPEND, 0)
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
	w.adds(line)
	require.NoError(t, <-done)
}

// TestCanContinue: an object on the next line can continue only a value in which a value is expected next.
func TestCanContinue(t *testing.T) {
	for line, want := range map[string]bool{
		`{"a":`: true, `{"a":[`: true, `{"a":[{},`: true, "[": true, "{\"a\":\t": true,
		"": false, " ": false, `{`: false, `{"a"`: false, `{"a":"x`: false, `{"a":1`: false, `{"a":{}`: false, `{"a":1}`: false,
		`{"a":tru`: false, "\x00": false, "text": false,
	} {
		require.Equal(t, want, canContinue([]byte(line)), "%q", line)
	}
}

// TestAppendUnderAnOverwrittenEntry: appended lines cannot refer to an id that the index has but the file has lost.
func TestAppendUnderAnOverwrittenEntry(t *testing.T) {
	files := sessiontest.OpenDir(t, t.TempDir())
	filler := sessiontest.Entry(strings.Repeat("f", 8<<10), "a")
	w := startWriting(t, files, plainFile+filler+sessiontest.Entry("old", "a")+filler, Options{})
	require.Equal(t, "a", w.parentOfID("old"))
	content := strings.Replace(w.content(), `"id":"old"`, `"id":"new"`, 1) + sessiontest.Entry("more", "a")
	require.NoError(t, os.WriteFile(filepath.Join(files.Path(), plainName), []byte(content), 0o600))
	for _, line := range []string{
		`{"type":"mode_change","mode":"plan","parentId":"old"}`,
		`{"type":"label","targetId":"old","label":"L"}`,
	} {
		_, err := w.append(line)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, line)
	}
	require.ErrorIs(t, w.MoveLeaf(t.Context(), w.session, new("old")), sessioncore.ErrNotFound)
	require.Equal(t, content, w.content())
	w.adds(`{"type":"mode_change","mode":"plan","parentId":"new"}`)
}

// longBase64 is base64 of the length from which on images go into blobs.
var longBase64 = strings.Repeat("QUJD", 256)

// TestBlobsBeforeTheLine: an image of a line is stored, unless the line is refused.
func TestBlobsBeforeTheLine(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	w.adds(`{"type":"message","message":{"role":"user","content":[{"type":"image","data":"` + longBase64 + `"}]}}`)
	require.Equal(t, strings.Repeat("ABC", 256), w.blobs.blobs["9f167a0cd6a6c458fe987389ae9f7ade033e87b3cd888742573f527d1c5d3a29"])
	require.Contains(t, w.content(), `"data":"blob:sha256:9f167a`)

	_, err := w.append(`{"type":"message","parentId":"gone","message":{"role":"user","content":[{"type":"image","data":"` +
		strings.Repeat("QUJE", 256) + `"}]}}`)
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
	require.Len(t, w.blobs.blobs, 1, "no blob of a refused line")
}

// TestPiImages: in a session that may be one of pi images stay in the line, whole: pi has no blobs.
func TestPiImages(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const omps = plainFile + `{"type":"model_change","id":"m","parentId":"b","timestamp":"2026-02-16T10:20:30.000Z","model":"openai/gpt"}` + "\n"
	huge := strings.Repeat("QUJD", 500_000/3)
	line := `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + huge +
		`"}],"image_url":"data:image/png;base64,` + huge + `"}}`
	for _, test := range []struct {
		content string
		root    sessioncore.Program
		inline  bool
	}{
		{plainFile, sessioncore.ByPi, true}, {plainFile, sessioncore.ByUnknown, true}, {omps, sessioncore.LikelyByPi, true},
		{plainFile, sessioncore.ByOMP, false}, {omps, sessioncore.ByUnknown, false},
	} {
		w := startMemory(t, test.content, Options{})
		w.store.SetProgram(func(string) sessioncore.Program { return test.root })
		w.adds(line, line)
		added := w.content()[len(test.content):]
		require.Equal(t, test.inline, strings.Count(added, `"data":"`+huge+`"`) == 2)
		require.Equal(t, test.inline, strings.Count(added, `base64,`+huge+`"`) == 2)
		require.Equal(t, test.inline, len(w.blobs.blobs) == 0)
	}
}

// startRaced starts writing to a storage in which a program without the lock replaces the file during the first append.
// replaced returns its new content, by the content after the append. That append fails with err.
func startRaced(t *testing.T, replaced func(content string) string, err error) *writing {
	mem := memory.New()
	putFile(t, mem, plainName, plainFile)
	appends := 0
	afterCall := func(c storagetest.Call, failed error) error {
		if c.Op != "Append" || failed != nil {
			return failed
		}
		appends++
		if appends > 1 {
			return nil
		}
		content := replaced(fileContent(t, mem, c.Name))
		require.NoError(t, mem.WriteFile(c.Name, []byte(content)))
		return err
	}
	files := &storagetest.Hooked{Storage: mem, After: afterCall}
	return startWriting(t, files, "", Options{})
}

// TestAppendBesideRewriter: a program without the lock replaces the file while we append. Lines that it has taken over
// are not written again, other lines are written with the same ids, and its own lines stay.
func TestAppendBesideRewriter(t *testing.T) {
	const (
		mode    = `{"type":"mode_change","mode":"plan"}`
		none    = `{"type":"mode_change","mode":"none"}`
		mine    = `{"type":"mode_change","id":"mine","parentId":"b","mode":"plan"}`
		foreign = `{"type":"mode_change","id":"foreign","parentId":"b","timestamp":"` + plainNow + `","mode":"x"}` + "\n"
	)
	whole := func(s string) string { return s }
	before := func(string) string { return plainFile }
	first := func(s string) string { // only the first of our lines
		line, _, _ := strings.Cut(s[len(plainFile):], "\n")
		return plainFile + line + "\n"
	}
	for name, test := range map[string]struct {
		makes func(string) string
		lines []string
		ids   []string
		file  string // the ids in the file in the end
		leaf  string
		err   error
	}{
		"taken over":           {whole, []string{mode}, []string{"00000001"}, "a b 00000001", "00000001", nil},
		"not taken over":       {before, []string{mode}, []string{"00000001"}, "a b 00000001", "00000001", nil},
		"both taken over":      {whole, []string{mode, none}, []string{"00000001", "00000002"}, "a b 00000001 00000002", "00000002", nil},
		"the first taken over": {first, []string{mode, none}, []string{"00000001", "00000002"}, "a b 00000001 00000002", "00000002", nil},
		"something was added":  {func(s string) string { return s + foreign }, []string{mode}, []string{"00000001"}, "a b 00000001 foreign", "foreign", nil},
		"something else": {func(string) string { return plainFile + foreign }, []string{mode}, []string{"00000001"}, "a b foreign 00000001",
			"00000001", nil},
		"written in other ways": {func(s string) string { return strings.ReplaceAll(s, `"plan"`, ` "pl\u0061n" `) }, []string{mode},
			[]string{"00000001"}, "a b 00000001", "00000001", nil},
		"in another format": {func(s string) string { return string(titleSlot("T", titleByUser, plainNow)) + s }, []string{mode},
			[]string{"00000001"}, "a b 00000001", "00000001", nil},
		"with an id": {whole, []string{mine}, []string{"mine"}, "a b mine", "mine", nil},
		"with an id, in other ways": {func(s string) string { return strings.ReplaceAll(s, `"plan"`, ` "pl\u0061n" `) }, []string{mine},
			[]string{"mine"}, "a b mine", "mine", nil},
		"with an id, not taken over": {before, []string{mine}, []string{"mine"}, "a b mine", "mine", nil},
		"with an id, before another": {first, []string{mine, mode}, []string{"mine", "00000001"}, "a b mine 00000001", "00000001", nil},
		"the id of something else": {func(string) string { return plainFile + strings.Replace(foreign, "foreign", "mine", 1) }, []string{mine}, nil,
			"a b mine", "mine", sessioncore.ErrExists},
		"with something that is wrong": {whole, []string{mode, "{}"}, []string{"00000001"}, "a b 00000001", "00000001", sessioncore.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			w := startRaced(t, test.makes, storage.ErrStale)
			ids, err := w.append(test.lines...)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.ids, ids)
			snap := w.snapshot()
			var got []string
			for e := range sessioncore.Entry(snap.Len()) {
				id, _ := snap.ID(e)
				got = append(got, id)
			}
			require.Equal(t, test.file, strings.Join(got, " "))
			require.Equal(t, test.leaf, w.leaf())
		})
	}
}

// TestLabelAndLeafBesideRewriter: a label and a move of the leaf are one line, also if the file is replaced meanwhile.
func TestLabelAndLeafBesideRewriter(t *testing.T) {
	for name, do := range map[string]func(w *writing) error{
		"label": func(w *writing) error { return w.SetLabel(context.Background(), w.session, "a", "L") },
		"leaf":  func(w *writing) error { return w.MoveLeaf(context.Background(), w.session, new("a")) },
	} {
		for carried, makes := range map[string]func(string) string{
			"taken over":     func(s string) string { return s },
			"not taken over": func(string) string { return plainFile },
		} {
			t.Run(name+", "+carried, func(t *testing.T) {
				w := startRaced(t, makes, storage.ErrStale)
				require.NoError(t, do(w))
				require.Equal(t, 3, w.snapshot().Len())
			})
		}
	}
}

// TestAppendLeftInPart: a program without the lock wrote behind an append that failed, so that the append cannot be
// undone. Its whole lines took effect, and the error is about the next line.
func TestAppendLeftInPart(t *testing.T) {
	const (
		mode    = `{"type":"mode_change","mode":"plan"}`
		foreign = "\n" + `{"type":"mode_change","id":"foreign","parentId":"b","timestamp":"` + plainNow + `","mode":"x"}` + "\n"
	)
	// upTo keeps a number of our lines, and some bytes of the next one.
	upTo := func(lines, bytes int) func(string) string {
		return func(content string) string {
			end := len(plainFile)
			for range lines {
				end += strings.Index(content[end:], "\n") + 1
			}
			return content[:end+bytes] + foreign
		}
	}
	for name, test := range map[string]struct {
		left func(string) string
		ids  []string
		err  error
	}{
		"a torn line":         {upTo(0, 20), nil, unix.ENOSPC},
		"a line":              {upTo(1, 0), []string{"00000001"}, unix.ENOSPC},
		"a line and a half":   {upTo(1, 20), []string{"00000001"}, unix.ENOSPC},
		"two lines":           {upTo(2, 0), []string{"00000001", "00000002"}, unix.ENOSPC},
		"all, with a newline": {upTo(3, 0), []string{"00000001", "00000002", "00000003"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := startRaced(t, test.left, unix.ENOSPC)
			ids, err := w.append(mode, mode, mode)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.ids, ids)
			require.Equal(t, 3+len(ids), w.snapshot().Len())
			more, err := w.append([]string{mode, mode, mode}[len(ids):]...) // as a program does after a short write
			require.NoError(t, err)
			require.Len(t, more, 3-len(ids))
			require.Equal(t, 6, w.snapshot().Len())
		})
	}
}

// TestAppendConcurrently: lines that several goroutines of two mounts append are all there, each the child of the one before.
func TestAppendConcurrently(t *testing.T) {
	every.Journals(t, func(t *testing.T, s every.Store) {
		const (
			mounts    = 2
			appenders = 8
			each      = 40 // lines
			total     = 2 + appenders*each
		)
		s.WriteFile(t, plainName, plainFile)
		writers := make([]*Writer, mounts)
		sessions := make([]*sessioncore.Session, mounts)
		for i := range mounts {
			store := sessioncore.NewStore(s)
			t.Cleanup(store.Close)
			writers[i] = New(store, Options{Journal: s})
			sessions[i] = store.Session(plainName)
		}
		var group sync.WaitGroup
		for i := range appenders {
			w := writers[i%mounts]
			session := sessions[i%mounts]
			group.Go(func() {
				for n := range each {
					line := fmt.Appendf(nil, `{"type":"custom","customType":"w%d","data":%d}`, i, n)
					_, err := w.Append(context.Background(), session, line)
					for errors.Is(err, storage.ErrLocked) { // the machine is busy
						_, err = w.Append(context.Background(), session, line)
					}
					assert.NoError(t, err)
				}
			})
		}
		group.Wait()
		snap := sessiontest.Snapshot(t, sessions[0])
		require.Equal(t, total, snap.Len())
		require.Empty(t, problemsOf(t, snap))
		leaf := sessiontest.Leaf(t, snap)
		require.Len(t, snap.Path(leaf), total, "each hangs under the one before")
	})
}
