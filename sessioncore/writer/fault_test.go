package writer

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// failing returns a hook that fails calls of the operation *op with err, none while that is "".
func failing(op *string, err error) func(storagetest.Call) error {
	return func(c storagetest.Call) error {
		if c.Op == *op {
			return err
		}
		return nil
	}
}

// TestFaults: the writer returns any error of the storage, and the file is unchanged.
func TestFaults(t *testing.T) {
	ctx := context.Background()
	slot := string(titleSlot("old", titleByUser, plainNow))
	const v1 = `{"type":"session","id":"s1","timestamp":"2026-02-16T10:20:30.000Z"}` + "\n" +
		`{"type":"message","message":{"role":"user","content":"x"}}` + "\n"
	mode := func(w *writing) error { _, err := w.append(`{"type":"mode_change","mode":"plan"}`); return err }
	title := func(w *writing) error { return w.SetTitle(ctx, w.session, "T") }
	for name, test := range map[string]struct {
		content, op string
		err         error
		do          func(w *writing) error
	}{
		"append":            {plainFile, "Append", unix.ENOSPC, mode},
		"migration":         {v1, "Replace", unix.ENOSPC, mode},
		"leaf":              {plainFile, "Append", unix.EIO, func(w *writing) error { return w.MoveLeaf(ctx, w.session, new("a")) }},
		"label":             {plainFile, "Append", unix.EDQUOT, func(w *writing) error { return w.SetLabel(ctx, w.session, "a", "L") }},
		"title":             {plainFile, "Replace", unix.EIO, title},
		"slot":              {slot + plainFile, "Overwrite", unix.EIO, title},
		"fork":              {plainFile, "Replace", unix.ENOSPC, func(w *writing) error { _, err := w.Fork(ctx, w.session, "a", ""); return err }},
		"replaced for ever": {v1, "Replace", storage.ErrStale, mode},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWriting(t, &storagetest.Hooked{Storage: memory.New(), Before: failing(&test.op, test.err)}, test.content, Options{})
			require.ErrorIs(t, test.do(w), test.err)
			require.Equal(t, test.content, w.content())
			items, err := storage.List(w.storage, "scope")
			require.NoError(t, err)
			require.Len(t, items, 1)
			test.op = ""
			require.NoError(t, test.do(w), "afterwards it works")
		})
	}
}

// TestSyncFault: a write whose sync fails is in the file, and returns the error, as it may not survive a crash. Without -o sync
// only an import is synced.
func TestSyncFault(t *testing.T) {
	slot := string(titleSlot("old", titleByUser, plainNow))
	for name, test := range map[string]struct {
		content string
		always  bool // also without -o sync
		do      func(ctx context.Context, w *writing) error
	}{
		"append": {plainFile, false, func(_ context.Context, w *writing) error {
			ids, err := w.append(`{"type":"mode_change","mode":"plan"}`)
			require.Len(t, ids, 1)
			return err
		}},
		"leaf":  {plainFile, false, func(ctx context.Context, w *writing) error { return w.MoveLeaf(ctx, w.session, new("a")) }},
		"label": {plainFile, false, func(ctx context.Context, w *writing) error { return w.SetLabel(ctx, w.session, "a", "L") }},
		"title": {slot + plainFile, false, func(ctx context.Context, w *writing) error { return w.SetTitle(ctx, w.session, "T") }},
		"import": {plainFile, true, func(ctx context.Context, w *writing) error {
			_, err := w.Import(ctx, plainName, copyOf(plainFile+importMore))
			return err
		}},
	} {
		for _, sync := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, -o sync=%v", name, sync), func(t *testing.T) {
				op := "Sync"
				files := &storagetest.Hooked{Storage: memory.New(), Before: failing(&op, unix.EIO)}
				w := startWriting(t, files, test.content, Options{Sync: sync})
				err := test.do(t.Context(), w)
				if sync || test.always {
					require.ErrorIs(t, err, unix.EIO)
				} else {
					require.NoError(t, err)
				}
				require.Greater(t, len(w.content()), len(test.content), "the file has it")
			})
		}
	}
}

// TestReplacedMeanwhile: a program without the lock replaces the file between our read and our rewrite. The write is
// retried on the new file.
func TestReplacedMeanwhile(t *testing.T) {
	mem := memory.New()
	files := &storagetest.Hooked{Storage: mem}
	w := startWriting(t, files, plainFile, Options{})
	other := plainFile + `{"type":"mode_change","id":"foreign","parentId":"b","timestamp":"` + plainNow + `","mode":"x"}` + "\n"
	files.Before = func(c storagetest.Call) error {
		if c.Op == "Replace" {
			files.Before = nil
			require.NoError(t, mem.WriteFile(plainName, []byte(other)))
		}
		return nil
	}
	require.NoError(t, w.SetTitle(context.Background(), w.session, "T"))
	snap := w.snapshot()
	require.Equal(t, 3, snap.Len())
	title, err := snap.Title()
	require.NoError(t, err)
	require.Equal(t, "T", title)
}

// TestBlobFault: if an image cannot be stored, the lines before its own are added, and no others.
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
