package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// go-fuse finds the requests that are answered by these interfaces.
var (
	_ fusefs.NodeGetattrer  = (*inode)(nil)
	_ fusefs.NodeSetattrer  = (*inode)(nil)
	_ fusefs.NodeStatfser   = (*inode)(nil)
	_ fusefs.NodeOnAdder    = (*inode)(nil)
	_ fusefs.NodeReadlinker = (*linkInode)(nil)
)

// inode is the base of all inodes.
type inode struct{ fusefs.Inode }

// operations is implemented by each inode.
type operations interface {
	fusefs.InodeEmbedder
	node() nodes.Node
}

// newOperations returns the inode of a node. The inodes of entries and links are small, as there are
// most.
func newOperations(n nodes.Node) operations {
	switch n := n.(type) {
	case *nodes.EntryFile:
		return &entryInode{file: n}
	case *nodes.SourceFile:
		return &sourceInode{file: n}
	case nodes.Dir:
		return &dirInode{dir: n}
	case nodes.Link:
		return &linkInode{link: n}
	default:
		return &fileInode{file: n.(nodes.File)}
	}
}

// node returns the node of the inode.
func (i *inode) node() nodes.Node { return i.Operations().(operations).node() }

// door returns the door of the mount.
func (i *inode) door() *Door { return i.Root().Operations().(*rootInode).door }

// name returns the name of the inode in its directory.
func (i *inode) name() string {
	name, _ := i.Parent()
	return name
}

// cacheRule says how long the kernel may cache a name and its attributes
// (docs/design.md section 6).
type cacheRule struct{ entry, attr time.Duration }

// cacheRules are the rules of each stability of nodes.
var cacheRules = [...]cacheRule{
	nodes.Changing: {}, // each access asks the server
	// Each access looks up the name, and the kernel may use the attributes of the answer: a stat is
	// one request, not two.
	nodes.Relinked: {attr: time.Second},
	// As Relinked, but the kernel need not ask for the attributes before each read(2), which are
	// two of three requests of a grep.
	nodes.Growing: {attr: 10 * time.Millisecond},
	nodes.Fixed:   {entry: time.Second, attr: time.Second},
}

func ruleOf(n nodes.Node) cacheRule { return cacheRules[n.Stability()] }

// openedHandle is a handle of the kernel's that has one of a node.
type openedHandle interface {
	open() nodes.Handle
}

// Getattr returns the current attributes. A handle's version has attributes of its own only if the
// file has one version: the kernel asks for a name's attributes by any open handle.
func (i *inode) Getattr(ctx context.Context, fh fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n := i.node()
	var a nodes.Attr
	var err error
	opened, isOpened := fh.(openedHandle)
	if isOpened && !nodes.IsRendered(n) {
		a, err = nodes.StatVersion(ctx, n.(nodes.File), opened.open())
	} else {
		a, err = n.Stat(ctx)
	}
	if err != nil {
		return nodes.Stale(n, i.name(), "stat", err)
	}
	fill(&out.Attr, &a)
	out.SetTimeout(ruleOf(n).attr)
	return 0
}

// fill sets the attributes of an answer.
func fill(out *fuse.Attr, a *nodes.Attr) {
	out.Mode = typeBits(a.Kind) | a.Mode
	out.Size = uint64(a.Size)
	out.Nlink = 1 // of a directory it is unknown: find must not count directories by it
	out.Uid = a.UID
	out.Gid = a.GID
	out.SetTimes(&a.Modified, &a.Modified, &a.Changed)
}

// typeBits returns the file type bits of a mode.
func typeBits(k storage.Kind) uint32 {
	switch k {
	case storage.KindDir:
		return syscall.S_IFDIR
	case storage.KindLink:
		return syscall.S_IFLNK
	default:
		return syscall.S_IFREG
	}
}

// Setattr ignores a size and times for a writable file or link, and refuses all other changes.
func (i *inode) Setattr(
	ctx context.Context, _ fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut,
) syscall.Errno {
	var change nodes.AttrChange
	mode, hasMode := in.GetMode()
	if hasMode {
		change.Mode = &mode
	}
	uid, hasUID := in.GetUID()
	if hasUID {
		change.UID = &uid
	}
	gid, hasGID := in.GetGID()
	if hasGID {
		change.GID = &gid
	}
	n := i.node()
	a, errno := nodes.SetAttr(ctx, n, i.name(), change)
	if errno == 0 {
		fill(&out.Attr, &a)
		out.SetTimeout(ruleOf(n).attr)
	}
	return errno
}

// Statfs returns the numbers of the backing file system, zeros if they are unknown.
func (i *inode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	space := i.door().root.Space
	if space == nil {
		return 0
	}
	s, err := space()
	if err != nil {
		return nodes.Fail(i.node(), i.name(), "statfs", err)
	}
	*out = fuse.StatfsOut{
		Blocks:  s.Blocks,
		Bfree:   s.Free,
		Bavail:  s.Available,
		Files:   s.Files,
		Ffree:   s.FreeFiles,
		Bsize:   s.BlockSize,
		NameLen: syscall.NAME_MAX,
		Frsize:  s.FragmentSize,
	}
	return 0
}

func (i *inode) OnAdd(context.Context) { i.door().inodes.add() }

// linkInode is the inode of a symbolic link.
type linkInode struct {
	inode
	link nodes.Link
}

func (l *linkInode) node() nodes.Node { return l.link }

// Readlink answers READLINK with the target of now.
func (l *linkInode) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	target, err := l.link.Target(ctx)
	if err != nil {
		return nil, nodes.Stale(l.link, l.name(), "readlink", err)
	}
	return []byte(target), 0
}

// stableAttr returns an identity that is the same in every mount of the same tree: a hash of the
// parent's identity and the name (docs/design.md section 6). The second half of the hash is the
// generation: go-fuse identifies nodes by both, so that even names chosen to collide in the inode
// number are two files.
func stableAttr(parent fusefs.StableAttr, name string, kind storage.Kind) fusefs.StableAttr {
	var room [256 + 16]byte // for a name and two numbers, without an allocation
	path := binary.LittleEndian.AppendUint64(room[:0], parent.Ino)
	path = binary.LittleEndian.AppendUint64(path, parent.Gen)
	path = append(path, name...)
	sum := sha256.Sum256(path)
	ino := binary.LittleEndian.Uint64(sum[:])
	if ino <= 1 || ino == math.MaxUint64 {
		ino = 2 // 0, 1 and the largest number are reserved by the kernel or go-fuse
	}
	return fusefs.StableAttr{
		Mode: typeBits(kind),
		Ino:  ino,
		Gen:  binary.LittleEndian.Uint64(sum[8:]),
	}
}

// successors counts inodes of followers, to give each its own identity.
var successors atomic.Uint64

// standsFor reports whether a known inode of a name is good for a child with an identity and a content, so that
// the name needs no new inode.
func standsFor(ctx context.Context, known *fusefs.Inode, id fusefs.StableAttr, content uint64) bool {
	if known.StableAttr().Ino != id.Ino {
		return false
	}
	f, isFollower := nodeOf(known).(nodes.Follower)
	if isFollower && f.Follows() {
		return f.StandsFor(ctx, content)
	}
	return known.StableAttr() == id
}

// inodeOf returns the inode of a child: the known one, or a new one. If the open handles of a
// follower show another content than the name has now, the name gets a new inode, which is another
// file to the kernel. The handles may hold the only reference to the old inode, so a new one never
// has an earlier identity.
func (d *dirInode) inodeOf(ctx context.Context, name string, c *nodes.Child) *fusefs.Inode {
	id := stableAttr(d.StableAttr(), name, c.Kind)
	id.Gen ^= c.Content
	known := d.GetChild(name)
	if known != nil && standsFor(ctx, known, id, c.Content) {
		return known
	}
	n := c.Make()
	f, isFollower := n.(nodes.Follower)
	if isFollower && f.Follows() {
		const counterShift = 20 // any: the hash has random bits everywhere
		id.Gen ^= successors.Add(1) << counterShift
	}
	return d.NewInode(ctx, newOperations(n), id)
}

// nodeOf returns the node of an inode of go-fuse.
func nodeOf(i *fusefs.Inode) nodes.Node { return i.Operations().(operations).node() }
