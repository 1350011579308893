package direct

import (
	"context"
	"errors"
	iofs "io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// ErrLeadsOut means that a link leads to an absolute path, or above the root.
var ErrLeadsOut = errors.New("leads out of the file system")

const (
	// maxLinks bounds the links on a path, as in the kernel.
	maxLinks = 40
	// maxName is the longest name of a lookup in bytes, as in the kernel (FUSE_NAME_MAX).
	maxName = 1024
)

// namedNode is a node that was looked up.
type namedNode struct {
	node nodes.Node
	name string
	attr nodes.Attr
}

func (n *namedNode) info() Info { return Info{n.name, n.attr} }

// stat sets the attributes to the result of get.
func (n *namedNode) stat(ctx context.Context, get func(context.Context) (nodes.Attr, error)) (err error) {
	n.attr, err = get(ctx)
	return errorOf(nodes.Stale(n.node, n.name, "stat", err))
}

// walker resolves a path. at holds the nodes from the root to the current one.
type walker struct {
	fs    *FS
	at    []namedNode
	links int
}

func (w *walker) last() *namedNode { return &w.at[len(w.at)-1] }

// path returns the path of the current node, in which only the last part may be a link.
func (w *walker) path() string {
	parts := []string{"."}
	for _, n := range w.at[1:] {
		parts = append(parts, n.name)
	}
	return path.Join(parts...)
}

// walk follows a path from the current node, at first the root; follow includes a link at its end.
func (w *walker) walk(name string, follow bool) error {
	if len(w.at) == 0 {
		w.at = []namedNode{{node: w.fs.root, name: "."}}
		if err := w.last().stat(w.fs.ctx, w.fs.root.Stat); err != nil {
			return err
		}
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if err := w.step(part, follow || i+1 < len(parts)); err != nil {
			return err
		}
	}
	return nil
}

// step follows one part of a path. An empty part, as after a final slash, is like ".".
func (w *walker) step(part string, follow bool) error {
	dir, isDir := w.last().node.(nodes.Dir)
	switch {
	case !isDir:
		return syscall.ENOTDIR
	case part == "" || part == ".":
		return nil
	case part == ".." && len(w.at) == 1:
		return ErrLeadsOut
	case part == "..":
		w.at = w.at[:len(w.at)-1]
		return nil
	case len(part) > maxName:
		return syscall.ENAMETOOLONG
	}
	found, errno := lookUp(w.fs.ctx, dir, part)
	if errno != 0 {
		return errno
	}
	w.at = append(w.at, found)
	if !follow || found.attr.Kind != storage.KindLink {
		return nil
	}
	target, err := w.readlink()
	w.at = w.at[:len(w.at)-1]
	w.links++
	switch {
	case err != nil:
		return err
	case target == "":
		return syscall.ENOENT
	case strings.HasPrefix(target, "/"):
		return ErrLeadsOut
	case w.links > maxLinks:
		return syscall.ELOOP
	}
	return w.walk(target, true)
}

// lookUp finds the node of a name in a directory.
func lookUp(ctx context.Context, dir nodes.Dir, name string) (n namedNode, errno syscall.Errno) {
	look, err := nodes.NewLook(ctx, dir)
	if err != nil {
		return n, nodes.NoName(dir, name, err)
	}
	defer look.Close()
	child, errno := look.Find(ctx, nodes.Named(name))
	if errno != 0 {
		return n, errno
	}
	n = namedNode{node: child.Make(), name: name}
	n.attr, errno = look.Attr(ctx, name, &child, n.node)
	return n, errno
}

func (w *walker) readlink() (string, error) {
	link, ok := w.last().node.(nodes.Link)
	if !ok {
		return "", syscall.EINVAL
	}
	target, err := link.Target(w.fs.ctx)
	return target, errorOf(nodes.Stale(link, w.last().name, "readlink", err))
}

// list returns the names in the current directory, whose name in fs is given.
func (w *walker) list(name string) (items []iofs.DirEntry, err error) {
	dir, ok := w.last().node.(nodes.Dir)
	if !ok {
		return nil, syscall.ENOTDIR
	}
	if errno := nodes.OpenDir(w.fs.ctx, dir); errno != 0 {
		return nil, errno
	}
	list, errno := nodes.ListDir(w.fs.ctx, dir)
	defer list.Close()
	for _, it := range list.Items {
		items = append(items, dirEntry{w.fs, name, it.Name, typeOf(it.Kind)})
	}
	return items, errorOf(errno)
}

// dirEntry is a name in a directory. Only Info looks the name up.
type dirEntry struct {
	fs        *FS
	dir, name string
	kind      iofs.FileMode
}

func (d dirEntry) Name() string                 { return d.name }
func (d dirEntry) IsDir() bool                  { return d.kind.IsDir() }
func (d dirEntry) Type() iofs.FileMode          { return d.kind }
func (d dirEntry) Info() (iofs.FileInfo, error) { return d.fs.Lstat(path.Join(d.dir, d.name)) }

// Info holds the attributes of a node at the time of its lookup.
type Info struct {
	name string
	attr nodes.Attr
}

var _ = (iofs.FileInfo)(Info{})

// Name returns the last part of the path by which the node was looked up.
func (i Info) Name() string { return i.name }

// Size returns the size in bytes; for a link, of its target.
func (i Info) Size() int64 { return i.attr.Size }

// Mode returns type and permissions.
func (i Info) Mode() iofs.FileMode {
	return typeOf(i.attr.Kind) | iofs.FileMode(i.attr.Mode)&iofs.ModePerm
}

// ModTime returns the time of the last change.
func (i Info) ModTime() time.Time { return i.attr.Modified.Local() }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.attr.Kind == storage.KindDir }

// Sys returns a *syscall.Stat_t with user and group, as tar.FileInfoHeader wants it.
func (i Info) Sys() any { return &syscall.Stat_t{Uid: i.attr.UID, Gid: i.attr.GID} }

// typeOf returns the type bits of a kind of node.
func typeOf(k storage.Kind) iofs.FileMode {
	switch k {
	case storage.KindDir:
		return iofs.ModeDir
	case storage.KindLink:
		return iofs.ModeSymlink
	default:
		return 0
	}
}
