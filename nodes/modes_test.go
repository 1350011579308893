package nodes_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/nodes/direct"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/writer"
)

// modesOfNames are the modes of all names in the root of a mount, and of names below them, where SOURCE has the usual
// modes: 0755 for directories, 0644 for files.
var modesOfNames = map[string]os.FileMode{
	"README": 0o444, "new-session": 0o644, "sessions": 0o755, "sessions/p": 0o755, "sessions/p/2026_s.jsonl": 0o444,
	"sessions/p/2026_s": 0o755, "sessions/p/2026_s/append": 0o644, "sessions/p/2026_s/entries": 0o755,
	"sessions/p/2026_s/entries/a.json": 0o444, "sessions/p/2026_s/last-error": 0o444, "sessions/p/2026_s/usage.json": 0o444,
	"sessions/p/2026_s/search": 0o755, "sessions/p/2026_s/search/hello": 0o755, "sessions/p/2026_s/search/hello/results.tsv": 0o444,

	// Parts of all sessions, of which each may be less open than the directory above it, and typed text.
	"by-cwd": 0o700, "by-cwd/w": 0o700, "by-cwd/w/x": 0o700,
	"by-date": 0o700, "by-date/2026-02-16": 0o700,
	"by-file": 0o700, "by-file/w": 0o700, "by-file/w/x.go": 0o700, "by-file/w/x.go/edits.diff": 0o400,
	"by-file/w/x.go/entries": 0o700, "by-file/w/x.go/results.tsv": 0o400, "by-file/w/x.go/sessions": 0o700,
	"by-id": 0o700, "continue": 0o700, "recent": 0o700,
	"search": 0o700, "search/hello": 0o700, "search/hello/entries": 0o700, "search/hello/results.tsv": 0o400,
	"search/hello/sessions": 0o700,
	"history":               0o700, "history/prompts.jsonl": 0o400, "history/search": 0o700, "history/search/hello": 0o400,
	"index.jsonl": 0o400, "last-error": 0o400, "lost.tsv": 0o400, "sessions/p/2026_s/owner": 0o400, "usage.jsonl": 0o400,
}

// settled is a history whose files nobody changes, so that a stat needs them only once.
type settled struct{ history.History }

func (h settled) Render(ctx context.Context, match string, hold *budget.Hold) (history.Rendering, error) {
	r, err := h.History.Render(ctx, match, hold)
	r.Settled = true
	return r, err
}

// openSource makes SOURCE with a session and a prompt, and returns the root of its mount.
func openSource(t *testing.T, dirMode, fileMode os.FileMode) *nodes.RootDir {
	source := t.TempDir()
	sessions := filepath.Join(source, layout.Sessions)
	for name, text := range map[string]string{
		"sessions/p/2026_s.jsonl": `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/w/x"}` + "\n" +
			`{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z","message":{"role":"user","content":"hello"}}` + "\n",
		history.LinesName: `{"display":"hello","timestamp":1771237230000}` + "\n",
	} {
		file := filepath.Join(source, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), dirMode))
		require.NoError(t, os.WriteFile(file, []byte(text), fileMode))
		require.NoError(t, os.Chmod(file, fileMode)) // whatever the umask
	}
	for _, name := range []string{source, sessions, filepath.Join(sessions, "p")} {
		require.NoError(t, os.Chmod(name, dirMode))
	}
	top, err := dir.Open(source)
	require.NoError(t, err)
	files, err := dir.Open(sessions)
	require.NoError(t, err)
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	list := listing.New(store, sessions)
	view := &nodes.View{
		Log: slog.New(slog.DiscardHandler), Memory: budget.New(budget.Default), Listing: list, Sessions: store,
		Family: listing.Listings{list}, Writer: writer.New(store, writer.Options{Journal: files}),
	}
	searcher := search.New(search.SearchedSessions{Files: files})
	view.Searcher = func() *search.Searcher { return searcher }
	names := []nodes.Name{
		nodes.LinksName("by-cwd", layout.Nested{Listing: list, Tree: listing.ByCwd, Dir: "/"}, ""),
		nodes.LinksName("by-date", layout.Nested{Listing: list, Tree: listing.ByDate, Dir: "/"}, ""),
		nodes.LinksName("by-id", layout.ByID{Listing: list}, "by-id"),
		nodes.LinksName("continue", layout.Continue{Listing: list, Crumbs: files}, ""),
		nodes.LinksName("recent", layout.Recent{Listing: list}, ""),
		nodes.SourceName(layout.Sessions, files, store),
		nodes.OverAllName("lost.tsv", report.NewLost(store).Table),
		nodes.OverAllName("usage.jsonl", report.NewCosts(store, report.ListPrices).Lines),
		nodes.HistoryName(func() history.History { return settled{history.Lines(top)} }),
		nodes.ByFileName, nodes.IndexName, nodes.LastErrorName, nodes.NewSessionName, nodes.ReadmeName, nodes.SearchName,
	}
	return nodes.NewRootDir(view, top, func() []nodes.Name { return names })
}

// nodeAt returns the node of a path in the mount.
func nodeAt(t *testing.T, root nodes.Dir, path string) nodes.Node {
	var node nodes.Node = root
	for name := range strings.SplitSeq(path, "/") {
		state, err := nodes.NewDirState(t.Context(), node.(nodes.Dir))
		require.NoError(t, err, path)
		child, errno := state.Find(t.Context(), nodes.Named(name))
		state.Close()
		require.Zero(t, errno, path)
		node = child.Make()
	}
	return node
}

// TestModes: each name has the mode of what is behind it, but views of all sessions, and typed text, are for the owner
// alone. What an open file says is what the name says.
func TestModes(t *testing.T) {
	for _, open := range []bool{true, false} {
		mask := os.FileMode(0o777)
		if !open {
			mask = 0o700
		}
		files := direct.New(openSource(t, 0o755&mask, 0o644&mask), slog.New(slog.DiscardHandler))
		items, err := files.ReadDir(".")
		require.NoError(t, err)
		for _, item := range items {
			assert.Contains(t, modesOfNames, item.Name(), "a name in the root")
		}
		for name, want := range modesOfNames {
			info, err := files.Stat(name)
			require.NoError(t, err, name)
			assert.Equal(t, want&mask, info.Mode().Perm(), "%s where SOURCE is open to others: %v", name, open)
			if info.IsDir() || want&0o222 != 0 {
				continue
			}
			f, err := files.Open(name)
			require.NoError(t, err, name)
			info, err = f.Stat()
			require.NoError(t, err, name)
			assert.Equal(t, want&mask, info.Mode().Perm(), "%s, opened", name)
			require.NoError(t, f.Close())
		}
	}
}

// TestModeOfKnownSize: the size of prompts that were read is remembered, and so is that they are the owner's.
func TestModeOfKnownSize(t *testing.T) {
	node := nodeAt(t, openSource(t, 0o755, 0o644), "history/prompts.jsonl")
	for range 2 {
		a, err := node.Stat(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 0o400, a.Mode)
	}
}

// TestClosedRoot: a root that admits the user who mounts alone is that user's, whatever the mode of SOURCE.
func TestClosedRoot(t *testing.T) {
	root := openSource(t, 0o755, 0o644)
	for closed, want := range map[bool]uint32{false: 0o755, true: 0o700} {
		root.Closed = closed
		a, err := root.Stat(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, a.Mode, "closed: %v", closed)
		require.EqualValues(t, os.Geteuid(), a.UID)
	}
}

// TestSetAttr: what a control file and leaf have already can be set, so that an editor's fchmod and cp -a succeed;
// anything else is refused, also a bit above those of the mode, and where nothing can be written.
func TestSetAttr(t *testing.T) {
	const isRegular, session = uint32(syscall.S_IFREG), "sessions/p/2026_s/"
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	mode := func(mode uint32) nodes.AttrChange { return nodes.AttrChange{Mode: &mode} }
	for _, c := range []struct {
		path   string
		change nodes.AttrChange
		want   syscall.Errno
	}{
		{session + "append", nodes.AttrChange{}, 0},
		{session + "append", mode(0o644), 0},
		{session + "append", mode(isRegular | 0o644), 0},
		{session + "append", nodes.AttrChange{UID: &uid, GID: &gid}, 0},
		{session + "append", mode(0o600), syscall.EPERM},
		{session + "append", mode(0o4644), syscall.EPERM},
		{session + "append", mode(0o2644), syscall.EPERM},
		{session + "append", mode(0o1644), syscall.EPERM},
		{session + "append", nodes.AttrChange{UID: new(uid + 1)}, syscall.EPERM},
		{session + "append", nodes.AttrChange{GID: new(gid + 1)}, syscall.EPERM},
		{session + "append", nodes.AttrChange{Mode: new(uint32(0o644)), GID: new(gid + 1)}, syscall.EPERM},
		{"new-session", mode(0o644), 0},
		{"new-session", mode(0o4644), syscall.EPERM},
		{session + "leaf", nodes.AttrChange{UID: &uid}, 0},
		{session + "leaf", mode(0o777), 0},
		{session + "leaf", mode(0o1777), syscall.EPERM},
		{session + "usage.json", mode(0o444), syscall.EPERM},
		{"README", nodes.AttrChange{}, syscall.EPERM},
		{"recent", mode(0o700), syscall.EPERM},
	} {
		root := openSource(t, 0o755, 0o644)
		node := nodeAt(t, root, c.path)
		a, errno := nodes.SetAttr(t.Context(), node, filepath.Base(c.path), c.change)
		assert.Equal(t, c.want, errno, "%s: %+v", c.path, c.change)
		if errno == 0 {
			now, err := node.Stat(t.Context())
			require.NoError(t, err)
			assert.Equal(t, now, a, c.path)
		}
		root.View().Frozen = nodes.ErrArchived
		_, errno = nodes.SetAttr(t.Context(), node, filepath.Base(c.path), c.change)
		assert.Equal(t, syscall.EROFS, errno, "archived: %s", c.path)
	}
}

// TestOpenForWriting: only control files can be opened for writing, and not where nothing may be written.
func TestOpenForWriting(t *testing.T) {
	const session = "sessions/p/2026_s/"
	root := openSource(t, 0o755, 0o644)
	for path, want := range map[string]syscall.Errno{
		session + "append": 0, session + "labels": 0, "new-session": 0,
		session + "usage.json": syscall.EPERM, session + "entries/a.json": syscall.EPERM, "README": syscall.EPERM,
		"sessions/p/2026_s.jsonl": syscall.EPERM, "index.jsonl": syscall.EPERM,
	} {
		file := nodeAt(t, root, path).(nodes.File)
		for _, flag := range []int{os.O_WRONLY, os.O_RDWR, os.O_TRUNC, os.O_RDONLY} {
			for frozen, errno := range map[error]syscall.Errno{nil: want, nodes.ErrForeign: syscall.EROFS} {
				if flag == os.O_RDONLY {
					errno = 0
				}
				root.View().Frozen = frozen
				h, got := nodes.OpenFile(t.Context(), file, filepath.Base(path), flag)
				assert.Equal(t, errno, got, "%s, flag %#x, frozen: %v", path, flag, frozen)
				if got == 0 {
					h.Close()
				}
			}
		}
	}
}

// TestFsyncOfSession: fsync of a session's control file is one of its session, whose error the caller gets.
func TestFsyncOfSession(t *testing.T) {
	root := openSource(t, 0o755, 0o644)
	file := nodeAt(t, root, "sessions/p/2026_s/append").(nodes.Control)
	require.Zero(t, file.Sync(t.Context()))
	root.View().Writer = writer.New(root.View().Sessions, writer.Options{ReadOnly: true})
	require.Equal(t, syscall.EROFS, file.Sync(t.Context()))
}
