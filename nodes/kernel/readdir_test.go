package kernel

import (
	"context"
	"fmt"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// longDir is a directory of many names.
type longDir struct {
	nodes.Directory
	names int
}

func (d *longDir) Stat(context.Context) (nodes.Attr, error) { return nodes.Attr{}, nil }

func (d *longDir) List(context.Context, *sessioncore.Snapshot) ([]nodes.Item, error) {
	items := make([]nodes.Item, d.names)
	for i := range items {
		items[i].Name = fmt.Sprint(i)
	}
	return items, nil
}

func (d *longDir) Find(context.Context, *sessioncore.Snapshot, nodes.Item) (nodes.Child, error) {
	below := func() nodes.Node { return &longDir{Directory: d.Directory} }
	return nodes.Child{Kind: storage.KindDir, Attr: nodes.Attr{Kind: storage.KindDir}, Make: below}, nil
}

// request answers one READDIRPLUS of n names and returns how many came with their attributes.
func request(t *testing.T, l *dirHandle, n int) (full int) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, 0) // of this request alone, as a door tells requests by it
	for range n {
		e, errno := l.Readdirent(ctx)
		require.Zero(t, errno)
		require.NotNil(t, e)
		_, errno = l.Lookup(ctx, e.Name, &fuse.EntryOut{})
		hasAttributes := errno == 0
		if hasAttributes {
			full++
		}
	}
	return full
}

// TestLongListing: beyond the first names, attributes come along for somebody who asks for them.
func TestLongListing(t *testing.T) {
	const batch = 100
	open := func() (*dirInode, *dirHandle) {
		dir := &longDir{nodes.NewDirectory(&nodes.View{}), freeLookups + 10*batch}
		d := &rootInode{dirInode{dir: dir}, New(nodes.NewRootDir(dir.View(), nil, nil))}
		fusefs.NewNodeFS(d, &fusefs.Options{})
		l, _, errno := d.OpendirHandle(context.Background(), 0)
		require.Zero(t, errno)
		require.Equal(t, freeLookups, request(t, l.(*dirHandle), freeLookups))
		return &d.dirInode, l.(*dirHandle)
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
		for i := range batch {
			_, errno := d.Lookup(t.Context(), fmt.Sprint(i), &fuse.EntryOut{})
			require.Zero(t, errno)
		}
		for range 9 {
			require.Equal(t, batch, request(t, l, batch), "also when nothing more is looked up")
		}
	})
	t.Run("in the middle of a reply", func(t *testing.T) {
		d, l := open()
		d.door().long.countLookup(d) // before: by others
		require.Zero(t, request(t, l, batch))
		require.Zero(t, request(t, l, batch))
		d.door().long.countLookup(d)
		require.Equal(t, batch, request(t, l, batch))
		l.Releasedir(t.Context(), 0)
		require.False(t, d.door().long.any.Load())
	})
}
