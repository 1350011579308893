package nodes_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
)

// leafDir is the directory of a session, in which tools replace the link leaf.
type leafDir struct {
	nodes.LinkDir
	t    *testing.T
	root *nodes.RootDir
}

func newLeafDir(t *testing.T) *leafDir {
	root := openSource(t, 0o755, 0o644)
	return &leafDir{nodeAt(t, root, "sessions/p/2026_s").(nodes.LinkDir), t, root}
}

// target returns the target of a link, "" if there is none.
func (d *leafDir) target(name string) string {
	d.t.Helper()
	state, err := nodes.NewDirState(d.t.Context(), d)
	require.NoError(d.t, err)
	defer state.Close()
	child, errno := state.Find(d.t.Context(), nodes.Named(name))
	if errno == syscall.ENOENT {
		return ""
	}
	require.Zero(d.t, errno)
	target, err := child.Make().(nodes.Link).Target(d.t.Context())
	require.NoError(d.t, err)
	return target
}

// leaf requires a target of leaf.
func (d *leafDir) leaf(want string) {
	d.t.Helper()
	require.Equal(d.t, want, d.target("leaf"))
}

// does requires the errno of a change.
func (d *leafDir) does(want, errno syscall.Errno) {
	d.t.Helper()
	require.Equal(d.t, want, errno)
}

const (
	// a and tree are targets of leaf: the session's only entry, and the position before it.
	a, tree = "entries/a.json", "tree"
	// noReplace and exchange are flags of renameat2(2).
	noReplace, exchange = 1, 2
)

// TestLeafIsReplaced: ln -sf makes a link under another name and renames it, ln -sfn removes the old one first.
func TestLeafIsReplaced(t *testing.T) {
	d, ctx := newLeafDir(t), t.Context()
	d.leaf(a)
	d.does(0, d.Symlink(ctx, tree, "new"))
	require.Equal(t, tree, d.target("new"), "it waits")
	d.leaf(a)
	d.does(0, d.Rename(ctx, "new", "leaf", 0))
	require.Empty(t, d.target("new"))
	d.leaf(tree)

	d.does(0, d.Remove(ctx, "leaf"))
	d.leaf("")
	d.does(syscall.ENOENT, d.Remove(ctx, "leaf"))
	d.does(0, d.Symlink(ctx, a, "leaf"))
	d.leaf(a)

	d.does(0, d.Remove(ctx, "leaf"))
	d.does(0, d.Symlink(ctx, tree, "new"))
	d.does(0, d.Rename(ctx, "new", "leaf", noReplace))
	d.leaf(tree)
}

// TestLeafIsKept: what would replace something else, or leaf without being asked to, is refused and changes nothing.
func TestLeafIsKept(t *testing.T) {
	d, ctx := newLeafDir(t), t.Context()
	d.does(0, d.Symlink(ctx, tree, "new"))
	for name, c := range map[string]struct {
		want syscall.Errno
		do   func() syscall.Errno
	}{
		"a link over leaf":          {syscall.EEXIST, func() syscall.Errno { return d.Symlink(ctx, tree, "leaf") }},
		"a link over a file":        {syscall.EEXIST, func() syscall.Errno { return d.Symlink(ctx, tree, "append") }},
		"a link over another":       {syscall.EEXIST, func() syscall.Errno { return d.Symlink(ctx, a, "new") }},
		"no replacement":            {syscall.EEXIST, func() syscall.Errno { return d.Rename(ctx, "new", "leaf", noReplace) }},
		"an exchange":               {syscall.EINVAL, func() syscall.Errno { return d.Rename(ctx, "new", "leaf", exchange) }},
		"another name":              {syscall.EPERM, func() syscall.Errno { return d.Rename(ctx, "new", "title", 0) }},
		"of something else":         {syscall.EPERM, func() syscall.Errno { return d.Rename(ctx, "append", "leaf", 0) }},
		"removal of something else": {syscall.EPERM, func() syscall.Errno { return d.Remove(ctx, "append") }},
	} {
		require.Equal(t, c.want, c.do(), name)
		d.leaf(a)
		require.Equal(t, tree, d.target("new"), name)
	}
	d.does(0, d.Symlink(ctx, "entries/nothing.json", "wrong"))
	d.does(syscall.ENOENT, d.Rename(ctx, "wrong", "leaf", 0))
	d.leaf(a)
	d.does(0, d.Remove(ctx, "new"))
	require.Empty(t, d.target("new"))
}

// TestLeafOfArchive: where nothing can be changed, no link can.
func TestLeafOfArchive(t *testing.T) {
	d, ctx := newLeafDir(t), t.Context()
	d.does(0, d.Symlink(ctx, tree, "new"))
	d.root.View().Frozen = nodes.ErrArchived
	d.does(syscall.EROFS, d.Symlink(ctx, tree, "other"))
	d.does(syscall.EROFS, d.Symlink(ctx, tree, "leaf"))
	d.does(syscall.EROFS, d.Rename(ctx, "new", "leaf", 0))
	d.does(syscall.EROFS, d.Remove(ctx, "new"))
	d.does(syscall.EROFS, d.Remove(ctx, "leaf"))
	d.leaf(a)
}

// TestWaitingLinksAreBounded: links that tools leave behind are dropped together before they become many.
func TestWaitingLinksAreBounded(t *testing.T) {
	const most = 64
	d, ctx := newLeafDir(t), t.Context()
	for n := range most {
		d.does(0, d.Symlink(ctx, tree, fmt.Sprint(n)))
	}
	require.Equal(t, tree, d.target("0"))
	d.does(0, d.Symlink(ctx, tree, "one more"))
	require.Empty(t, d.target("0"))
	require.Equal(t, tree, d.target("one more"))
}
