package writer

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const userLine = `{"type":"message","message":{"role":"user","content":"x"}}`

// TestKeepAll: sessions that were added to go to disk; one that fails is unchanged and does not stop the others.
func TestKeepAll(t *testing.T) {
	ctx := context.Background()
	disk := dirtest.New(t)
	w := startWaiting(t, disk, "", Options{})
	p := w.opts.Waiting
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
	require.True(t, p.Has(names[1]))
	require.Equal(t, before, fileContent(t, p, names[1]))
	require.True(t, p.Has(names[3]))

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
		p := NewWaiting(disk, nil)
		store := sessioncore.NewStore(p)
		w := New(store, Options{Journal: disk, Waiting: p})
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
		require.Empty(t, w.End(ctx))
		group.Wait()
		for i, name := range sessions {
			text := fileContent(t, disk, name)
			for _, id := range acked[i] {
				require.Contains(t, text, id)
			}
		}
		require.Empty(t, p.Names(), "nothing that was added to is in memory")
		require.Zero(t, p.bytes)
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
			w, disk := waitingTest(t, Options{Sync: true})
			name, err := w.NewSession(ctx, NewSession{CWD: "/w"})
			require.NoError(t, err)
			w.session = w.store.Session(name)
			_, err = disk.Stat(name)
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.NoError(t, test.write(w))
			require.Equal(t, w.content(), fileContent(t, disk, name))
			require.False(t, w.opts.Waiting.Has(name))
		})
	}
	// A line that cannot be put on disk is refused and is not in memory either: its writer may send it again.
	disk := &brokenStorage{Storage: memory.New(), replaceErr: unix.ENOSPC}
	w := startWaiting(t, disk, "", Options{Sync: true})
	name, err := w.NewSession(ctx, NewSession{CWD: "/w"})
	require.NoError(t, err)
	w.session = w.store.Session(name)
	before := w.content()
	_, err = w.append(userLine)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Equal(t, before, w.content())
}

// TestWaitingBytes: the total size of waiting sessions is bounded, and the accounting matches what is there.
func TestWaitingBytes(t *testing.T) {
	ctx := context.Background()
	w, disk := waitingTest(t, Options{})
	p := w.opts.Waiting
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
	require.Equal(t, count(), p.bytes)
	require.NotZero(t, p.bytes)

	// Others hold all that there may be.
	const large = "scope/large.jsonl"
	room := maxWaitingBytes - p.bytes
	require.NoError(t, w.createNamed(large, true, true, storagetest.Content(strings.Repeat("x", int(room)))))
	onDisk, err := w.Fork(ctx, w.session, ids[0])
	require.NoError(t, err)
	require.Contains(t, fileContent(t, disk, onDisk), ids[0])
	_, err = w.append(userLine)
	require.NoError(t, err)
	require.Equal(t, w.content(), fileContent(t, disk, name))
	_, err = w.toDisk(ctx, large, true)
	require.NoError(t, err)
	require.Equal(t, count(), p.bytes)
	require.NoError(t, w.SyncAll(ctx))
	require.Zero(t, p.bytes)
}

// TestWaitingNames: no file is created in memory that could not be created on disk.
func TestWaitingNames(t *testing.T) {
	disk := dirtest.New(t)
	putFile(t, disk, "file", "x")
	putFile(t, disk, "dir/there", "x")
	w := startWaiting(t, disk, "", Options{})
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
		err := w.createNamed(name, true, true, storagetest.Content("x"))
		if want == nil {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, want, name)
		require.False(t, w.opts.Waiting.Has(name))
	}
	require.Empty(t, w.keepAll(t.Context()))
}

// TestManyAtOnce: however many are written to at the same time, what does not fit has to go to disk, and nothing stays
// counted that is not there.
func TestManyAtOnce(t *testing.T) {
	const sessions, size = 58, 2 << 20
	limit := budget.New(budget.Default)
	disk := memory.New()
	w := startWriting(t, disk, "", Options{})
	p := NewWaiting(disk, limit)
	w.opts.Waiting = p
	line := bytes.Repeat([]byte("x"), size)
	var fit atomic.Int64
	var writers sync.WaitGroup
	for i := range sessions {
		writers.Go(func() {
			var err error
			if name := fmt.Sprintf("d%d/f", i); i%2 == 0 {
				err = p.add(name, storage.Stat{}, line, true)
			} else if err = p.add(name, storage.Stat{}, nil, false); err == nil {
				err = p.append(name, line)
			}
			if err == nil {
				fit.Add(1)
			} else {
				assert.ErrorIs(t, err, errNoRoom)
			}
		})
	}
	writers.Wait()
	require.Positive(t, fit.Load())
	require.LessOrEqual(t, fit.Load()*size, limit.Limit()/4)
	require.Equal(t, fit.Load()*size, p.bytes)
	require.Equal(t, p.bytes, limit.Held())
	for _, name := range p.Names() {
		require.NoError(t, w.keep(name, nil))
	}
	require.Zero(t, limit.Held())
	require.Empty(t, p.Names())
}

// TestWaitingShown: what waits is listed with what is on disk, each name once, with the states that Stat says.
func TestWaitingShown(t *testing.T) {
	disk := memory.New()
	require.NoError(t, disk.WriteFile("d/b", nil))
	p := NewWaiting(disk, nil)
	before := storagetest.Stat(t, p, "d")
	for _, name := range []string{"d/a", "d/c", "e/f/g"} {
		require.NoError(t, p.add(name, storage.Stat{UID: 7}, []byte(name), false))
	}
	require.NotEqual(t, before.Token, storagetest.Stat(t, p, "d").Token, "names were added")
	for dir, want := range map[string][]string{"": {"d", "e"}, "d": {"a", "b", "c"}, "e": {"f"}, "e/f": {"g"}} {
		items, err := storage.ListStat(p, dir, func(storage.Item) bool { return true })
		require.NoError(t, err)
		var names []string
		for _, item := range items {
			names = append(names, item.Name)
			require.Equal(t, storagetest.Stat(t, p, path.Join(dir, item.Name)), item.Stat)
		}
		require.ElementsMatch(t, want, names, dir)
	}
	st := storagetest.Stat(t, p, "e/f/g")
	require.Equal(t, storage.Stat{Token: st.Token, Kind: storage.KindFile, Mode: 0o600, UID: 7}, st)
	require.Equal(t, storage.KindDir, storagetest.Stat(t, p, "e").Kind)
	o, err := p.Open("e/f/g")
	require.NoError(t, err)
	p.forget("e/f/g")
	require.Equal(t, "e/f/g", storagetest.ReadObject(t, o), "it stays what it was")
	_, err = p.Stat("e")
	require.True(t, storage.IsMissing(err))
	require.ErrorIs(t, p.List("e", nil, nil), fs.ErrNotExist)
	_, err = p.Stat("d/a")
	require.NoError(t, err)
}
