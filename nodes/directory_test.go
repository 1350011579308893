package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestLookedUpNamesAreSmall: the node of a query, or of a file, has no more than its name: the kernel remembers many.
func TestLookedUpNamesAreSmall(t *testing.T) {
	const many = 500
	view := &View{Log: slog.New(slog.DiscardHandler), Memory: budget.New(budget.Min)}
	view.Searcher = func() *search.Searcher { return nil }
	root := NewDirectory(view)
	queries, files := SearchName.Make(&root), ByFileName.Make(&root)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, dir := range []Node{queries, files} {
		before := heap()
		made := make([]Node, many)
		for n := range made {
			found, err := dir.(Dir).Find(t.Context(), nil, Named(fmt.Sprint(n, strings.Repeat(" word", 49))))
			require.NoError(t, err)
			made[n] = found.Make()
		}
		require.Less(t, (heap()-before)/many, uint64(1500))
		runtime.KeepAlive(made)
	}
}

// TestInterruptedListing: the listing of a caller that is gone fails. It does not leave out the sessions that could no
// longer be read: the caller may live and have a handler for the signal.
func TestInterruptedListing(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("p/s.jsonl", []byte(`{"type":"session","version":3,"id":"s"}`+"\n")))
	store := sessioncore.NewStore(files)
	defer store.Close()
	d := newSourceDir(NewDirectory(&View{Log: slog.New(slog.DiscardHandler)}), files, store)
	d.dir = "p"
	ctx, gone := context.WithCancel(context.Background())
	gone()
	_, err := d.List(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	items, err := d.List(context.Background(), nil)
	require.NoError(t, err)
	require.Len(t, items, 2)
}

// TestSteadyLink: a link in a session is the same node as long as it has the same target and time; after a rewrite of the
// session that gives its entry another time it is another one.
func TestSteadyLink(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("s.jsonl", []byte(`{"type":"session","version":3,"id":"s"}`+"\n")))
	store := sessioncore.NewStore(files)
	defer store.Close()
	d := NewDirectory(&View{})
	at := time.UnixMilli(1_771_237_230_000)
	link := func(path string, at time.Time) Child {
		return d.steadyLink(store.Session("s.jsonl"), target{path: path, time: at})
	}
	first := link("../entries/a.json", at)
	require.Equal(t, first.Content, link("../entries/a.json", at).Content)
	require.NotEqual(t, first.Content, link("../entries/b.json", at).Content)
	later := link("../entries/a.json", at.Add(time.Millisecond))
	require.NotEqual(t, first.Content, later.Content)
	attr, err := later.Make().Stat(t.Context())
	require.NoError(t, err)
	require.True(t, attr.Modified.Equal(at.Add(time.Millisecond)), "%v", attr.Modified)
}

// TestLinkIsNoDirectory: a link to a session leads nowhere once its name is that of a directory.
func TestLinkIsNoDirectory(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("p/s.jsonl", []byte(`{"type":"session","version":3,"id":"s","title":"Title","cwd":"/w/sub"}`+"\n")))
	store := sessioncore.NewStore(files)
	defer store.Close()
	tree := layout.Nested{Listing: listing.New(store, "/agent/sessions"), Tree: listing.ByCwd, Dir: "/w"}
	d := &LinksDir{Directory: NewDirectory(&View{}), layout: tree}
	items, err := d.List(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []Item{{Name: "sub", Kind: storage.KindDir}}, items)
	_, err = d.target(t.Context(), "sub")
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
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
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"id%03d","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/w/%d",`+
			`"title":"title %d"}`+"\n", n, n%2, n)
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
		dir   layout.LinkDirectory
		links int
		of    string // the link of the session that was modified last, and of the one before
		next  string
	}{
		"recent": {layout.Recent{Listing: list}, 50, "01-title 299", "02-title 298"},
		"by-id":  {layout.ByID{Listing: list}, 300, "id299", "id298"},
		"by-cwd": {layout.Nested{Listing: list, Tree: listing.ByCwd, Dir: "/w/1"}, 151, began + "title 299", began + "title 297"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &LinksDir{Directory: NewDirectory(&View{}), layout: c.dir}
			target := func(link string) string {
				to, err := d.target(t.Context(), link)
				require.NoError(t, err, link)
				return to.path
			}
			files.n.Store(0)
			items, err := d.List(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, items, c.links)
			for range 3 {
				for _, it := range items {
					if it.Name != "latest" {
						target(it.Name)
					}
				}
			}
			require.LessOrEqual(t, files.n.Load(), int64(sessions+dirs+1+3*c.links), "files and directories looked at")

			last := target(c.of)
			require.NoError(t, files.Remove(file(299)))
			write("p0/2026-01-01_299.jsonl", 299)
			require.NotEqual(t, last, target(c.of))
			require.NoError(t, files.Remove("p0/2026-01-01_299.jsonl"))
			write(file(299), 299)

			looks := func(scannedAt int64) int64 {
				d.scannedAt.Store(scannedAt)
				files.n.Store(0)
				for range 3 {
					target(c.next)
				}
				return files.n.Load()
			}
			again := looks(time.Now().Add(-scanLife).UnixNano())
			require.Greater(t, again, int64(dirs), "after a second they are looked at again")
			require.Less(t, again, int64(2*dirs+sessions), "once")
			require.Greater(t, looks(0), int64(3*dirs), "where nothing was listed, each time")
		})
	}
}
