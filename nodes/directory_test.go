package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// longDir is a directory of many names.
type longDir struct {
	directory
	names int
}

func (d *longDir) fillAttr(context.Context, *fuse.Attr) error { return nil }

func (d *longDir) list(context.Context, *sessioncore.Snapshot) ([]item, error) {
	items := make([]item, d.names)
	for i := range items {
		items[i].name = fmt.Sprint(i)
	}
	return items, nil
}

func (d *longDir) find(_ context.Context, _ *sessioncore.Snapshot, _ item, out *fuse.Attr) (child, error) {
	out.Mode = syscall.S_IFLNK
	return d.link(nil, nil), nil
}

// request answers one READDIRPLUS of n names and returns how many came with their attributes.
func request(t *testing.T, l *dirHandle, n int) (full int) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, 0) // one of its own
	for range n {
		e, errno := l.Readdirent(ctx)
		require.Zero(t, errno)
		require.NotNil(t, e)
		if _, errno := l.Lookup(ctx, e.Name, &fuse.EntryOut{}); errno == 0 {
			full++
		}
	}
	return full
}

// TestLongListing: beyond the first names, attributes come along for somebody who asks for them.
func TestLongListing(t *testing.T) {
	const batch = 100
	open := func() (*longDir, *dirHandle) {
		d := &longDir{names: freeLookups + 10*batch}
		d.view = &View{}
		fusefs.NewNodeFS(d, &fusefs.Options{})
		l, _, errno := d.OpendirHandle(context.Background(), 0)
		require.Zero(t, errno)
		require.Equal(t, freeLookups, request(t, l.(*dirHandle), freeLookups))
		return d, l.(*dirHandle)
	}
	t.Run("find", func(t *testing.T) {
		_, l := open()
		for range 10 {
			require.Zero(t, request(t, l, batch))
		}
	})
	t.Run("ls -l", func(t *testing.T) {
		d, l := open()
		require.Zero(t, request(t, l, batch))
		d.lookups.Add(batch)
		for range 9 {
			require.Equal(t, batch, request(t, l, batch), "also when nothing more is looked up")
		}
	})
	t.Run("in the middle of a reply", func(t *testing.T) {
		d, l := open()
		d.lookups.Add(7) // before: by others
		require.Zero(t, request(t, l, batch))
		require.Zero(t, request(t, l, batch))
		d.lookups.Add(1)
		require.Equal(t, batch, request(t, l, batch))
	})
}

// TestInterruptedListing: the listing of a caller that is gone fails. It does not leave out the sessions that could no
// longer be read: the caller may live and have a handler for the signal.
func TestInterruptedListing(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("p/s.jsonl", []byte(`{"type":"session","version":3,"id":"s"}`+"\n")))
	store := sessioncore.NewStore(files)
	defer store.Close()
	d := newSourceDir(&View{Log: slog.New(slog.DiscardHandler)}, files, store)
	d.dir = "p"
	ctx, gone := context.WithCancel(context.Background())
	gone()
	_, err := d.list(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	items, err := d.list(context.Background(), nil)
	require.NoError(t, err)
	require.Len(t, items, 2)
}

// countedStats counts how many files and directories it was asked for.
type countedStats struct {
	*memory.Storage
	n atomic.Int64
}

func (c *countedStats) Stat(name string) (storage.Stat, error) {
	c.n.Add(1)
	return c.Storage.Stat(name)
}

// TestLinksShareALook: all sessions are looked at once for a listing and for all the look-ups that follow it, and what
// changes meanwhile is seen where a link leads to it.
func TestLinksShareALook(t *testing.T) {
	const sessions, dirs = 300, 200
	files := &countedStats{Storage: memory.New()}
	at := time.Now().Add(-time.Hour)
	file := func(n int) string { return fmt.Sprintf("p%d/2026-01-01_%03d.jsonl", n%dirs, n) }
	write := func(name string, n int) {
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"id%03d","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/w/%d","title":"title %d"}`+"\n", n, n%2, n)
		require.NoError(t, files.WriteFile(name, []byte(text)))
	}
	for n := range sessions {
		write(file(n), n)
		require.NoError(t, files.Chtimes(file(n), at.Add(time.Duration(n)*time.Second)))
	}
	store := sessioncore.NewStore(files)
	defer store.Close()
	list := listing.New(store, "/agent/sessions")
	_, err := list.Sessions(t.Context())
	require.NoError(t, err)
	began := time.Date(2026, 2, 16, 10, 20, 30, 0, time.UTC).Local().Format("2006-01-02T15-04-")
	for name, c := range map[string]struct {
		dir   layout.Directory
		links int
		of    string // the link of the session that was modified last, and of the one before
		next  string
	}{
		"recent": {layout.Recent{Listing: list}, 50, "01-title 299", "02-title 298"},
		"by-id":  {layout.ByID{Listing: list}, 300, "id299", "id298"},
		"by-cwd": {layout.Nested{Listing: list, Tree: listing.ByCwd, Dir: "/w/1"}, 151, began + "title 299", began + "title 297"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newLinksDir(&View{}, c.dir, "")
			files.n.Store(0)
			items, err := d.list(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, items, c.links)
			for range 3 {
				for _, it := range items {
					if it.name != "latest" {
						_, err := d.target(t.Context(), it.name)
						require.NoError(t, err, it.name)
					}
				}
			}
			require.LessOrEqual(t, files.n.Load(), int64(sessions+dirs+1+3*c.links), "files and directories looked at")

			last, err := d.target(t.Context(), c.of)
			require.NoError(t, err)
			require.NoError(t, files.Remove(file(299)))
			write("p0/2026-01-01_299.jsonl", 299)
			moved, err := d.target(t.Context(), c.of)
			require.NoError(t, err)
			require.NotEqual(t, last.path, moved.path)
			require.NoError(t, files.Remove("p0/2026-01-01_299.jsonl"))
			write(file(299), 299)

			d.lookedAt.Store(time.Now().Add(-sharedLook).UnixNano())
			files.n.Store(0)
			for range 3 {
				_, err = d.target(t.Context(), c.next)
				require.NoError(t, err)
			}
			require.Greater(t, files.n.Load(), int64(dirs), "after a second they are looked at again")
			require.Less(t, files.n.Load(), int64(2*dirs+sessions), "once")
			d.lookedAt.Store(0)
			files.n.Store(0)
			for range 3 {
				_, err = d.target(t.Context(), c.next)
				require.NoError(t, err)
			}
			require.Greater(t, files.n.Load(), int64(3*dirs), "where nothing was listed, each time")
		})
	}
}
