package direct_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/fs/direct"
)

// dir is a directory whose names are made when they are looked up, as in a mount.
type dir struct {
	fusefs.Inode
	items map[string]func() fusefs.InodeEmbedder
}

var (
	_ = (fusefs.NodeLookuper)((*dir)(nil))
	_ = (fusefs.NodeReaddirer)((*dir)(nil))
	_ = (fusefs.NodeGetattrer)((*dir)(nil))
)

func (d *dir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = syscall.S_IFDIR | 0o755
	return 0
}

func (d *dir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	create, ok := d.items[name]
	if !ok {
		return nil, syscall.ENOENT
	}
	ops := create()
	mode := typeOf(ops)
	out.Mode = mode | 0o640
	return d.NewInode(ctx, ops, fusefs.StableAttr{Mode: mode}), 0
}

func (d *dir) Readdir(context.Context) (fusefs.DirStream, syscall.Errno) {
	var list []fuse.DirEntry
	for name, create := range d.items {
		list = append(list, fuse.DirEntry{Name: name, Mode: typeOf(create())})
	}
	return fusefs.NewListDirStream(list), 0
}

func typeOf(ops fusefs.InodeEmbedder) uint32 {
	switch ops.(type) {
	case *dir:
		return syscall.S_IFDIR
	case *fusefs.MemSymlink:
		return syscall.S_IFLNK
	}
	return syscall.S_IFREG
}

func file(text string) func() fusefs.InodeEmbedder {
	return func() fusefs.InodeEmbedder { return &fusefs.MemRegularFile{Data: []byte(text)} }
}

func link(target string) func() fusefs.InodeEmbedder {
	return func() fusefs.InodeEmbedder { return &fusefs.MemSymlink{Data: []byte(target)} }
}

func in(items map[string]func() fusefs.InodeEmbedder) func() fusefs.InodeEmbedder {
	return func() fusefs.InodeEmbedder { return &dir{items: items} }
}

// panics is a file whose handler has a bug.
type panics struct{ fusefs.Inode }

func (p *panics) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	panic("a bug")
}

type items = map[string]func() fusefs.InodeEmbedder

func newFS(t *testing.T) (*direct.FS, *dir) {
	many := items{}
	for i := range 1500 {
		many[fmt.Sprintf("%0150d", i)] = file("")
	}
	root := in(items{
		"a":   in(items{"b": in(items{"c.txt": file("abc"), "up": link("../../d")}), "self": link("self"), "here": link("./b")}),
		"d":   in(items{"x1": file("1"), "x2": file("2"), ".x3": file("3"), "[y]": file("4"), "sub": in(items{"z": file("5")})}),
		"abs": link("/etc/passwd"), "above": link("a/../../etc"), "gone": link("nothing"), "empty": link(""),
		"many": in(many), "bug": func() fusefs.InodeEmbedder { return &panics{} },
		"long": file(strings.Repeat("0123456789", 50_000)),
	})().(*dir)
	raw := fusefs.NewNodeFS(root, &fusefs.Options{})
	return direct.New(raw, fuse.Caller{}, slog.New(slog.DiscardHandler)), root
}

func TestPaths(t *testing.T) {
	files, root := newFS(t)
	for path, want := range map[string]any{
		"a/b/c.txt": "abc", "a/here/c.txt": "abc", "a/here/up/x1": "1", "d/[y]": "4",
		".": syscall.EISDIR, "a": syscall.EISDIR, "a/here": syscall.EISDIR,
		"a/b/c.txt/x": syscall.ENOTDIR, "nothing": syscall.ENOENT,
		"gone": syscall.ENOENT, "empty": syscall.ENOENT, "a/self": syscall.ELOOP, "a/self/x": syscall.ELOOP,
		"abs": direct.ErrLeadsOut, "above": direct.ErrLeadsOut, "..": direct.ErrLeadsOut, "../a": direct.ErrLeadsOut,
		"/a": iofs.ErrInvalid, "a/": iofs.ErrInvalid, "a/../a": iofs.ErrInvalid, "": iofs.ErrInvalid,
		strings.Repeat("x", 2000): syscall.ENAMETOOLONG, "bug": syscall.EIO, "\xff": syscall.ENOENT,
	} {
		got, err := iofs.ReadFile(files, path)
		if text, ok := want.(string); ok {
			require.NoError(t, err, path)
			require.Equal(t, text, string(got), path)
			continue
		}
		require.ErrorIs(t, err, want.(error), path)
		var at *iofs.PathError
		require.ErrorAs(t, err, &at)
	}
	require.Empty(t, root.Children(), "all nodes are forgotten")
}

func TestStat(t *testing.T) {
	files, root := newFS(t)
	info, err := files.Lstat("a/here")
	require.NoError(t, err)
	require.Equal(t, iofs.ModeSymlink|0o640, info.Mode())
	info, err = files.Stat("a/here")
	require.NoError(t, err)
	require.True(t, info.IsDir())
	info, err = files.Stat(".")
	require.NoError(t, err)
	require.Equal(t, iofs.ModeDir|0o755, info.Mode())
	target, err := files.ReadLink("a/b/up")
	require.NoError(t, err)
	require.Equal(t, "../../d", target)
	_, err = files.ReadLink("a/b")
	require.ErrorIs(t, err, syscall.EINVAL)
	resolved, err := files.Resolve("a/here/up/x1")
	require.NoError(t, err)
	require.Equal(t, "d/x1", resolved)
	require.Empty(t, root.Children())
}

// TestWalk: io/fs walks the tree as any other, without following links.
func TestWalk(t *testing.T) {
	files, root := newFS(t)
	var names []string
	require.NoError(t, iofs.WalkDir(files, "a", func(name string, d iofs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.Equal(t, d.Type(), info.Mode().Type())
		names = append(names, name)
		return nil
	}))
	require.Equal(t, []string{"a", "a/b", "a/b/c.txt", "a/b/up", "a/here", "a/self"}, names)
	require.Empty(t, root.Children())
}

// TestFilesOutliveNodes: an open file needs no caller to keep its node, and its directories stay with it.
func TestFilesOutliveNodes(t *testing.T) {
	files, root := newFS(t)
	f, err := files.Open("a/b/c.txt")
	require.NoError(t, err)
	require.Len(t, root.Children(), 1)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "abc", string(got))
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.Empty(t, root.Children())
}

func TestLongReadsAndListings(t *testing.T) {
	files, root := newFS(t)
	f, err := files.Open("long")
	require.NoError(t, err)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("0123456789", 50_000), string(got))
	require.NoError(t, f.Close())
	names, err := files.ReadDir("many")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, n := range names {
		seen[n.Name()] = true
	}
	require.Len(t, names, 1500)
	require.Len(t, seen, 1500)
	require.Empty(t, root.Children())
}

func TestGlob(t *testing.T) {
	files, root := newFS(t)
	for pattern, want := range map[string][]string{
		"d/x*": {"d/x1", "d/x2"}, "*/x1": {"d/x1"}, "d/*": {"d/[y]", "d/sub", "d/x1", "d/x2"}, "d/.*": {"d/.x3"},
		"d/[x]1": {"d/x1"}, "a/*/up/x1": {"a/b/up/x1", "a/here/up/x1"}, "*/*/z": {"d/sub/z"}, "a": {"a"}, "gon*": {"gone"},
		"q*": nil, "d/q*": nil, "abs/*": nil, "a/self/*": nil, "*/*/*/*/*/*/*": nil, "nothing": nil,
	} {
		got, err := iofs.Glob(files, pattern)
		require.NoError(t, err, pattern)
		require.Equal(t, want, got, pattern)
	}
	_, err := iofs.Glob(files, "d/[")
	require.Error(t, err)
	require.Empty(t, root.Children())
}

// TestInterrupted: when the context is done, nothing is asked any more.
func TestInterrupted(t *testing.T) {
	files, _ := newFS(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	f, err := files.With(ctx).Open("long")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Read(make([]byte, 10))
	require.NoError(t, err)
	why := errors.New("the user has had enough")
	cancel(why)
	_, err = io.Copy(io.Discard, f)
	require.ErrorIs(t, err, why)
}

func TestWrite(t *testing.T) {
	data := &fusefs.MemRegularFile{}
	root := &dir{items: items{"f": func() fusefs.InodeEmbedder { return data }}}
	files := direct.New(fusefs.NewNodeFS(root, &fusefs.Options{}), fuse.Caller{}, slog.New(slog.DiscardHandler))
	f, err := files.OpenFile("f", os.O_RDWR)
	require.NoError(t, err)
	text := strings.Repeat("line\n", 100_000)
	n, err := io.WriteString(f, text)
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	require.NoError(t, f.Close())
}
