package direct_test

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/nodes/direct"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// buggy are files of which one panics.
type buggy struct{ storage.Files }

func (b buggy) Stat(name string) (storage.Stat, error) {
	if name == "bug" {
		panic("a bug")
	}
	return b.Files.Stat(name)
}

// newFS shows files, by their paths, and links, whose texts begin with "->".
func newFS(t *testing.T, texts map[string]string) (*direct.FS, *dir.Storage) {
	at := t.TempDir()
	for name, text := range texts {
		file := filepath.Join(at, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if target, ok := strings.CutPrefix(text, "->"); ok {
			require.NoError(t, os.Symlink(target, file))
		} else {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
	}
	stored, err := dir.Open(at)
	require.NoError(t, err)
	store := sessioncore.NewStore(stored)
	t.Cleanup(store.Close)
	log := slog.New(slog.DiscardHandler)
	above := nodes.NewDirectory(&nodes.View{Log: log})
	root := nodes.SourceName("", buggy{stored}, store).Make(&above)
	return direct.New(root.(nodes.Dir), log), stored
}

var tree = map[string]string{
	"a/b/c.txt": "abc", "a/b/up": "->../../d", "a/self": "->self", "a/here": "->./b",
	"d/x1": "1", "d/x2": "2", "d/.x3": "3", "d/[y]": "4", "d/sub/z": "5",
	"abs": "->/etc/passwd", "above": "->a/../../etc", "gone": "->nothing", "bug": "",
	"long": strings.Repeat("0123456789", 50_000),
}

func TestPaths(t *testing.T) {
	files, _ := newFS(t, tree)
	for path, want := range map[string]any{
		"a/b/c.txt": "abc", "a/here/c.txt": "abc", "a/here/up/x1": "1", "d/[y]": "4", "long": tree["long"],
		".": syscall.EISDIR, "a": syscall.EISDIR, "a/here": syscall.EISDIR,
		"a/b/c.txt/x": syscall.ENOTDIR, "nothing": syscall.ENOENT,
		"gone": syscall.ENOENT, "a/self": syscall.ELOOP, "a/self/x": syscall.ELOOP,
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
		require.ErrorAs(t, err, new(*iofs.PathError))
	}
}

func TestGlob(t *testing.T) {
	files, _ := newFS(t, tree)
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
	files, _ := newFS(t, tree)
	ctx, cancel := context.WithCancelCause(context.Background())
	f, err := files.With(ctx).Open("long")
	require.NoError(t, err)
	defer f.Close()
	why := errors.New("the user has had enough")
	cancel(why)
	_, err = io.Copy(io.Discard, f)
	require.ErrorIs(t, err, why)
}

// TestWriteInputPanics: the reader of the input may panic without an end of the process.
func TestWriteInputPanics(t *testing.T) {
	files, _ := newFS(t, map[string]string{"s.jsonl": `{"type":"session","version":3,"id":"s"}` + "\n"})
	require.ErrorContains(t, files.WriteLines(t.Context(), "s/append", nil, io.Discard), "a bug: reading the input")
}

// TestStatOfOpenFile: an open file has the size of its own version, which tar needs, whatever is added meanwhile.
func TestStatOfOpenFile(t *testing.T) {
	entry := func(id string) string {
		return `{"type":"message","id":"` + id + `","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z",` +
			`"message":{"role":"user","content":"hello","timestamp":1}}` + "\n"
	}
	files, stored := newFS(t, map[string]string{"s.jsonl": `{"type":"session","version":3,"id":"s"}` + "\n" + entry("a") + entry("b")})
	for _, name := range []string{"context.json", "entries/a.json", "branches.tsv"} {
		f, err := files.Open(path.Join("s", name))
		require.NoError(t, err)
		_, err = stored.Append("s.jsonl", []byte(entry("after "+path.Base(name))))
		require.NoError(t, err)
		info, err := f.Stat()
		require.NoError(t, err)
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		require.EqualValues(t, len(text), info.Size(), name)
		require.NoError(t, f.Close())
		require.ErrorIs(t, f.Close(), iofs.ErrClosed)
	}
}

// stalling is a directory in which leaf is back before the new link is made.
type stalling struct {
	nodes.Dir
	calls []string
}

func (d *stalling) Remove(_ context.Context, name string) syscall.Errno {
	d.calls = append(d.calls, "remove "+name)
	return 0
}

func (d *stalling) Symlink(_ context.Context, target, name string) syscall.Errno {
	d.calls = append(d.calls, "link "+name+" "+target)
	if name == "leaf" { // it is back
		return syscall.EEXIST
	}
	return 0
}

// Rename refuses a link to gone.
func (d *stalling) Rename(_ context.Context, name, newName string, _ uint32) syscall.Errno {
	made := d.calls[1]
	d.calls = append(d.calls, "rename "+name+" "+newName)
	if strings.HasSuffix(made, "gone") {
		return syscall.ENOENT
	}
	return 0
}

// TestLeafAfterStall: leaf is replaced, also where it is back by then, and a refusal leaves no link.
func TestLeafAfterStall(t *testing.T) {
	_, stored := newFS(t, map[string]string{"leaf": "->d"})
	store := sessioncore.NewStore(stored)
	t.Cleanup(store.Close)
	log := slog.New(slog.DiscardHandler)
	above := nodes.NewDirectory(&nodes.View{Log: log})
	root := &stalling{Dir: nodes.SourceName("", stored, store).Make(&above).(nodes.Dir)}
	files := direct.New(root, log)
	require.NoError(t, files.WriteLines(t.Context(), "leaf", strings.NewReader("a\n"), io.Discard))
	require.Equal(t, []string{"remove leaf", "link .leaf a", "rename .leaf leaf"}, root.calls)
	root.calls = nil
	require.ErrorIs(t, files.WriteLines(t.Context(), "leaf", strings.NewReader("gone"), io.Discard), syscall.ENOENT)
	require.Equal(t, "remove .leaf", root.calls[3])
}
