package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/storage"
)

// node is the base of all nodes.
type node struct {
	fusefs.Inode
	view *View
}

// path returns the path in the mount of the node, or of a name in it.
func (n *node) path(name ...string) string {
	return strings.Join(append([]string{n.Path(nil)}, name...), "/")
}

// attributer is every node: it fills in its attributes, for Lookup, Getattr and Setattr alike.
type attributer interface {
	fusefs.InodeEmbedder
	// fillAttr sets the current mode, owner, size and times.
	fillAttr(ctx context.Context, out *fuse.Attr) error
	// cache returns how long the kernel may remember the name and the attributes.
	cache() cacheRule
}

// cache is that of most files and links.
func (n *node) cache() cacheRule { return cacheNever }

// cacheRule is what the kernel may remember (docs/design.md section 6).
type cacheRule struct{ entry, attr time.Duration }

var (
	// cacheNever: each access asks the server.
	cacheNever = cacheRule{}
	// cacheAttr: each access looks up the name, and the kernel may use the attributes of the answer: a stat is
	// one request, not two. For links to sessions.
	cacheAttr = cacheRule{attr: time.Second}
	// cacheMoment is cacheAttr for files that are read through the kernel's pages and that an open file sees grow.
	cacheMoment = cacheRule{attr: 10 * time.Millisecond}
	// cacheSecond: directories, links whose target cannot change, entries.
	cacheSecond = cacheRule{entry: time.Second, attr: time.Second}
)

var _ = (fusefs.NodeGetattrer)((*node)(nil))

// Getattr returns the attributes as they are now.
func (n *node) Getattr(ctx context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	a := n.Operations().(attributer)
	if err := a.fillAttr(ctx, &out.Attr); err != nil {
		return n.fail("stat", staleIfGone(err))
	}
	out.SetTimeout(a.cache().attr)
	return 0
}

// Statfs returns the numbers of the backing file system.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	if err := n.view.whole().Statfs(out); err != nil {
		return n.fail("statfs", err)
	}
	return 0
}

// Setattr is refused, except by control files and leaf, which override it.
func (n *node) Setattr(context.Context, fusefs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return n.denyWrite("setattr")
}

// keepAttr is Setattr for what can be written: it changes nothing, and refuses a mode or an owner that is not the one that
// there is. The log has that, but not last-error, which is about lines.
func (n *node) keepAttr(ctx context.Context, fh fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if n.view.Frozen != nil {
		return n.denyWrite("setattr")
	}
	if errno := n.Getattr(ctx, fh, out); errno != 0 {
		return errno
	}
	mode, setsMode := in.GetMode()
	uid, setsUID := in.GetUID()
	gid, setsGID := in.GetGID()
	if setsMode && mode&07777 != out.Mode&07777 || setsUID && uid != out.Uid || setsGID && gid != out.Gid {
		n.view.Log.Info("refused", "op", "setattr", "path", n.path(), "errno", syscall.EPERM, "why", errDenied)
		return syscall.EPERM
	}
	return 0
}

// go-fuse allows removals by default; in directories all changes are refused (docs/design.md section 7).

// Create is refused.
func (d *directory) Create(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, d.denyWrite("create", name)
}

// Mkdir is refused.
func (d *directory) Mkdir(_ context.Context, name string, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("mkdir", name)
}

// Mknod is refused.
func (d *directory) Mknod(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("mknod", name)
}

// Symlink is refused.
func (d *directory) Symlink(_ context.Context, _, name string, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("symlink", name)
}

// Link is refused.
func (d *directory) Link(_ context.Context, _ fusefs.InodeEmbedder, name string, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("link", name)
}

// Unlink is refused.
func (d *directory) Unlink(_ context.Context, name string) syscall.Errno {
	return d.denyWrite("unlink", name)
}

// Rmdir is refused.
func (d *directory) Rmdir(_ context.Context, name string) syscall.Errno {
	return d.denyWrite("rmdir", name)
}

// Rename is refused.
func (d *directory) Rename(_ context.Context, name string, _ fusefs.InodeEmbedder, _ string, _ uint32) syscall.Errno {
	return d.denyWrite("rename", name)
}

// Fsync has nothing to do: nothing is written.
func (d *directory) Fsync(context.Context, fusefs.FileHandle, uint32) syscall.Errno { return 0 }

// Modes and owners mirror the backing file: a user who may not read a session may not read a part of it (docs/design.md
// section 8). A file that refuses writes has no write bits. Directories keep those of the backing file or directory,
// though nothing can be created in most of them: a copy gets the modes of the original, and an ordinary user can
// remove nothing from a directory without write bits.

// Permission bits.
const (
	readBits  = 0o444
	writeBits = 0o222
	dirBits   = 0o777
)

// fillFile sets the attributes of a file of that size, in bytes, that shows a part of the backing file st and refuses
// writes.
func fillFile(out *fuse.Attr, st storage.Stat, size int64) {
	out.Mode = syscall.S_IFREG | st.Mode&readBits
	out.Size = uint64(size)
	out.Nlink = 1
	fillOwner(out, st)
	fillTimes(out, st.ModTime(), time.Unix(0, st.Changed))
}

// fillWritable is fillFile for a file that can be written, unless the mount is read-only.
func (n *node) fillWritable(out *fuse.Attr, st storage.Stat, size int64) {
	fillFile(out, st, size)
	if !n.view.ReadOnly {
		out.Mode |= st.Mode & writeBits
	}
}

// fillDir sets the attributes of a directory that shows the backing file or directory st. In a read-only mount it has
// no write bits.
func (n *node) fillDir(out *fuse.Attr, st storage.Stat) {
	mode := st.Mode & dirBits
	if st.Kind != storage.KindDir {
		mode |= mode & readBits >> 2 // whoever may read the file may search the directory
	}
	if n.view.ReadOnly {
		mode &^= writeBits
	}
	out.Mode = syscall.S_IFDIR | mode
	out.Nlink = 1 // unknown: find must not count directories by it
	fillOwner(out, st)
	fillTimes(out, st.ModTime(), time.Unix(0, st.Changed))
}

// fillPrivate sets the attributes of a generated directory or file that shows parts of all sessions or what somebody
// typed. Only the owner of what is behind it may access it: the session files may be less open than that.
func (n *node) fillPrivate(out *fuse.Attr, st storage.Stat, kind uint32, size int64) {
	if kind == syscall.S_IFDIR {
		n.fillDir(out, st)
	} else {
		fillFile(out, st, size)
	}
	out.Mode &^= 0o077
}

func fillOwner(out *fuse.Attr, st storage.Stat) {
	out.Uid, out.Gid = st.UID, st.GID
}

func fillTimes(out *fuse.Attr, modified, changed time.Time) {
	out.SetTimes(&modified, &modified, &changed)
}

// writes reports whether open flags ask for more than reading.
func writes(flags uint32) bool {
	return flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
}

// forReading are the flags of every handle that is only read: the kernel need not send FLUSH, which saves
// a round trip for each close.
const forReading = fuse.FOPEN_NOFLUSH

// readAt reads from r; a read at the end is short.
func readAt(r io.ReaderAt, dest []byte, off int64, n *node) (fuse.ReadResult, syscall.Errno) {
	got, err := r.ReadAt(dest, off)
	if err != nil && err != io.EOF {
		return nil, n.fail("read", err)
	}
	return readBytes(dest[:got]), 0
}

// readBytes returns the result of a read from memory. A vector is sent to the kernel by one writev; for a plain slice
// go-fuse first tries a pipe, which takes three more system calls.
func readBytes(p []byte) fuse.ReadResult { return fuse.ReadResultVector([][]byte{p}) }

// stableAttr returns an identity that is the same in every mount of the same tree: a hash of the
// parent's identity and the name (docs/design.md section 6). The second half of the hash is
// the generation: go-fuse takes two nodes for one only if both are equal, so that even names chosen to collide
// in the inode number are two files.
func stableAttr(parent fusefs.StableAttr, name string, mode uint32) fusefs.StableAttr {
	var buf [256 + 16]byte
	b := binary.LittleEndian.AppendUint64(buf[:0], parent.Ino)
	b = binary.LittleEndian.AppendUint64(b, parent.Gen)
	b = append(b, name...)
	sum := sha256.Sum256(b)
	ino := binary.LittleEndian.Uint64(sum[:])
	if ino <= 1 || ino == math.MaxUint64 {
		ino = 2 // 0, 1 and the largest number are reserved by the kernel or go-fuse
	}
	return fusefs.StableAttr{Mode: mode, Ino: ino, Gen: binary.LittleEndian.Uint64(sum[8:])}
}
