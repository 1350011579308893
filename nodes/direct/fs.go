package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// FS is a file system. It is safe for concurrent use.
type FS struct {
	ctx  context.Context
	root nodes.Dir
	log  *slog.Logger
}

var (
	_ = (iofs.ReadLinkFS)((*FS)(nil))
	_ = (iofs.ReadDirFS)((*FS)(nil))
	_ = (iofs.StatFS)((*FS)(nil))
	_ = (iofs.GlobFS)((*FS)(nil))
)

// New returns the file system of the nodes below root.
func New(root nodes.Dir, log *slog.Logger) *FS {
	return &FS{
		ctx:  context.Background(),
		root: root,
		log:  log,
	}
}

// With returns the file system with requests that end when ctx is done.
func (f *FS) With(ctx context.Context) *FS {
	return &FS{
		ctx:  ctx,
		root: f.root,
		log:  f.log,
	}
}

// Lstat returns the attributes of a path.
func (f *FS) Lstat(name string) (info iofs.FileInfo, err error) {
	err = f.at("lstat", name, false, func(w *walker) error {
		info = w.last().NodeInfo
		return nil
	})
	return info, err
}

// Stat is Lstat, but follows a link.
func (f *FS) Stat(name string) (info iofs.FileInfo, err error) {
	err = f.at("stat", name, true, func(w *walker) error {
		info = w.last().NodeInfo
		return nil
	})
	return info, err
}

// ReadLink returns the target of a link.
func (f *FS) ReadLink(name string) (target string, err error) {
	err = f.at("readlink", name, false, func(w *walker) error {
		target, err = w.readlink()
		return err
	})
	return target, err
}

// Resolve returns the path of the file that a name leads to, without links.
func (f *FS) Resolve(name string) (resolved string, err error) {
	err = f.at("resolve", name, true, func(w *walker) error {
		resolved = w.path()
		return nil
	})
	return resolved, err
}

// Open opens a file for reading, as a *File.
func (f *FS) Open(name string) (file iofs.File, err error) {
	err = f.at("open", name, true, func(w *walker) error {
		opened, err := w.open(os.O_RDONLY)
		if err == nil {
			file = opened
		}
		return err
	})
	return file, err
}

// ReadDir lists a directory, or the one behind a link, in the order of names.
func (f *FS) ReadDir(name string) (items []iofs.DirEntry, err error) {
	err = f.at("readdir", name, true, func(w *walker) error {
		dir, isDir := w.last().node.(nodes.Dir)
		if !isDir {
			return syscall.ENOTDIR
		}
		items, err = f.list(dir, name)
		return err
	})
	slices.SortFunc(items, func(a, b iofs.DirEntry) int {
		return cmp.Compare(a.Name(), b.Name())
	})
	return items, err
}

// list lists the directory at the path name, in the order of the directory.
func (f *FS) list(dir nodes.Dir, name string) (items []iofs.DirEntry, err error) {
	errno := nodes.OpenDir(f.ctx, dir)
	if errno != 0 {
		return nil, errno
	}
	list, errno := nodes.ListDir(f.ctx, dir)
	defer list.Close()
	for _, it := range list.Items {
		items = append(items, dirEntry{
			fs:   f,
			dir:  name,
			name: it.Name,
			kind: typeOf(it.Kind),
		})
	}
	return items, errorOf(errno)
}

// Glob returns the paths that match a pattern, sorted in each directory, like a shell: names with a
// leading dot only if that part of the pattern has one. It looks up parts without *, ? and [ ], so
// that unlisted names are found. The error is one of the pattern, or of the context; files that cannot be read
// match nothing.
func (f *FS) Glob(pattern string) ([]string, error) {
	_, err := path.Match(pattern, "")
	if err != nil {
		return nil, err
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		_, err := f.Lstat(pattern)
		if err != nil {
			return nil, f.ctx.Err()
		}
		return []string{pattern}, nil
	}
	above, part := path.Split(pattern)
	dirs, err := f.Glob(path.Clean(above))
	var found []string
	for _, dir := range dirs {
		matches := f.globIn(dir, part)
		found = append(found, matches...)
	}
	if err == nil {
		err = f.ctx.Err()
	}
	return found, err
}

// globIn returns the paths in a directory that match a part of a pattern; none if dir is no directory, or cannot
// be read.
func (f *FS) globIn(dir, part string) (found []string) {
	if !strings.ContainsAny(part, `*?[\`) {
		child := path.Join(dir, part)
		_, err := f.Lstat(child)
		if err != nil {
			return nil
		}
		return []string{child}
	}
	items, _ := f.ReadDir(dir) // other files have no items
	for _, it := range items {
		name := it.Name()
		if name[0] == '.' && part[0] != '.' {
			continue
		}
		matches, _ := path.Match(part, name)
		if matches {
			found = append(found, path.Join(dir, name))
		}
	}
	return found
}

// maxStale bounds the lookups of a path if its node has changed meanwhile. The kernel repeats one.
const maxStale = 4

// at calls do with a walker at the end of the path name; with follow it follows a link there. It repeats both if
// do returns ESTALE, so do may be called several times. op is for the error.
func (f *FS) at(op, name string, follow bool, do func(*walker) error) (err error) {
	defer f.answer(op, name, &err)
	if name == ".." || strings.HasPrefix(name, "../") {
		return ErrLeadsOut
	}
	if !iofs.ValidPath(strings.ToValidUTF8(name, "?")) { // names need not be UTF-8
		return iofs.ErrInvalid
	}
	for range maxStale {
		err = f.once(name, follow, do)
		if err != syscall.ESTALE {
			break
		}
	}
	return err
}

// once is at without the repetition and the checks of the path.
func (f *FS) once(name string, follow bool, do func(*walker) error) error {
	attr, err := f.root.Stat(f.ctx)
	if err != nil {
		return errorOf(nodes.Stale(f.root, "", "stat", err))
	}
	root := namedNode{
		NodeInfo: NodeInfo{name: ".", attr: attr},
		node:     f.root,
	}
	w := &walker{fs: f, at: []namedNode{root}}
	err = w.walk(name, follow)
	if err != nil {
		return err
	}
	return do(w)
}

// answer converts *err for the caller: to a PathError, with the cause of the context in place of EINTR. It must be
// deferred. A panic is logged and becomes EIO, as in a mount, so that one bad session ends no command over all
// sessions.
func (f *FS) answer(op, name string, err *error) {
	reason := recover()
	if reason != nil {
		f.log.Error("a bug: a request panicked", "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
		*err = syscall.EIO
	}
	if *err == syscall.EINTR && f.ctx.Err() != nil {
		*err = context.Cause(f.ctx)
	}
	_, hasPath := errors.AsType[*iofs.PathError](*err)
	if *err != nil && !hasPath {
		*err = &iofs.PathError{Op: op, Path: name, Err: *err}
	}
}

// errorOf returns nil for an errno of 0.
func errorOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

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
	NodeInfo
	node nodes.Node
}

// walker resolves a path. at holds the nodes from the root to the current one.
type walker struct {
	fs    *FS
	at    []namedNode
	links int
}

func (w *walker) last() *namedNode { return &w.at[len(w.at)-1] }

// path returns the path of the current node. Only its last part may be a link.
func (w *walker) path() string {
	parts := []string{"."}
	for _, n := range w.at[1:] {
		parts = append(parts, n.name)
	}
	return path.Join(parts...)
}

// walk follows a path from the current node; follow includes a link at its end. After an error the walker is at
// any node.
func (w *walker) walk(name string, follow bool) error {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		isLast := i == len(parts)-1
		err := w.step(part, follow || !isLast)
		if err != nil {
			return err
		}
	}
	return nil
}

// step follows one part of a path, and with follow a link that has the name. An empty part, as after a final
// slash, is like ".".
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
	w.at = w.at[:len(w.at)-1] // back to the directory, where the target begins
	w.links++
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(target, "/"):
		return ErrLeadsOut
	case w.links > maxLinks:
		return syscall.ELOOP
	}
	return w.walk(target, true)
}

// lookUp finds the node of a name in a directory.
func lookUp(ctx context.Context, dir nodes.Dir, name string) (n namedNode, errno syscall.Errno) {
	state, err := nodes.NewDirState(ctx, dir)
	if err != nil {
		return n, nodes.NoName(dir, name, err)
	}
	defer state.Close()
	child, errno := state.Find(ctx, nodes.Named(name))
	if errno != 0 {
		return n, errno
	}
	n.name = name
	n.node = child.Make()
	n.attr, errno = state.Attr(ctx, name, &child, n.node)
	return n, errno
}

// readlink returns the target of the walk's current node, a link.
func (w *walker) readlink() (string, error) {
	link, isLink := w.last().node.(nodes.Link)
	if !isLink {
		return "", syscall.EINVAL
	}
	target, err := link.Target(w.fs.ctx)
	return target, errorOf(nodes.Stale(link, w.last().name, "readlink", err))
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

// NodeInfo holds the attributes of a node at the time of its lookup.
type NodeInfo struct {
	name string
	attr nodes.Attr
}

func (i NodeInfo) Name() string { return i.name }

// Size returns the size in bytes; for a link, of its target.
func (i NodeInfo) Size() int64 { return i.attr.Size }

func (i NodeInfo) Mode() iofs.FileMode {
	return typeOf(i.attr.Kind) | iofs.FileMode(i.attr.Mode)&iofs.ModePerm
}

func (i NodeInfo) ModTime() time.Time { return i.attr.Modified.Local() }

func (i NodeInfo) IsDir() bool { return i.attr.Kind == storage.KindDir }

// Sys returns a *syscall.Stat_t with user and group, as tar.FileInfoHeader wants it.
func (i NodeInfo) Sys() any { return &syscall.Stat_t{Uid: i.attr.UID, Gid: i.attr.GID} }

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
