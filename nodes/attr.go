package nodes

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/storage"
)

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
