package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
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
		name, err := w.NewSession(ctx, NewSession{Create: true, CWD: cwd})
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
			name, err := w.NewSession(ctx, NewSession{Create: true, CWD: fmt.Sprintf("/w%d", i)})
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
	name := w.begins(NewSession{CWD: "/w"})
	ids := w.adds(userLine)
	require.NoError(t, w.SetTitle(ctx, w.session, "longer"))
	w.forks(ids[0])
	require.Len(t, p.Names(), 2)
	require.Equal(t, count(), p.bytes)
	require.NotZero(t, p.bytes)

	// Others hold all that there may be.
	const large = "scope/large.jsonl"
	room := maxWaitingBytes - p.bytes
	require.NoError(t, w.createNamed(large, true, true, storagetest.Content(strings.Repeat("x", int(room)))))
	onDisk := w.forks(ids[0])
	require.Contains(t, fileContent(t, disk, onDisk), ids[0])
	w.adds(userLine)
	require.Equal(t, w.content(), fileContent(t, disk, name))
	_, err := w.toDisk(ctx, large, true)
	require.NoError(t, err)
	require.Equal(t, count(), p.bytes)
	require.NoError(t, w.SyncAll(ctx))
	require.Zero(t, p.bytes)
}

// TestWaitingImages: while no file names a blob, there is none that could be swept: the image is in the line. It goes to disk
// before the file that names it, whatever makes that go there.
func TestWaitingImages(t *testing.T) {
	ctx := context.Background()
	line := `{"type":"message","message":{"role":"user","content":[{"type":"image","data":"` + longBase64 + `"}]}}`
	for name, goes := range map[string]func(w *writing) error{
		"answer": func(w *writing) error { _, err := w.append(line, testAnswer); return err },
		"sync":   func(w *writing) error { return w.Sync(ctx, w.session) },
		"full":   func(w *writing) error { w.opts.Waiting.end(); _, err := w.append(line); return err },
	} {
		t.Run(name, func(t *testing.T) {
			w, disk := waitingTest(t, Options{})
			made := w.begins(NewSession{CWD: "/w"})
			w.adds(line, userLine)
			require.Empty(t, w.blobs.blobs)
			require.Contains(t, w.content(), longBase64)
			w.blobs.err = syscall.ENOSPC
			require.ErrorIs(t, goes(w), syscall.ENOSPC)
			_, err := disk.Stat(made)
			require.ErrorIs(t, err, fs.ErrNotExist)
			w.blobs.err = nil
			require.NoError(t, goes(w))
			require.Len(t, w.blobs.blobs, 1)
			require.Contains(t, fileContent(t, disk, made), `"data":"blob:sha256:9f167a`)
			require.NotContains(t, fileContent(t, disk, made), longBase64)
			w.adds(line)
			require.NotContains(t, w.content(), longBase64)
		})
	}
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
		require.NoError(t, w.keep(context.Background(), name, nil))
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

func TestParseNewSession(t *testing.T) {
	tests := []struct {
		line string
		want NewSession
	}{
		{"/home/dev/pi", NewSession{CWD: "/home/dev/pi"}},
		{"/with blank ", NewSession{CWD: "/with blank "}},
		{`{"cwd":"/w","title":"T","parentSession":"p","agent":"pi","create":true}`, NewSession{"/w", "T", "p", "pi", true}},
		{` {"cwd":"/w","title":null,"create":false} `, NewSession{CWD: "/w"}},
	}
	for _, test := range tests {
		got, err := ParseNewSession([]byte(test.line))
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	for _, line := range []string{"", "relative", "{", `{"title":"x"}`, `{"cwd":7}`, `{"cwd":"x"}`, `{"cwd":"/w","title":1}`, `{"cwd":"/w","create":"yes"}`, "/a\x00b", "/a\xff"} {
		_, err := ParseNewSession([]byte(line))
		require.ErrorIs(t, err, sessioncore.ErrInvalid, "%q", line)
	}
}

func TestSessionNames(t *testing.T) {
	now := time.Date(2026, 2, 16, 11, 20, 30, 45e6, time.FixedZone("", 3600))
	require.Equal(t, "2026-02-16T10-20-30-045Z_x.jsonl", sessionFileName(sessioncore.OMP, now, "x"))
	id := newSessionID(now)
	require.Regexp(t, `^019c65f7-45dd-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	require.NotEqual(t, id, newSessionID(now))
}

// waitingTest is a writer over a disk with a memory before it.
func waitingTest(t *testing.T, opts Options) (*writing, *dir.Storage) {
	disk := dirtest.New(t)
	return startWaiting(t, disk, "", opts), disk
}

func TestNewSession(t *testing.T) {
	ctx := context.Background()
	w, disk := waitingTest(t, Options{})
	name, err := w.NewSession(ctx, NewSession{Create: true, CWD: "/home/dev/pi/", Title: " my\ttitle ", Parent: "p"})
	require.NoError(t, err)
	require.Regexp(t, `^--home-dev-pi--/2026-03-01T00-00-00-000Z_[0-9a-f-]{36}\.jsonl$`, name)
	w.session = w.store.Session(name)
	empty, err := storage.List(disk, "")
	require.NoError(t, err)
	require.Empty(t, empty, "nothing is on disk")

	items, err := storage.List(w.storage, "")
	require.NoError(t, err)
	require.Equal(t, []storage.Item{{Name: "--home-dev-pi--", Kind: storage.KindDir}}, items)
	items, err = storage.List(w.storage, "--home-dev-pi--")
	require.NoError(t, err)
	require.Len(t, items, 1)
	snap := w.snapshot()
	root, err := disk.Stat("")
	require.NoError(t, err)
	require.Equal(t, root.UID, snap.Stat().UID)
	header, _, err := snap.ReadHeader()
	require.NoError(t, err)
	id := strings.TrimSuffix(name[strings.LastIndexByte(name, '_')+1:], ".jsonl")
	require.Equal(t, `{"type":"session","version":3,"id":"`+id+`","timestamp":"`+plainNow+
		`","cwd":"/home/dev/pi","parentSession":"p","title":"my title","titleSource":"user"}`, string(header))

	// Everything works in memory: append, label, leaf, title, fork.
	ids := w.adds(`{"type":"message","message":{"role":"user","content":"hi"}}`)
	require.NoError(t, w.SetLabel(ctx, w.session, ids[0], "L"))
	require.NoError(t, w.MoveLeaf(ctx, w.session, ids[0]))
	require.NoError(t, w.SetTitle(ctx, w.session, "new title"))
	fork := w.forks(ids[0])
	empty, err = storage.List(disk, "")
	require.NoError(t, err)
	require.Empty(t, empty)

	// The first answer puts it on disk, with all that came before.
	before := w.content()
	w.adds(testAnswer)
	onDisk := fileContent(t, disk, name)
	require.True(t, strings.HasPrefix(onDisk, before))
	require.Equal(t, onDisk, w.content())
	require.Len(t, strings.Split(onDisk, "\n"), 4+1+1)
	require.False(t, w.opts.Waiting.Has(name))
	_, err = disk.Stat(fork)
	require.ErrorIs(t, err, fs.ErrNotExist, "the other one waits still")
	items, err = storage.List(w.storage, "--home-dev-pi--")
	require.NoError(t, err)
	require.Len(t, items, 2)

	w.adds(`{"type":"message","message":{"role":"user","content":"more"}}`)
	require.Greater(t, len(fileContent(t, disk, name)), len(onDisk))

	w.session = w.store.Session(fork)
	require.NoError(t, w.Writer.Sync(ctx, w.session))
	require.Equal(t, w.content(), fileContent(t, disk, fork))
	require.NoError(t, w.Writer.Sync(ctx, w.session))
	require.Empty(t, storagetest.Leftovers(t, disk.Path()))
}

// TestNewSessionCannotGoToDisk: a line that would put the session on disk is refused and is not in memory either: its
// writer may send it again.
func TestNewSessionCannotGoToDisk(t *testing.T) {
	for line, opts := range map[string]Options{testAnswer: {}, userLine: {Sync: true}} {
		disk := &brokenStorage{Storage: memory.New(), replaceErr: fs.ErrPermission}
		w := startWaiting(t, disk, "", opts)
		name := w.begins(NewSession{CWD: "/w"})
		before := w.content()
		_, err := w.append(line)
		require.ErrorIs(t, err, fs.ErrPermission)
		require.Equal(t, before, w.content())
		require.ErrorIs(t, w.Writer.Sync(t.Context(), w.session), fs.ErrPermission)
		disk.replaceErr = nil
		w.adds(line)
		require.False(t, w.opts.Waiting.Has(name))
	}
}

func TestWaitingLimits(t *testing.T) {
	disk := memory.New()
	putFile(t, disk, "e/b", "x")
	w := startWaiting(t, disk, "", Options{})
	create := func(name string) error { return w.createNamed(name, true, false, storagetest.Content("x")) }
	require.NoError(t, create("d/a"))
	require.ErrorIs(t, create("d/a"), fs.ErrExist)
	require.ErrorIs(t, create("e/b"), fs.ErrExist)
	var err error
	for i := 0; err == nil; i++ {
		err = create(fmt.Sprintf("d/%d", i))
	}
	require.ErrorIs(t, err, ErrTooMany)
	require.Len(t, w.opts.Waiting.Names(), maxWaiting)
	_, err = New(w.store, Options{}).NewSession(context.Background(), NewSession{Create: true, CWD: "/w"})
	require.True(t, errors.Is(err, sessioncore.ErrReadOnly))
}

// TestWaitingFollows: sessions that wait go with their directory where that gets another name, but not while somebody writes to
// one of them, and not once the mount ends, when each is put on disk by its name.
func TestWaitingFollows(t *testing.T) {
	disk := dirtest.New(t)
	putFile(t, disk, "old/there", "x")
	w := startWaiting(t, disk, "", Options{})
	p := w.opts.Waiting
	require.NoError(t, p.add("old/a", storage.Stat{}, []byte("a"), true))
	require.NoError(t, p.add("old/b", storage.Stat{}, []byte("b"), true))
	rename := func(from, to string) {
		require.NoError(t, os.Rename(filepath.Join(disk.Path(), from), filepath.Join(disk.Path(), to)))
		_, err := p.Stat(to)
		require.NoError(t, err)
	}
	unlock, err := p.lock(t.Context(), "old/b")
	require.NoError(t, err)
	rename("old", "new")
	require.Equal(t, []string{"old/a", "old/b"}, p.Names())
	require.NoError(t, p.append("old/b", []byte("c")))
	require.NoError(t, unlock())
	_, err = p.Stat("new")
	require.NoError(t, err)
	require.Equal(t, []string{"new/a", "new/b"}, p.Names())
	p.end()
	rename("new", "newer")
	require.Equal(t, []string{"new/a", "new/b"}, p.Names())
	require.Empty(t, w.keepAll(t.Context()))
	require.Equal(t, "bc", fileContent(t, disk, "new/b"))
}

// TestWaitingFollowsConcurrently: a directory is renamed again and again beside writers, and nothing is lost or doubled.
func TestWaitingFollowsConcurrently(t *testing.T) {
	const each = 300
	disk := dirtest.New(t)
	putFile(t, disk, "d0/there", "x")
	w := startWaiting(t, disk, "", Options{})
	p := w.opts.Waiting
	require.NoError(t, p.add("d0/a", storage.Stat{}, nil, true))
	var group sync.WaitGroup
	var left atomic.Bool
	group.Go(func() {
		for n := 0; !left.Load(); n++ {
			from, to := fmt.Sprintf("d%d", n%2), fmt.Sprintf("d%d", (n+1)%2)
			assert.NoError(t, os.Rename(filepath.Join(disk.Path(), from), filepath.Join(disk.Path(), to)))
			_, err := p.Stat(to)
			assert.NoError(t, err)
		}
	})
	for done := 0; done < each; {
		for _, name := range []string{"d0/a", "d1/a"} {
			unlock, err := p.lock(t.Context(), name)
			require.NoError(t, err)
			if p.Has(name) {
				time.Sleep(time.Microsecond)
				require.NoError(t, p.append(name, []byte("x")))
				p.replace(name, p.find(name).data)
				if done++; done == each {
					left.Store(true)
				}
			}
			require.NoError(t, unlock())
			if done == each {
				break
			}
		}
	}
	group.Wait()
	require.Len(t, p.Names(), 1)
	require.Len(t, p.find(p.Names()[0]).data, each)
}

// TestWaitingConcurrently: appends, readers and the answer that puts the session on disk, all at once.
func TestWaitingConcurrently(t *testing.T) {
	ctx := context.Background()
	disk := dirtest.New(t)
	waiting := NewWaiting(disk, nil)
	store := sessioncore.NewStore(waiting)
	t.Cleanup(store.Close)
	w := New(store, Options{Journal: disk, Waiting: waiting})
	name, err := w.NewSession(ctx, NewSession{Create: true, CWD: "/w"})
	require.NoError(t, err)
	s := store.Session(name)
	const each = 30
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for n := range each {
				line := `{"type":"message","message":{"role":"user","content":"x"}}`
				if i == 0 && n == each/2 {
					line = testAnswer
				}
				_, err := w.Append(ctx, s, []byte(line))
				assert.NoError(t, err)
				snap, err := s.Acquire(context.Background())
				if assert.NoError(t, err) {
					snap.Release()
				}
				_, err = storage.List(store.Storage(), "--w--")
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	snap, err := s.Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	leaf, err := snap.Leaf()
	require.NoError(t, err)
	require.Len(t, snap.Path(leaf), 4*each)
	require.Equal(t, fileContent(t, store.Storage(), name), fileContent(t, disk, name))
	require.Empty(t, storagetest.Leftovers(t, disk.Path()))
}
