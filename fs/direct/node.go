package direct

import (
	"context"
	"path"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Node is a file, a directory or a link that was looked up. Callers must call Forget.
type Node struct {
	fs    *FS
	id    uint64
	path  string // as it was looked up, without links; "" is the root
	attr  fuse.Attr
	above *Node        // the directory in which it was looked up; nil for the root
	users atomic.Int32 // the one who looked it up, open files, and nodes that were looked up in it
}

func newNode(above *Node, f *FS, id uint64, path string, attr fuse.Attr) *Node {
	n := &Node{fs: f, id: id, path: path, attr: attr, above: above}
	n.users.Store(1)
	if above != nil {
		above.users.Add(1)
	}
	return n
}

// root returns the root.
func (f *FS) root(ctx context.Context) (*Node, error) {
	in := &fuse.GetAttrIn{InHeader: f.header(fuse.FUSE_ROOT_ID)}
	var out fuse.AttrOut
	err := f.ask(ctx, func(gone <-chan struct{}) fuse.Status { return f.raw.GetAttr(gone, in, &out) })
	if err != nil {
		return nil, err
	}
	return newNode(nil, f, fuse.FUSE_ROOT_ID, "", out.Attr), nil
}

// Path returns the path of the node, "." for the root. It contains no link but perhaps the node itself.
func (n *Node) Path() string { return path.Clean(n.path) }

// Info returns the node's attributes at the time when it was looked up.
func (n *Node) Info() Info { return Info{path.Base(n.Path()), n.attr} }

// Forget gives the node back. As with the kernel, a directory stays as long as something below it is in use.
func (n *Node) Forget() {
	for ; n != nil && n.users.Add(-1) == 0; n = n.above {
		if n.above != nil {
			n.fs.raw.Forget(n.id, 1)
		}
	}
}

// Lookup returns what is in n, which must be a directory, under a name, which must be neither "." nor "..".
func (n *Node) Lookup(ctx context.Context, name string) (*Node, error) {
	if len(name) > maxName {
		return nil, syscall.ENAMETOOLONG // as the kernel answers
	}
	header := n.fs.header(n.id)
	var out fuse.EntryOut
	err := n.fs.ask(ctx, func(gone <-chan struct{}) fuse.Status { return n.fs.raw.Lookup(gone, &header, name, &out) })
	if err != nil {
		return nil, err
	}
	if out.NodeId == 0 { // a name that is known to be absent
		return nil, syscall.ENOENT
	}
	return newNode(n, n.fs, out.NodeId, path.Join(n.path, name), out.Attr), nil
}

// maxName is the longest name that the kernel looks up, in bytes (FUSE_NAME_MAX).
const maxName = 1024

// Readlink returns the target of a link.
func (n *Node) Readlink(ctx context.Context) (string, error) {
	if n.attr.Mode&syscall.S_IFMT != syscall.S_IFLNK {
		return "", syscall.EINVAL
	}
	header := n.fs.header(n.id)
	var target []byte
	err := n.fs.ask(ctx, func(gone <-chan struct{}) (status fuse.Status) {
		target, status = n.fs.raw.Readlink(gone, &header)
		return status
	})
	return string(target), err
}
