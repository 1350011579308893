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
	d.inode = &rootInode{
		dirInode: dirInode{dir: root},
		door:     d,
	}
	share := root.View().Memory.Size() / nodeShare
	d.inodes.init(int(min(maxNodes, share)), pruneRest)
	d.last.Store(time.Now().UnixNano())
	return d
}

// FileSystem returns the file system that a server of FUSE serves.
func (d *Door) FileSystem() fuse.RawFileSystem {
	return fusefs.NewNodeFS(d.inode, &fusefs.Options{
		NullPermissions: true, // a mode of 0 is shown as it is
		RootStableAttr:  &fusefs.StableAttr{Ino: fuse.FUSE_ROOT_ID},
	})
}

// Open returns the number of files and directories that programs have open.
func (d *Door) Open() int64 { return d.open.Load() }

// Last returns the time of the last lookup or open. Any other request follows one, or concerns an
// open file.
func (d *Door) Last() time.Time { return time.Unix(0, d.last.Load()) }

// countRequest notes the time of a lookup or open.
func (d *Door) countRequest() { d.last.Store(time.Now().UnixNano()) }
