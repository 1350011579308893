package direct

import (
	iofs "io/fs"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Info are the attributes of a node.
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

// Sys returns the attributes as a *fuse.Attr.
func (i Info) Sys() any { return &i.attr }

// Owner returns user and group.
func (i Info) Owner() (uid, gid uint32) { return i.attr.Uid, i.attr.Gid }

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
