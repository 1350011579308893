package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

func TestParseNewSession(t *testing.T) {
	tests := []struct {
		line string
		want NewSession
	}{
		{"/home/dev/pi", NewSession{CWD: "/home/dev/pi"}},
		{"/with blank ", NewSession{CWD: "/with blank "}},
		{`{"cwd":"/w","title":"T","parentSession":"p"}`, NewSession{"/w", "T", "p"}},
		{` {"cwd":"/w","title":null} `, NewSession{CWD: "/w"}},
	}
	for _, test := range tests {
		got, err := ParseNewSession([]byte(test.line))
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	for _, line := range []string{"", "relative", "{", `{"title":"x"}`, `{"cwd":7}`, `{"cwd":"x"}`, `{"cwd":"/w","title":1}`, "/a\x00b", "/a\xff"} {
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
	require.Equal(t, "--home-dev-a-b-c--", scopeName(`/home/dev/a:b\c`))
	require.Equal(t, "----", scopeName("/"))
}

// waitingTest is a writer over a disk with a memory before it.
func waitingTest(t *testing.T, opts Options) (*writing, *dir.Storage) {
	disk := dirtest.New(t)
	return startWaiting(t, disk, "", opts), disk
}

func TestNewSession(t *testing.T) {
	ctx := context.Background()
	w, disk := waitingTest(t, Options{})
	name, err := w.NewSession(ctx, NewSession{CWD: "/home/dev/pi/", Title: " my\ttitle ", Parent: "p"})
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
	ids, err := w.append(`{"type":"message","message":{"role":"user","content":"hi"}}`)
	require.NoError(t, err)
	require.NoError(t, w.SetLabel(ctx, w.session, ids[0], "L"))
	require.NoError(t, w.MoveLeaf(ctx, w.session, ids[0]))
	require.NoError(t, w.SetTitle(ctx, w.session, "new title"))
	fork, err := w.Fork(ctx, w.session, ids[0])
	require.NoError(t, err)
	empty, err = storage.List(disk, "")
	require.NoError(t, err)
	require.Empty(t, empty)

	// The first answer puts it on disk, with all that came before.
	before := w.content()
	_, err = w.append(testAnswer)
	require.NoError(t, err)
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

	_, err = w.append(`{"type":"message","message":{"role":"user","content":"more"}}`)
	require.NoError(t, err)
	require.Greater(t, len(fileContent(t, disk, name)), len(onDisk))

	w.session = w.store.Session(fork)
	require.NoError(t, w.Writer.Sync(ctx, w.session))
	require.Equal(t, w.content(), fileContent(t, disk, fork))
	require.NoError(t, w.Writer.Sync(ctx, w.session))
	require.Empty(t, storagetest.Leftovers(t, disk.Path()))
}

// TestNewSessionCannotGoToDisk: the answer is refused, and the waiting session is unchanged.
func TestNewSessionCannotGoToDisk(t *testing.T) {
	ctx := context.Background()
	disk := &brokenStorage{Storage: memory.New(), replaceErr: fs.ErrPermission}
	w := startWaiting(t, disk, "", Options{})
	name, err := w.NewSession(ctx, NewSession{CWD: "/w"})
	require.NoError(t, err)
	w.session = w.store.Session(name)
	before := w.content()
	_, err = w.append(testAnswer)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, before, w.content())
	require.ErrorIs(t, w.Writer.Sync(ctx, w.session), fs.ErrPermission)
	disk.replaceErr = nil
	_, err = w.append(testAnswer)
	require.NoError(t, err)
	require.False(t, w.opts.Waiting.Has(name))
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
	_, err = New(w.store, Options{}).NewSession(context.Background(), NewSession{CWD: "/w"})
	require.True(t, errors.Is(err, sessioncore.ErrReadOnly))
}

// TestWaitingConcurrently: appends, readers and the answer that puts the session on disk, all at once.
func TestWaitingConcurrently(t *testing.T) {
	ctx := context.Background()
	disk := dirtest.New(t)
	waiting := NewWaiting(disk, nil)
	store := sessioncore.NewStore(waiting)
	t.Cleanup(store.Close)
	w := New(store, Options{Journal: disk, Waiting: waiting})
	name, err := w.NewSession(ctx, NewSession{CWD: "/w"})
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

// openCounter counts how often a file is opened.
type openCounter struct {
	storage.Files
	opens atomic.Int64
}

func (c *openCounter) Open(name string) (storage.Object, error) {
	c.opens.Add(1)
	return c.Files.Open(name)
}

// TestManyNewSessions: a new session does not read those that there are already.
func TestManyNewSessions(t *testing.T) {
	const sessions = 200
	disk := dirtest.New(t)
	waiting := NewWaiting(disk, nil)
	files := &openCounter{Files: waiting}
	store := sessioncore.NewStore(files)
	defer store.Close()
	w := New(store, Options{Journal: disk, Waiting: waiting, Scope: listing.New(store, "/").Scope})
	for i := range sessions {
		_, err := w.NewSession(t.Context(), NewSession{CWD: fmt.Sprintf("/work/%d", i)})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, files.opens.Load(), int64(sessions), "each is read once")
}
