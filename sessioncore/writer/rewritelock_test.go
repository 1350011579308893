package writer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/dir/dirtest"
)

// watchedStorage is a storage that notes what is done under the lock.
type watchedStorage struct {
	storage.Storage
	locked  atomic.Int32
	atWrite func() // called while a replacement is written

	writtenUnlocked, writtenLocked, addedLocked int // bytes of replacements
	replacements                                int
}

func (w *watchedStorage) Lock(ctx context.Context, name string) (func() error, error) {
	unlock, err := w.Storage.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	w.locked.Add(1)
	return func() error { w.locked.Add(-1); return unlock() }, nil
}

func (w *watchedStorage) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	w.replacements++
	return w.Storage.Replace(name, storage.Replacement{Expect: r.Expect, Write: func(out io.Writer) error {
		var text bytes.Buffer
		err := r.Write(io.MultiWriter(out, &text))
		if w.locked.Load() > 0 {
			w.writtenLocked += text.Len()
		} else {
			w.writtenUnlocked += text.Len()
		}
		if w.atWrite != nil {
			w.atWrite()
		}
		return err
	}, Ready: func(more io.Writer) (storage.Token, error) {
		var text bytes.Buffer
		token, err := r.Ready(io.MultiWriter(more, &text))
		w.addedLocked += text.Len()
		return token, err
	}})
}

// childLockedWriter FILE LINES: appends lines as a client does, under the lock of the file.
func childLockedWriter(args []string) error {
	files, err := dir.Open(filepath.Dir(args[0]))
	if err != nil {
		return err
	}
	defer files.Close()
	name := filepath.Base(args[0])
	var lines int
	if _, err := fmt.Sscan(args[1], &lines); err != nil {
		return err
	}
	for i := range lines {
		unlock, err := files.Lock(context.Background(), name)
		if err != nil {
			return err
		}
		_, err = files.Append(name, fmt.Appendf(nil, `{"type":"custom","customType":"other","id":"other-%d","parentId":null,"timestamp":"%s"}`+"\n", i, plainNow))
		if err2 := unlock(); err == nil {
			err = err2
		}
		if err != nil {
			return err
		}
	}
	return childtest.SayReady()
}

// TestRewriteWithoutTheLock: a session is copied while the lock is free. What another process appends meanwhile, under
// the lock, is in the new file, and only that is written while the lock is held.
func TestRewriteWithoutTheLock(t *testing.T) {
	files := dirtest.New(t)
	watched := &watchedStorage{Storage: files}
	putFile(t, files, plainName, headerWithoutSlot)
	w := startWriting(t, watched, "", Options{})
	size := len(w.content())
	for i := range 3 {
		watched.atWrite = func() {
			watched.atWrite = nil
			_, end := childtest.Start(t, "locked", dirtest.Path(files, plainName), "3")
			end()
		}
		before := w.content()
		require.NoError(t, w.SetTitle(context.Background(), w.session, fmt.Sprintf("title %d", i)))
		require.Zero(t, watched.writtenLocked)
		require.Greater(t, watched.writtenUnlocked, size)
		require.Greater(t, len(w.content()), len(before))
		require.Equal(t, i+1, watched.replacements, "once each")
		for n := range 3 {
			require.Equal(t, i+1, bytes.Count([]byte(w.content()), fmt.Appendf(nil, `"other-%d"`, n)))
		}
	}
	require.Positive(t, watched.addedLocked)
	require.Less(t, watched.addedLocked, 10*400)
	require.Zero(t, watched.locked.Load())
}

// TestRewriteOfAReplacedFile: a session that is replaced while it is copied is copied again.
func TestRewriteOfAReplacedFile(t *testing.T) {
	files := dirtest.New(t)
	watched := &watchedStorage{Storage: files}
	putFile(t, files, plainName, headerWithoutSlot)
	w := startWriting(t, watched, "", Options{})
	content := w.content()
	watched.atWrite = func() {
		watched.atWrite = nil
		st, err := files.Stat(plainName)
		require.NoError(t, err)
		_, err = files.Replace(plainName, storage.Replacement{Expect: st.Token, Write: func(out io.Writer) error {
			_, err := io.WriteString(out, content+`{"type":"custom","customType":"other","id":"other-0","parentId":null,"timestamp":"`+plainNow+`"}`+"\n")
			return err
		}})
		require.NoError(t, err)
	}
	require.NoError(t, w.SetTitle(context.Background(), w.session, "title"))
	require.Equal(t, 2, watched.replacements)
	require.Contains(t, w.content(), `"other-0"`)
	snap, err := w.session.Acquire(t.Context())
	require.NoError(t, err)
	defer snap.Release()
	title, err := snap.Title()
	require.NoError(t, err)
	require.Equal(t, "title", title)
}
