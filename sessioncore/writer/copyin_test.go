package writer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/memory"
	"sessionfs/sessioncore/storage/pending"
)

// startCopying returns a writer over a directory, in which a file may be.
func startCopying(t *testing.T, content string) (w *writing, top string) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return startWriting(t, pending.New(sessiontest.OpenDir(t, top), nil), content, Options{Root: top}), top
}

// copyIn copies content to a name.
func (w *writing) copyIn(name, content string, change func(*Copied)) (Taken, error) {
	w.t.Helper()
	in, err := w.Receive(w.t.Context(), storage.Dir(name))
	require.NoError(w.t, err)
	defer in.Close()
	_, err = in.WriteAt([]byte(content), 0)
	require.NoError(w.t, err)
	c := Copied{Incoming: in, DirMode: storage.DirMode}
	if change != nil {
		change(&c)
	}
	return w.TakeIn(w.t.Context(), name, c)
}

// filesIn is the content of all files below a directory.
func filesIn(t *testing.T, top string) map[string]string {
	files := map[string]string{}
	for path, content := range snapshotOf(t, top) {
		name, err := filepath.Rel(top, path)
		require.NoError(t, err)
		files[name] = content
	}
	return files
}

// TestTakeIn: what is copied is taken in if it is a whole session, or an artifact; what is there is added to if the copy
// begins with it, and never changed otherwise.
func TestTakeIn(t *testing.T) {
	const more = `{"type":"message","id":"c","parentId":"b","timestamp":"2026-02-16T10:23:00.000Z","message":{"role":"user","content":"three"}}` + "\n"
	slot := string(titleSlot("a title", plainNow))
	large := plainFile + strings.Repeat(more, 6<<20/len(more))
	artifact := func(c *Copied) { c.Other = true }
	for _, c := range []struct {
		name, there, copied string
		change              func(*Copied)
		taken               Taken
		err                 error
	}{
		{"new", "", plainFile, nil, TakenNew, nil},
		{"a header alone", "", plainHeader, nil, TakenNew, nil},
		{"a title slot", "", slot + plainFile, nil, TakenNew, nil},
		{"a damaged line in the middle", "", plainHeader + "{broken\n" + plainUser, nil, TakenNew, nil},
		{"large", "", large, nil, TakenNew, nil},
		{"empty", "", "", nil, NotTaken, sessioncore.ErrInvalid},
		{"no JSON", "", "hello\n", nil, NotTaken, sessioncore.ErrInvalid},
		{"another header", "", "{}\n" + plainFile, nil, NotTaken, sessioncore.ErrInvalid},
		{"no newline", "", strings.TrimSuffix(plainFile, "\n"), nil, NotTaken, sessioncore.ErrInvalid},
		{"half a line", "", plainFile[:len(plainFile)-30], nil, NotTaken, sessioncore.ErrInvalid},
		{"half a header", "", plainHeader[:30], nil, NotTaken, sessioncore.ErrInvalid},
		{"half a line and a newline", "", plainFile + plainUser[:40] + "\n", nil, NotTaken, sessioncore.ErrInvalid},
		{"zeros", "", plainFile + "\x00\x00\x00\n", nil, NotTaken, sessioncore.ErrInvalid},
		{"an artifact", "", "anything", artifact, TakenNew, nil},
		{"an empty artifact", "", "", artifact, TakenNew, nil},
		{"a subagent's session, torn", "", plainFile[:len(plainFile)-30], artifact, NotTaken, sessioncore.ErrInvalid},
		{"the same", plainFile, plainFile, nil, TakenSame, nil},
		{"more", plainFile, plainFile + more, nil, TakenMore, nil},
		{"much more", plainFile, large, nil, TakenMore, nil},
		{"more than a torn one", plainFile[:len(plainFile)-30], plainFile, nil, TakenMore, nil},
		{"more than half a header", plainHeader[:30], plainFile, nil, TakenMore, nil},
		{"more than nothing", "\n", plainFile, nil, NotTaken, fs.ErrExist},
		{"less", plainFile, plainHeader + plainUser, nil, NotTaken, fs.ErrExist},
		{"another one", plainFile, strings.Replace(plainFile, "two", "six", 1) + more, nil, NotTaken, fs.ErrExist},
		{"more, torn", plainFile, plainFile + more[:20], nil, NotTaken, sessioncore.ErrInvalid},
		{"more of an artifact", "a log", "a log that goes on", artifact, TakenMore, nil},
		{"another artifact", "a log", "another log", artifact, NotTaken, fs.ErrExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, top := startCopying(t, c.there)
			if c.there == "" {
				require.NoError(t, os.Mkdir(filepath.Join(top, storage.Dir(plainName)), 0o755))
			}
			before := filesIn(t, top)
			taken, err := w.copyIn(plainName, c.copied, c.change)
			require.Equal(t, c.taken, taken)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				require.Equal(t, before, filesIn(t, top), "nothing has changed, and nothing is left")
				return
			}
			require.NoError(t, err)
			after := filesIn(t, top)
			require.Len(t, after, 1)
			require.True(t, c.copied == after[plainName])
			taken, err = w.copyIn(plainName, c.copied, c.change)
			require.NoError(t, err)
			require.Equal(t, TakenSame, taken, "once more")
		})
	}
}

// TestTakeInOverOthers: only a regular file is added to.
func TestTakeInOverOthers(t *testing.T) {
	w, top := startCopying(t, "")
	require.NoError(t, os.MkdirAll(filepath.Join(top, "p/dir.jsonl"), 0o755))
	outside := filepath.Join(t.TempDir(), "outside.jsonl")
	require.NoError(t, os.WriteFile(outside, []byte(plainFile), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(top, "p/link.jsonl")))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(top, "q")))
	for _, name := range []string{"p/dir.jsonl", "p/link.jsonl"} {
		_, err := w.copyIn(name, plainFile+plainReply, nil)
		require.ErrorIs(t, err, fs.ErrExist, name)
	}
	content, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, plainFile, string(content))
	for _, name := range []string{"../x.jsonl", "/x.jsonl", "p/../../x.jsonl", "p/\x00.jsonl"} {
		in, err := w.Receive(t.Context(), "p")
		require.NoError(t, err)
		_, err = in.WriteAt([]byte(plainFile), 0)
		require.NoError(t, err)
		_, err = w.TakeIn(t.Context(), name, Copied{Incoming: in})
		require.ErrorIs(t, err, storage.ErrBadName, name)
		require.NoError(t, in.Close())
	}
	_, err = w.Receive(t.Context(), "../..")
	require.ErrorIs(t, err, storage.ErrBadName)
}

// TestTakeInBesideWriters: of what is appended and copied at the same time nothing is lost, and one of several copies wins.
func TestTakeInBesideWriters(t *testing.T) {
	w, top := startCopying(t, plainFile)
	var copies, appends sync.WaitGroup
	var taken [8]Taken
	var errs [8]error
	for n := range taken {
		copies.Go(func() {
			line := strings.Replace(plainReply, `"b"`, fmt.Sprintf(`"copied%d"`, n), 1)
			taken[n], errs[n] = w.copyIn(plainName, plainFile+line, nil)
		})
	}
	appends.Go(func() {
		_, err := w.append(`{"type":"message","message":{"role":"user","content":"appended"}}`)
		require.NoError(t, err)
	})
	copies.Wait()
	appends.Wait()
	content := filesIn(t, top)[plainName]
	require.True(t, strings.HasPrefix(content, plainFile))
	require.Equal(t, 1, strings.Count(content, `"appended"`))
	won := 0
	for n, taken := range taken {
		has := strings.Count(content, fmt.Sprintf(`"id":"copied%d"`, n))
		require.Equal(t, taken == TakenMore, has == 1, "%v: %v", taken, errs[n])
		won += has
	}
	require.LessOrEqual(t, won, 1)
}

// TestTakeInMemory: a large copy is not held in memory, new or over one that is there.
func TestTakeInMemory(t *testing.T) {
	sessiontest.NotUnderRace(t)
	w, _ := startCopying(t, plainFile)
	in, err := w.Receive(t.Context(), "scope")
	require.NoError(t, err)
	defer in.Close()
	const size = 64 << 20
	line := strings.Replace(plainReply, "two", strings.Repeat("x", 10_000), 1)
	at, err := in.WriteAt([]byte(plainFile), 0)
	require.NoError(t, err)
	for at < size {
		n, err := in.WriteAt([]byte(line), int64(at))
		require.NoError(t, err)
		at += n
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, name := range []string{plainName, "scope/new.jsonl"} {
		_, err = w.TakeIn(t.Context(), name, Copied{Incoming: in})
		require.NoError(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size), "bytes allocated, over all")
}

// TestTakeInForOthers: another user copies where he may make files, adds to what he may write to, and sets the attributes
// of no file but his own.
func TestTakeInForOthers(t *testing.T) {
	w, top := startCopying(t, plainFile)
	file, scope := filepath.Join(top, plainName), filepath.Join(top, storage.Dir(plainName))
	other := &access.Caller{UID: uint32(os.Geteuid()) + 1, GIDs: []uint32{uint32(os.Getegid()) + 1}}
	require.NoError(t, os.Chmod(filepath.Dir(top), 0o755))
	if _, err := other.May(filepath.Dir(top), access.Search); err != nil {
		t.Skipf("others may not come here: %v", err)
	}
	ctx := access.With(t.Context(), other)
	mode := uint32(0o666)
	copyAs := func(name string) error {
		in, err := w.Receive(t.Context(), storage.Dir(name))
		require.NoError(t, err)
		defer in.Close()
		_, err = in.WriteAt([]byte(plainFile+plainReply), 0)
		require.NoError(t, err)
		_, err = w.TakeIn(ctx, name, Copied{Incoming: in, Attributes: storage.Attributes{Mode: &mode}})
		return err
	}
	require.NoError(t, os.Chmod(top, 0o755))
	require.NoError(t, os.Chmod(scope, 0o755))
	require.NoError(t, os.Chmod(file, 0o644))
	before := snapshotOf(t, top)
	_, err := w.Receive(ctx, "scope")
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorIs(t, copyAs("scope/new.jsonl"), fs.ErrPermission)
	require.ErrorIs(t, copyAs(plainName), fs.ErrPermission)
	require.ErrorIs(t, copyAs("made/new.jsonl"), fs.ErrPermission)
	require.ErrorIs(t, w.MakeDir(ctx, "made", 0o755), fs.ErrPermission)
	st, err := w.storage.Stat(plainName)
	require.NoError(t, err)
	require.ErrorIs(t, w.Remove(ctx, plainName, st.Token), fs.ErrPermission)
	require.Equal(t, before, snapshotOf(t, top))

	require.NoError(t, os.Chmod(file, 0o646))
	require.NoError(t, copyAs(plainName))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o646), info.Mode())
	require.NoError(t, os.Chmod(scope, 0o777))
	require.NoError(t, copyAs("scope/new.jsonl"))
}

// TestReceiveWhereNothingIs: a storage into which nothing can be copied says so, and so does a mount that is read-only.
func TestReceiveWhereNothingIs(t *testing.T) {
	_, err := startWriting(t, memory.New(), "", Options{}).Receive(t.Context(), "p")
	require.ErrorIs(t, err, storage.ErrUnsupported)
	w, top := startCopying(t, plainFile)
	w.opts.ReadOnly = true
	_, err = w.Receive(t.Context(), "p")
	require.ErrorIs(t, err, sessioncore.ErrReadOnly)
	require.ErrorIs(t, w.MakeDir(t.Context(), "p", 0o755), sessioncore.ErrReadOnly)
	require.ErrorIs(t, w.Remove(t.Context(), plainName, storage.Token{}), sessioncore.ErrReadOnly)
	require.Len(t, filesIn(t, top), 1)
}
