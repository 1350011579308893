package writer

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// brokenStorage is a storage that fails on command.
type brokenStorage struct {
	storage.Storage
	appendErr, replaceErr, syncErr, overwriteErr error
	before                                       func(op string) // something that happens just before
}

func (f *brokenStorage) hit(op string, err error) error {
	if f.before != nil {
		f.before(op)
	}
	return err
}

func (f *brokenStorage) Append(name string, data []byte) (storage.Stat, error) {
	if err := f.hit("append", f.appendErr); err != nil {
		return storage.Stat{}, err
	}
	return f.Storage.Append(name, data)
}

func (f *brokenStorage) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	err := f.hit("overwrite", f.overwriteErr)
	if r.Write != nil {
		err = f.hit("replace", f.replaceErr)
	}
	if err != nil {
		return storage.Stat{}, err
	}
	return f.Storage.Replace(name, r)
}

func (f *brokenStorage) Sync(name string) error {
	if err := f.hit("sync", f.syncErr); err != nil {
		return err
	}
	return f.Storage.Sync(name)
}

// TestFaults: the writer returns any error of the storage, and the file is unchanged.
func TestFaults(t *testing.T) {
	ctx := context.Background()
	slot := string(titleSlot("old", titleByUser, plainNow))
	const v1 = `{"type":"session","id":"s1","timestamp":"2026-02-16T10:20:30.000Z"}` + "\n" +
		`{"type":"message","message":{"role":"user","content":"x"}}` + "\n"
	mode := func(w *writing) error { _, err := w.append(`{"type":"mode_change","mode":"plan"}`); return err }
	writes := map[string]struct {
		content string
		fault   brokenStorage
		do      func(w *writing) error
	}{
		"append":            {plainFile, brokenStorage{appendErr: unix.ENOSPC}, mode},
		"migration":         {v1, brokenStorage{replaceErr: unix.ENOSPC}, mode},
		"leaf":              {plainFile, brokenStorage{appendErr: unix.EIO}, func(w *writing) error { return w.MoveLeaf(ctx, w.session, "a") }},
		"label":             {plainFile, brokenStorage{appendErr: unix.EDQUOT}, func(w *writing) error { return w.SetLabel(ctx, w.session, "a", "L") }},
		"title":             {plainFile, brokenStorage{replaceErr: unix.EIO}, func(w *writing) error { return w.SetTitle(ctx, w.session, "T") }},
		"slot":              {slot + plainFile, brokenStorage{overwriteErr: unix.EIO}, func(w *writing) error { return w.SetTitle(ctx, w.session, "T") }},
		"fork":              {plainFile, brokenStorage{replaceErr: unix.ENOSPC}, func(w *writing) error { _, err := w.Fork(ctx, w.session, "a"); return err }},
		"replaced for ever": {v1, brokenStorage{replaceErr: storage.ErrStale}, mode},
	}
	for name, test := range writes {
		t.Run(name, func(t *testing.T) {
			test.fault.Storage = memory.New()
			w := startWriting(t, &test.fault, test.content, Options{})
			err := test.do(w)
			require.ErrorIs(t, err, errors.Join(test.fault.appendErr, test.fault.replaceErr,
				test.fault.overwriteErr).(interface{ Unwrap() []error }).Unwrap()[0])
			require.Equal(t, test.content, w.content())
			items, err := storage.List(w.storage, "scope")
			require.NoError(t, err)
			require.Len(t, items, 1)
			test.fault.appendErr, test.fault.replaceErr, test.fault.overwriteErr = nil, nil, nil
			require.NoError(t, test.do(w), "afterwards it works")
		})
	}
}

// TestSyncFault: the line is written, and the error says that it may not survive a crash.
func TestSyncFault(t *testing.T) {
	fault := &brokenStorage{Storage: memory.New(), syncErr: unix.EIO}
	w := startWriting(t, fault, plainFile, Options{Sync: true})
	ids, err := w.append(`{"type":"mode_change","mode":"plan"}`)
	require.ErrorIs(t, err, unix.EIO)
	require.Len(t, ids, 1)
	require.Len(t, w.added(plainFile), 1)
}

// TestReplacedMeanwhile: a program without the lock replaces the file between our read and our rewrite. The write is
// retried on the new file.
func TestReplacedMeanwhile(t *testing.T) {
	mem := memory.New()
	fault := &brokenStorage{Storage: mem}
	w := startWriting(t, fault, plainFile, Options{})
	other := plainFile + `{"type":"mode_change","id":"foreign","parentId":"b","timestamp":"` + plainNow + `","mode":"x"}` + "\n"
	fault.before = func(op string) {
		if op == "replace" {
			fault.before = nil
			require.NoError(t, mem.WriteFile(plainName, []byte(other)))
		}
	}
	require.NoError(t, w.SetTitle(context.Background(), w.session, "T"))
	snap := w.snapshot()
	require.Equal(t, 3, snap.Len())
	title, err := snap.Title()
	require.NoError(t, err)
	require.Equal(t, "T", title)
}

func TestBlobFault(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	w.blobs.err = unix.ENOSPC
	ids, err := w.append(
		`{"type":"mode_change","mode":"plan"}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"image","data":"`+longBase64+`","mimeType":"image/png"}]}}`,
		`{"type":"mode_change","mode":"none"}`,
	)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Len(t, ids, 1)
	require.Len(t, w.added(plainFile), 1)
}

// TestReplacedButNotDurable: the file has its new content although the directory could not be synced.
func TestReplacedButNotDurable(t *testing.T) {
	require.NoError(t, storage.Replaced(storage.Stat{Kind: storage.KindFile}, unix.EIO))
	require.ErrorIs(t, storage.Replaced(storage.Stat{}, unix.EIO), unix.EIO)
}
