package writer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/memory"
	"sessionfs/sessioncore/storage/pending"
	"sessionfs/sessioncore/storage/storagetest"
)

const userLine = `{"type":"message","message":{"role":"user","content":"x"}}`

// TestKeepAll: sessions that were added to go to disk; one that fails is unchanged and does not stop the others.
func TestKeepAll(t *testing.T) {
	ctx := context.Background()
	disk := dirtest.New(t)
	w := startWriting(t, pending.New(disk, nil), "", Options{})
	p := w.storage.(*pending.Storage)
	var names []string
	for _, cwd := range []string{"/a", "/b", "/c", "/empty"} {
		name, err := w.NewSession(ctx, NewSession{CWD: cwd})
		require.NoError(t, err)
		names = append(names, name)
		if cwd != "/empty" {
			_, err = w.Append(ctx, w.store.Session(name), []byte(userLine))
			require.NoError(t, err)
		}
	}
	putFile(t, disk, "--b--", "in the way")
	before := fileContent(t, p, names[1])
	require.ErrorIs(t, w.SyncAll(ctx), unix.ENOTDIR)
	require.ErrorContains(t, w.SyncAll(ctx), names[1])
	require.Contains(t, fileContent(t, disk, names[0]), `"content":"x"`)
	require.Contains(t, fileContent(t, disk, names[2]), `"content":"x"`)
	require.True(t, p.Pending(names[1]))
	require.Equal(t, before, fileContent(t, p, names[1]))
	require.True(t, p.Pending(names[3]))

	require.NoError(t, os.Remove(filepath.Join(disk.Path(), "--b--")))
	require.NoError(t, w.SyncAll(ctx))
	require.Equal(t, before, fileContent(t, disk, names[1]))
	_, err := disk.Stat(names[3])
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Empty(t, storagetest.Leftovers(t, disk.Path()))
}

// TestEnd: everything acknowledged is on disk once End has returned, including what was written during it and after
// it.
func TestEnd(t *testing.T) {
	ctx := context.Background()
	for range 20 {
		disk := dirtest.New(t)
		store := sessioncore.NewStore(pending.New(disk, nil))
		p := store.Storage().(*pending.Storage)
		w := New(store, Options{})
		const writers = 8
		var group sync.WaitGroup
		var acked [writers][]string
		var sessions [writers]string
		start := make(chan struct{})
		for i := range writers {
			name, err := w.NewSession(ctx, NewSession{CWD: fmt.Sprintf("/w%d", i)})
			require.NoError(t, err)
			sessions[i] = name
			group.Go(func() {
				<-start
				for range 10 {
					ids, err := w.Append(ctx, store.Session(name), []byte(userLine))
					assert.NoError(t, err)
					acked[i] = append(acked[i], ids...)
				}
				fork, err := w.Fork(ctx, store.Session(name), acked[i][0])
				assert.NoError(t, err)
				assert.Contains(t, fileContent(t, p, fork), acked[i][0])
			})
		}
		close(start)
		require.Empty(t, p.End(ctx))
		group.Wait()
		for i, name := range sessions {
			text := fileContent(t, disk, name)
			for _, id := range acked[i] {
				require.Contains(t, text, id)
			}
		}
		require.Empty(t, p.Names(), "nothing that was added to is in memory")
		require.Zero(t, p.Size())
		store.Close()
	}
}

// TestSyncNewSession: with the option Sync the first line puts a session on disk.
func TestSyncNewSession(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name  string
		write func(w *writing) error
	}{
		{"append", func(w *writing) error { _, err := w.append(userLine); return err }},
		{"title", func(w *writing) error { return w.SetTitle(ctx, w.session, "T") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, disk := pendingTest(t, Options{Sync: true})
			name, err := w.NewSession(ctx, NewSession{CWD: "/w"})
			require.NoError(t, err)
			w.session = w.store.Session(name)
			_, err = disk.Stat(name)
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.NoError(t, test.write(w))
			require.Equal(t, w.content(), fileContent(t, disk, name))
			require.False(t, w.storage.(*pending.Storage).Pending(name))
		})
	}
	// A line that cannot be put on disk is refused and is not in memory either: its writer may send it again.
	disk := &brokenStorage{Storage: memory.New(), replaceErr: unix.ENOSPC}
	require.NoError(t, disk.MkdirAll("--w--"))
	w := startWriting(t, pending.New(disk, nil), "", Options{Sync: true})
	name, err := w.NewSession(ctx, NewSession{CWD: "/w"})
	require.NoError(t, err)
	w.session = w.store.Session(name)
	before := w.content()
	_, err = w.append(userLine)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Equal(t, before, w.content())
}

// TestPendingBytes: the total size of pending sessions is bounded, and the accounting matches what is there.
func TestPendingBytes(t *testing.T) {
	ctx := context.Background()
	w, disk := pendingTest(t, Options{})
	p := w.storage.(*pending.Storage)
	count := func() (sum int64) {
		for _, name := range p.Names() {
			sum += int64(len(fileContent(t, p, name)))
		}
		return sum
	}
	name, err := w.NewSession(ctx, NewSession{CWD: "/w"})
	require.NoError(t, err)
	w.session = w.store.Session(name)
	ids, err := w.append(userLine)
	require.NoError(t, err)
	require.NoError(t, w.SetTitle(ctx, w.session, "longer"))
	_, err = w.Fork(ctx, w.session, ids[0])
	require.NoError(t, err)
	require.Len(t, p.Names(), 2)
	require.Equal(t, count(), p.Size())
	require.NotZero(t, p.Size())

	// Others hold all that there may be.
	const large = "scope/large.jsonl"
	require.NoError(t, p.CreatePending(large, true, storagetest.Content(strings.Repeat("x", int(pending.MaxPendingBytes-p.Size())))))
	onDisk, err := w.Fork(ctx, w.session, ids[0])
	require.NoError(t, err)
	require.Contains(t, fileContent(t, disk, onDisk), ids[0])
	_, err = w.append(userLine)
	require.NoError(t, err)
	require.Equal(t, w.content(), fileContent(t, disk, name))
	storagetest.Keep(t, p, large)
	require.Equal(t, count(), p.Size())
	require.NoError(t, w.SyncAll(ctx))
	require.Zero(t, p.Size())
}

// TestPendingNames: no file is created in memory that could not be created on disk.
func TestPendingNames(t *testing.T) {
	disk := dirtest.New(t)
	putFile(t, disk, "file", "x")
	putFile(t, disk, "dir/there", "x")
	p := pending.New(disk, nil)
	long := strings.Repeat("x", unix.NAME_MAX)
	file := strings.Repeat("x", unix.NAME_MAX-len(storage.TemporaryName("")))
	for name, want := range map[string]error{
		"new/" + file:       nil,
		long + "/x":         nil,
		"new/" + file + "x": unix.ENAMETOOLONG,
		long + "x/new":      unix.ENAMETOOLONG,
		"dir/" + file + "x": unix.ENAMETOOLONG,
		"file/x":            unix.ENOTDIR,
		"file/x/y":          unix.ENOTDIR,
		"dir/there":         fs.ErrExist,
		"../x":              storage.ErrBadName,
		"a/../x":            storage.ErrBadName,
		"/x":                storage.ErrBadName,
	} {
		err := p.CreatePending(name, true, storagetest.Content("x"))
		if want == nil {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, want, name)
		require.False(t, p.Pending(name))
	}
	require.Empty(t, p.KeepAll(context.Background()))
}
