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

// ErrLeadsOut means a link that leads out of the file system: to an absolute path, or above the root.
var ErrLeadsOut = errors.New("leads out of the file system")

const (
	// maxLinks bounds how many links a path may lead through, as in the kernel.
	maxLinks = 40
	// maxName is the longest name that is looked up, in bytes, as in the kernel (FUSE_NAME_MAX).
	maxName = 1024
)

// namedNode is a node that was looked up.
type namedNode struct {
	node nodes.Node
	name string
	attr nodes.Attr
}

// walker resolves a path. at holds the nodes from the root to where it stands.
type walker struct {
	fs    *FS
	at    []namedNode
	links int
}

func (w *walker) last() *namedNode { return &w.at[len(w.at)-1] }

// path returns the path to where it stands, without links but perhaps that.
func (w *walker) path() string {
	parts := []string{"."}
	for _, n := range w.at[1:] {
		parts = append(parts, n.name)
	}
	return path.Join(parts...)
}

func (w *walker) info() Info { return Info{w.last().name, w.last().attr} }

// walk goes on by a path, from the root at first; follow says that a link at its end is followed.
func (w *walker) walk(name string, follow bool) error {
	if len(w.at) == 0 {
		root := namedNode{node: w.fs.root, name: "."}
		if err := w.fs.ask(func(ctx context.Context) (errno syscall.Errno) {
			root.attr, errno = stat(ctx, root.node.Stat, root.node, "")
			return errno
		}); err != nil {
			return err
		}
		w.at = []namedNode{root}
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if err := w.step(part, follow || i+1 < len(parts)); err != nil {
			return err
		}
	}
	return nil
}

// stat returns the attributes of a node, of which name is that of a file or a link.
func stat(
	ctx context.Context, of func(context.Context) (nodes.Attr, error), n nodes.Node, name string,
) (nodes.Attr, syscall.Errno) {
	a, err := of(ctx)
	return a, nodes.Stale(n, name, "stat", err)
}

// step goes on by one part of a path. An empty part, as behind a slash at the end of a link's target, is as ".".
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
	found := namedNode{name: part}
	if err := w.fs.ask(func(ctx context.Context) syscall.Errno { return found.lookUp(ctx, dir) }); err != nil {
		return err
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

// lookUp finds the node of the name in a directory.
func (n *namedNode) lookUp(ctx context.Context, dir nodes.Dir) syscall.Errno {
	look, err := nodes.NewLook(ctx, dir)
	if err != nil {
		return nodes.NoName(dir, n.name, err)
	}
	defer look.Close()
	child, errno := look.Find(ctx, nodes.Named(n.name))
	if errno == 0 {
		n.node = child.Make()
		n.attr, errno = look.Attr(ctx, n.name, &child, n.node)
	}
	return errno
}

func (w *walker) readlink() (target string, err error) {
	link, ok := w.last().node.(nodes.Link)
	if !ok {
		return "", syscall.EINVAL
	}
	err = w.fs.ask(func(ctx context.Context) syscall.Errno {
		var err error
		target, err = link.Target(ctx)
		return nodes.Stale(link, w.last().name, "readlink", err)
	})
	return target, err
}

// list returns the names in the directory where it stands, which has a name in fs.
func (w *walker) list(name string) (items []iofs.DirEntry, err error) {
	dir, ok := w.last().node.(nodes.Dir)
	if !ok {
		return nil, syscall.ENOTDIR
	}
	err = w.fs.ask(func(ctx context.Context) syscall.Errno {
		if errno := nodes.OpenDir(ctx, dir); errno != 0 {
			return errno
		}
		list, errno := nodes.ListDir(ctx, dir)
		defer list.Close()
		for _, it := range list.Items {
			items = append(items, dirEntry{w.fs, name, it.Name, typeOf(it.Kind)})
		}
		return errno
	})
	return items, err
}

// dirEntry is a name in a directory. Only Info looks it up.
type dirEntry struct {
	fs        *FS
	dir, name string
	kind      iofs.FileMode
}

func (d dirEntry) Name() string                 { return d.name }
func (d dirEntry) IsDir() bool                  { return d.kind.IsDir() }
func (d dirEntry) Type() iofs.FileMode          { return d.kind }
func (d dirEntry) Info() (iofs.FileInfo, error) { return d.fs.Lstat(path.Join(d.dir, d.name)) }

// Info are the attributes of a node at the time when it was looked up.
type Info struct {
	name string
	attr nodes.Attr
}

var _ = (iofs.FileInfo)(Info{})

// Name returns the last part of the path by which the node was looked up.
func (i Info) Name() string { return i.name }

// Size returns the size in bytes; of a link that of its target.
func (i Info) Size() int64 { return i.attr.Size }

// Mode returns type and permissions.
func (i Info) Mode() iofs.FileMode { return typeOf(i.attr.Kind) | iofs.FileMode(i.attr.Mode&0o777) }

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
