package kernel

import (
	"sync/atomic"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes"
)

// Door answers the kernel for one mount.
type Door struct {
	root   *nodes.RootDir
	inode  *rootInode
	inodes inodeLimit
	long   longListings
	open   atomic.Int64 // files and directories that programs have open
	last   atomic.Int64 // when a program last looked for something, in nanoseconds since 1970
}

// rootInode is the inode of the root.
type rootInode struct {
	dirInode
	door *Door
}

// New returns a door to the nodes of a mount.
func New(root *nodes.RootDir) *Door {
	d := &Door{root: root}
	d.inode = &rootInode{dirInode{dir: root}, d}
	d.inodes.init(int(min(maxNodes, root.View().Memory.Size()/nodeShare)), atRest)
	d.last.Store(time.Now().UnixNano())
	return d
}

// FileSystem returns the file system that a server of FUSE serves.
func (d *Door) FileSystem() fuse.RawFileSystem {
	return &counted{d, fusefs.NewNodeFS(d.inode, &fusefs.Options{
		NullPermissions: true, // a mode of 0 is shown as it is
		RootStableAttr:  &fusefs.StableAttr{Ino: fuse.FUSE_ROOT_ID},
	})}
}

// Open returns how many files and directories programs have open.
func (d *Door) Open() int64 { return d.open.Load() }

// Last returns when a program last looked for something.
func (d *Door) Last() time.Time { return time.Unix(0, d.last.Load()) }

// opened counts a file that was opened with a status, which it returns.
func (d *Door) opened(status fuse.Status) fuse.Status {
	if status.Ok() {
		d.open.Add(1)
	}
	d.last.Store(time.Now().UnixNano())
	return status
}

// counted counts the files that programs have open, and notes each look-up: any other request comes
// behind one, or concerns an open file.
type counted struct {
	door *Door
	fuse.RawFileSystem
}

// Lookup implements fuse.RawFileSystem.
func (f *counted) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.door.last.Store(time.Now().UnixNano())
	return f.RawFileSystem.Lookup(cancel, header, name, out)
}

// Open counts an open file.
func (f *counted) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.door.opened(f.RawFileSystem.Open(cancel, in, out))
}

// OpenDir counts an open directory.
func (f *counted) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.door.opened(f.RawFileSystem.OpenDir(cancel, in, out))
}

// Release closes a file that Open has counted.
func (f *counted) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	f.RawFileSystem.Release(cancel, in)
	f.door.open.Add(-1)
}

// ReleaseDir closes a directory that OpenDir has counted.
func (f *counted) ReleaseDir(in *fuse.ReleaseIn) {
	f.RawFileSystem.ReleaseDir(in)
	f.door.open.Add(-1)
}
