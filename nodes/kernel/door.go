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
	last   atomic.Int64 // time of the last request, in nanoseconds since 1970
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
	d.inodes.init(int(min(maxNodes, root.View().Memory.Size()/nodeShare)), pruneRest)
	d.last.Store(time.Now().UnixNano())
	return d
}

// FileSystem returns the file system that a server of FUSE serves.
func (d *Door) FileSystem() fuse.RawFileSystem {
	return &countingFS{d, fusefs.NewNodeFS(d.inode, &fusefs.Options{
		NullPermissions: true, // a mode of 0 is shown as it is
		RootStableAttr:  &fusefs.StableAttr{Ino: fuse.FUSE_ROOT_ID},
	})}
}

// Open returns the number of files and directories that programs have open.
func (d *Door) Open() int64 { return d.open.Load() }

// Last returns the time of the last lookup or open.
func (d *Door) Last() time.Time { return time.Unix(0, d.last.Load()) }

// countOpen counts a file that was opened with a status, which it returns.
func (d *Door) countOpen(status fuse.Status) fuse.Status {
	if status.Ok() {
		d.open.Add(1)
	}
	d.last.Store(time.Now().UnixNano())
	return status
}

// countingFS counts the files that programs have open, and records each lookup: any other request
// follows one, or concerns an open file.
type countingFS struct {
	door *Door
	fuse.RawFileSystem
}

// Lookup implements fuse.RawFileSystem.
func (f *countingFS) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.door.last.Store(time.Now().UnixNano())
	return f.RawFileSystem.Lookup(cancel, in, name, out)
}

// Open counts an open file.
func (f *countingFS) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.door.countOpen(f.RawFileSystem.Open(cancel, in, out))
}

// OpenDir counts an open directory.
func (f *countingFS) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.door.countOpen(f.RawFileSystem.OpenDir(cancel, in, out))
}

// Release closes a file that Open has counted.
func (f *countingFS) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	f.RawFileSystem.Release(cancel, in)
	f.door.open.Add(-1)
}

// ReleaseDir closes a directory that OpenDir has counted.
func (f *countingFS) ReleaseDir(in *fuse.ReleaseIn) {
	f.RawFileSystem.ReleaseDir(in)
	f.door.open.Add(-1)
}
