package direct_test

import (
	"bytes"
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

	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/nodes/direct"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// dir is a directory whose names are made when they are looked up, as in a mount.
type dir struct {
	nodes.Directory
	items items
}

type items map[string]func() nodes.Node

func (d *dir) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindDir, Mode: 0o755}, nil
}

func (d *dir) Find(_ context.Context, _ *sessioncore.Snapshot, it nodes.Item) (nodes.Child, error) {
	create, ok := d.items[it.Name]
	if !ok {
		return nodes.Child{}, syscall.ENOENT
	}
	return nodes.Child{Make: create}, nil
}

func (d *dir) List(ctx context.Context, _ *sessioncore.Snapshot) (list []nodes.Item, err error) {
	for name, create := range d.items {
		a, err := create().Stat(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, nodes.Item{Name: name, Kind: a.Kind})
	}
	return list, nil
}

func in(items items) func() nodes.Node {
	return func() nodes.Node {
		return &dir{nodes.NewDirectory(&nodes.View{Log: slog.New(slog.DiscardHandler)}), items}
	}
}

// textFile is a file in memory. What is written is appended.
type textFile struct {
	nodes.Directory
	text []byte
}

func (f *textFile) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindFile, Mode: 0o640, Size: int64(len(f.text))}, nil
}

func (f *textFile) Open(context.Context, int) (nodes.Handle, error) { return f, nil }

func (f *textFile) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return bytes.NewReader(f.text).ReadAt(p, off)
}

func (f *textFile) Write(_ context.Context, p []byte, _ int64) (int, syscall.Errno) {
	f.text = append(f.text, p...)
	return len(p), 0
}

func (f *textFile) Flush(context.Context) syscall.Errno { return 0 }

func (f *textFile) Lines(context.Context, [][]byte) ([]string, int, error) { return nil, 0, nil }

func (f *textFile) Sync(context.Context) syscall.Errno { return 0 }

func (f *textFile) Readable() bool { return true }

func (f *textFile) Refused(error) syscall.Errno { return syscall.EINVAL }

func (f *textFile) Close() {}

func file(text string) func() nodes.Node {
	return func() nodes.Node { return newFile(text) }
}

func newFile(text string) *textFile {
	return &textFile{nodes.NewDirectory(&nodes.View{Log: slog.New(slog.DiscardHandler)}), []byte(text)}
}

// textLink is a link.
type textLink struct {
	nodes.Directory
	target string
}

func (l *textLink) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindLink, Mode: 0o640}, nil
}

func (l *textLink) Target(context.Context) (string, error) { return l.target, nil }

func link(target string) func() nodes.Node {
	return func() nodes.Node { return &textLink{target: target} }
}

// panics is a file whose handler has a bug.
type panics struct{ textFile }

func (p *panics) Open(context.Context, int) (nodes.Handle, error) { panic("a bug") }

func newFS() *direct.FS {
	many := items{}
	for i := range 1500 {
		many[fmt.Sprintf("%0150d", i)] = file("")
	}
	root := in(items{
		"a":   in(items{"b": in(items{"c.txt": file("abc"), "up": link("../../d")}), "self": link("self"), "here": link("./b")}),
		"d":   in(items{"x1": file("1"), "x2": file("2"), ".x3": file("3"), "[y]": file("4"), "sub": in(items{"z": file("5")})}),
		"abs": link("/etc/passwd"), "above": link("a/../../etc"), "gone": link("nothing"), "empty": link(""),
		"many": in(many), "bug": func() nodes.Node { return &panics{*newFile("")} },
		"long": file(strings.Repeat("0123456789", 50_000)),
	})().(*dir)
	return direct.New(root, slog.New(slog.DiscardHandler))
}

func TestPaths(t *testing.T) {
	files := newFS()
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
}

func TestStat(t *testing.T) {
	files := newFS()
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
}

// TestWalk: io/fs walks the tree as any other, without following links.
func TestWalk(t *testing.T) {
	files := newFS()
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
}

// TestClosedTwice: a file can be closed again.
func TestClosedTwice(t *testing.T) {
	files := newFS()
	f, err := files.Open("a/b/c.txt")
	require.NoError(t, err)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "abc", string(got))
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
}

func TestLongReadsAndListings(t *testing.T) {
	files := newFS()
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
}

func TestGlob(t *testing.T) {
	files := newFS()
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
}

// TestInterrupted: when the context is done, nothing is asked any more.
func TestInterrupted(t *testing.T) {
	files := newFS()
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
	data := newFile("")
	root := in(items{"f": func() nodes.Node { return data }})().(*dir)
	files := direct.New(root, slog.New(slog.DiscardHandler))
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
