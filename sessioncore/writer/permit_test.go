package writer

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/pending"
)

// TestWritesForOthers: what another user may do is what he may do with the files: a file that he may write to does not
// let him make files beside it, replace it, or store blobs.
func TestWritesForOthers(t *testing.T) {
	const image = `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"`
	picture := image + strings.Repeat("QUJD", 1000) + `"}]}}`
	slot := string(titleSlot("old", plainNow))
	type rights struct{ file, scope, sessions, blobs os.FileMode }
	shared := rights{0o666, 0o755, 0o755, 0o755}
	with := func(change func(*rights)) rights { r := shared; change(&r); return r }
	do := map[string]func(*writing, context.Context) error{
		"append": func(w *writing, ctx context.Context) error {
			_, err := w.Append(ctx, w.session, []byte(`{"type":"message","message":{"role":"user","content":"x"}}`))
			return err
		},
		"image": func(w *writing, ctx context.Context) error {
			_, err := w.Append(ctx, w.session, []byte(picture))
			return err
		},
		"label": func(w *writing, ctx context.Context) error { return w.SetLabel(ctx, w.session, "a", "x") },
		"leaf":  func(w *writing, ctx context.Context) error { return w.MoveLeaf(ctx, w.session, "a") },
		"sync":  func(w *writing, ctx context.Context) error { return w.Sync(ctx, w.session) },
		"title": func(w *writing, ctx context.Context) error { return w.SetTitle(ctx, w.session, "new") },
		"cwd":   func(w *writing, ctx context.Context) error { return w.SetCWD(ctx, w.session, w.opts.Root) },
		"fork": func(w *writing, ctx context.Context) error {
			_, err := w.Fork(ctx, w.session, "a")
			return err
		},
		"new": func(w *writing, ctx context.Context) error {
			_, err := w.NewSession(ctx, NewSession{CWD: "/home/dev/pi"})
			return err
		},
	}
	for _, c := range []struct {
		name, file, does string
		rights           rights
		opts             Options
		may              bool
	}{
		{"append", plainFile, "append", shared, Options{}, true},
		{"append, not to this file", plainFile, "append", with(func(r *rights) { r.file = 0o644 }), Options{}, false},
		{"append, below a closed directory", plainFile, "append", with(func(r *rights) { r.scope = 0o700 }), Options{}, false},
		{"append that migrates", strings.Replace(plainFile, `"version":3`, `"version":2`, 1), "append", shared, Options{}, false},
		{"image", plainFile, "image", with(func(r *rights) { r.blobs = 0o777 }), Options{}, true},
		{"image, not into blobs", plainFile, "image", shared, Options{}, false},
		{"label", plainFile, "label", shared, Options{}, true},
		{"label, not to this file", plainFile, "label", with(func(r *rights) { r.file = 0o644 }), Options{}, false},
		{"leaf", plainFile, "leaf", shared, Options{}, true},
		{"leaf, not of this file", plainFile, "leaf", with(func(r *rights) { r.file = 0o644 }), Options{}, false},
		{"leaf in memory, not of this file", plainFile, "leaf", with(func(r *rights) { r.file = 0o644 }), Options{LeafMemory: true}, false},
		{"sync, not of this file", plainFile, "sync", with(func(r *rights) { r.file = 0o644 }), Options{}, false},
		{"title in a slot", slot + plainFile, "title", shared, Options{}, true},
		{"title in the header replaces the file", plainFile, "title", shared, Options{}, false},
		{"title, in an open directory", plainFile, "title", with(func(r *rights) { r.scope = 0o777 }), Options{}, true},
		{"cwd", plainFile, "cwd", with(func(r *rights) { r.scope, r.sessions = 0o777, 0o777 }), Options{}, true},
		{"cwd, out of this directory", plainFile, "cwd", with(func(r *rights) { r.sessions = 0o777 }), Options{}, false},
		{"cwd, into a new directory", plainFile, "cwd", with(func(r *rights) { r.scope = 0o777 }), Options{}, false},
		{"cwd, not of this file", plainFile, "cwd", with(func(r *rights) { r.file, r.scope, r.sessions = 0o644, 0o777, 0o777 }), Options{}, false},
		{"fork makes a file", plainFile, "fork", shared, Options{}, false},
		{"fork, in an open directory", plainFile, "fork", with(func(r *rights) { r.scope = 0o777 }), Options{}, true},
		{"new session", plainFile, "new", shared, Options{}, false},
		{"new session, in open sessions/", plainFile, "new", with(func(r *rights) { r.sessions = 0o777 }), Options{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			top, err := os.MkdirTemp("", "permit-") // t.TempDir is closed to others
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(top) })
			top, err = filepath.EvalSymlinks(top)
			require.NoError(t, err)
			require.NoError(t, os.Chmod(top, 0o755))
			sessions, blobs := filepath.Join(top, "sessions"), filepath.Join(top, "blobs")
			require.NoError(t, os.Mkdir(sessions, 0o755))
			require.NoError(t, os.Mkdir(blobs, 0o755))
			opts := c.opts
			opts.Root, opts.BlobsDir = sessions, blobs
			w := startWriting(t, pending.New(sessiontest.OpenDir(t, sessions), nil), c.file, opts)
			for path, mode := range map[string]os.FileMode{plainName: c.rights.file, storage.Dir(plainName): c.rights.scope, "": c.rights.sessions, "../blobs": c.rights.blobs} {
				require.NoError(t, os.Chmod(filepath.Join(sessions, path), mode))
			}
			other := &access.Caller{UID: uint32(os.Geteuid()) + 1, GIDs: []uint32{uint32(os.Getegid()) + 1}}
			if _, err := other.May(top, access.Search); err != nil {
				t.Skipf("others may not come here: %v", err)
			}
			before := snapshotOf(t, top)
			err = do[c.does](w, access.With(t.Context(), other))
			if c.may {
				require.NoError(t, err)
				require.NotEqual(t, before, snapshotOf(t, top), "and it is on disk")
				return
			}
			require.ErrorIs(t, err, fs.ErrPermission)
			require.ErrorContains(t, err, "may not ")
			require.Equal(t, before, snapshotOf(t, top))
			require.Empty(t, w.blobs.blobs)
			require.NoError(t, do[c.does](w, access.With(t.Context(), nil)), "the one who mounted may")
		})
	}
}

// snapshotOf lists all files below a directory, with the text of the sessions.
func snapshotOf(t *testing.T, top string) (files map[string]string) {
	files = map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(path string, item fs.DirEntry, err error) error {
		if err == nil && item.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			files[path] = string(text)
		}
		return err
	}))
	return files
}

// TestPendingSessionOfTheOwner: a session that waits is its owner's, and another user neither changes it nor puts it on
// disk.
func TestPendingSessionOfTheOwner(t *testing.T) {
	w, disk := pendingTest(t, Options{})
	w.opts.Root = disk.Path()
	name, err := w.NewSession(t.Context(), NewSession{CWD: "/home/dev/pi"})
	require.NoError(t, err)
	w.session = w.store.Session(name)
	_, err = w.append(`{"type":"message","message":{"role":"user","content":"x"}}`)
	require.NoError(t, err)
	before := w.content()
	other := access.With(t.Context(), &access.Caller{UID: uint32(os.Geteuid()) + 1})
	_, err = w.Append(other, w.session, []byte(`{"type":"message","message":{"role":"user","content":"y"}}`))
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorIs(t, w.Sync(other, w.session), fs.ErrPermission)
	require.NoError(t, w.SyncAll(other))
	require.True(t, w.storage.Pending(name))
	require.Equal(t, before, w.content())
	require.NoError(t, w.SyncAll(t.Context()))
	require.False(t, w.storage.Pending(name))
}
