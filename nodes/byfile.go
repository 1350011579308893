package nodes

import (
	"context"
	"path"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/search"
)

// ByFileDir is by-file/, which stands for /: looking up a name in it finds the directory of that file. It lists nothing.
type ByFileDir struct {
	aboutSessions
	listsNothing
}

// NewByFileDir returns by-file/.
func NewByFileDir(view *View) *ByFileDir {
	return &ByFileDir{aboutSessions: aboutSessions{directory: directory{node{view: view}}}}
}

var _ = (fusefs.NodeLookuper)((*ByFileDir)(nil))

// Lookup finds the directory of a file or directory in /, whether there is one or not.
func (d *ByFileDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.view.enterFile(ctx, &d.node, "/", name, out)
}

// FileDir is the directory of a file below by-file/: what was done with it, or with what is below it. To look it up or
// to list it searches nothing.
type FileDir struct {
	HitsDir
	file string
}

var _ = (fusefs.NodeLookuper)((*FileDir)(nil))

// Lookup finds one of the names of a HitsDir, or else the directory of a file below.
func (d *FileDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	for _, n := range d.names() {
		if n.Name == name {
			return d.enterName(ctx, n, out)
		}
	}
	return d.view.enterFile(ctx, &d.node, d.file, name, out)
}

// enterFile answers a lookup with the directory of a file, in dir or its directory's.
func (v *View) enterFile(ctx context.Context, in *node, dir, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	file := path.Join(dir, name)
	touched, err := search.NewTouched(file)
	if err != nil {
		return nil, syscall.ENOENT
	}
	id := stableAttr(in.StableAttr(), kindFile, name, syscall.S_IFDIR)
	return in.enter(ctx, in.child(ctx, id, name, func() fusefs.InodeEmbedder {
		up := strings.TrimSuffix(strings.Repeat("../", 1+strings.Count(file, "/")), "/")
		return &FileDir{*newHitsDir(v, touched, nil, up), file}
	}), out)
}
