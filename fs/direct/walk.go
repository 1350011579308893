package direct

import (
	"errors"
	iofs "io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// ErrLeadsOut means a link that leads out of the file system: to an absolute path, or above the root.
var ErrLeadsOut = errors.New("leads out of the file system")

const (
	// maxLinks bounds how many links a path may lead through, as in the kernel.
	maxLinks = 40
	// maxName is the longest name that the kernel looks up, in bytes (FUSE_NAME_MAX).
	maxName = 1024
	// listSize is how many bytes of a listing one request asks for, as the kernel does.
	listSize = 64 << 10
)

// node is a file, a directory or a link that was looked up.
type node struct {
	id   uint64
	name string
	attr fuse.Attr
}

// walker resolves a path. at holds the nodes from the root to where it stands; each is forgotten once.
type walker struct {
	fs    *FS
	at    []node
	links int
}

func (w *walker) last() *node { return &w.at[len(w.at)-1] }

// path returns the path to where it stands, without links but perhaps that.
func (w *walker) path() string {
	parts := []string{"."}
	for _, n := range w.at[1:] {
		parts = append(parts, n.name)
	}
	return path.Join(parts...)
}

func (w *walker) info() Info { return Info{w.last().name, w.last().attr} }

func (w *walker) kind() uint32 { return w.last().attr.Mode & syscall.S_IFMT }

// forget gives the nodes from index keep on back.
func (w *walker) forget(keep int) {
	for len(w.at) > keep {
		if id := w.last().id; id != fuse.FUSE_ROOT_ID {
			w.fs.raw.Forget(id, 1)
		}
		w.at = w.at[:len(w.at)-1]
	}
}

// walk goes on by a path, from the root at first; follow says that a link at its end is followed.
func (w *walker) walk(name string, follow bool) error {
	if len(w.at) == 0 {
		in := &fuse.GetAttrIn{InHeader: w.fs.header(fuse.FUSE_ROOT_ID)}
		var out fuse.AttrOut
		err := w.fs.ask(func(gone <-chan struct{}) fuse.Status { return w.fs.raw.GetAttr(gone, in, &out) })
		if err != nil {
			return err
		}
		w.at = []node{{fuse.FUSE_ROOT_ID, ".", out.Attr}}
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if err := w.step(part, follow || i+1 < len(parts)); err != nil {
			return err
		}
	}
	return nil
}

// step goes on by one part of a path. An empty part, as behind a slash at the end of a link's target, is as ".".
func (w *walker) step(part string, follow bool) error {
	switch {
	case w.kind() != syscall.S_IFDIR:
		return syscall.ENOTDIR
	case part == "" || part == ".":
		return nil
	case part == ".." && len(w.at) == 1:
		return ErrLeadsOut
	case part == "..":
		w.forget(len(w.at) - 1)
		return nil
	case len(part) > maxName:
		return syscall.ENAMETOOLONG
	}
	header := w.fs.header(w.last().id)
	var out fuse.EntryOut
	err := w.fs.ask(func(gone <-chan struct{}) fuse.Status { return w.fs.raw.Lookup(gone, &header, part, &out) })
	if err != nil {
		return err
	}
	if out.NodeId == 0 { // a name that is known to be absent
		return syscall.ENOENT
	}
	w.at = append(w.at, node{out.NodeId, part, out.Attr})
	if !follow || w.kind() != syscall.S_IFLNK {
		return nil
	}
	target, err := w.readlink()
	w.forget(len(w.at) - 1)
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

func (w *walker) readlink() (string, error) {
	if w.kind() != syscall.S_IFLNK {
		return "", syscall.EINVAL
	}
	header := w.fs.header(w.last().id)
	var target []byte
	err := w.fs.ask(func(gone <-chan struct{}) (status fuse.Status) {
		target, status = w.fs.raw.Readlink(gone, &header)
		return status
	})
	return string(target), err
}

// list returns what is in the directory where it stands, which has a name in fs, without "." and "..".
func (w *walker) list(dir string) (items []iofs.DirEntry, err error) {
	if w.kind() != syscall.S_IFDIR {
		return nil, syscall.ENOTDIR
	}
	fs := w.fs
	in := &fuse.OpenIn{InHeader: fs.header(w.last().id), Flags: syscall.O_RDONLY}
	var opened fuse.OpenOut
	if err = fs.ask(func(gone <-chan struct{}) fuse.Status { return fs.raw.OpenDir(gone, in, &opened) }); err != nil {
		return nil, err
	}
	defer fs.raw.ReleaseDir(&fuse.ReleaseIn{InHeader: in.InHeader, Fh: opened.Fh})
	buf := make([]byte, listSize)
	for offset := uint64(0); ; {
		read := &fuse.ReadIn{InHeader: in.InHeader, Fh: opened.Fh, Offset: offset, Size: listSize}
		out := fuse.NewDirEntryList(buf, offset)
		if err := fs.ask(func(gone <-chan struct{}) fuse.Status { return fs.raw.ReadDir(gone, read, out) }); err != nil {
			return nil, err
		}
		some, err := fuse.ParseDirEntries(out.Bytes())
		if err != nil || len(some) == 0 {
			return items, errors.Join(err, fs.ctx.Err())
		}
		for _, it := range some {
			offset = it.Off
			if it.Name != "." && it.Name != ".." {
				items = append(items, dirEntry{fs, dir, it.Name, typeOf(it.Mode)})
			}
		}
	}
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
	attr fuse.Attr
}

var _ = (iofs.FileInfo)(Info{})

// Name returns the last part of the path by which the node was looked up.
func (i Info) Name() string { return i.name }

// Size returns the size in bytes; of a link that of its target.
func (i Info) Size() int64 { return int64(i.attr.Size) }

// Mode returns type and permissions.
func (i Info) Mode() iofs.FileMode { return typeOf(i.attr.Mode) | iofs.FileMode(i.attr.Mode&0o777) }

// ModTime returns the time of the last change.
func (i Info) ModTime() time.Time { return time.Unix(int64(i.attr.Mtime), int64(i.attr.Mtimensec)) }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.Mode().IsDir() }

// Sys returns a *syscall.Stat_t with user and group, as tar.FileInfoHeader wants it.
func (i Info) Sys() any { return &syscall.Stat_t{Uid: i.attr.Uid, Gid: i.attr.Gid} }

// typeOf returns the type in a mode of the system.
func typeOf(mode uint32) iofs.FileMode {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return iofs.ModeDir
	case syscall.S_IFLNK:
		return iofs.ModeSymlink
	case syscall.S_IFREG:
		return 0
	}
	return iofs.ModeIrregular
}
