package direct_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"log/slog"
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

// textFile is a file in memory.
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
	root := in(items{
		"a":   in(items{"b": in(items{"c.txt": file("abc"), "up": link("../../d")}), "self": link("self"), "here": link("./b")}),
		"d":   in(items{"x1": file("1"), "x2": file("2"), ".x3": file("3"), "[y]": file("4"), "sub": in(items{"z": file("5")})}),
		"abs": link("/etc/passwd"), "above": link("a/../../etc"), "gone": link("nothing"), "empty": link(""),
		"bug":  func() nodes.Node { return &panics{*newFile("")} },
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
