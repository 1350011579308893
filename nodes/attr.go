package nodes

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Modes and owners mirror the backing file: who may not read a session may not read a part of it (docs/design.md
// section 8). A file that refuses writing has no bits for it. Directories have those of the backing file or directory,
// though in most of them nothing can be made: copies are made with the modes of what they are copies of, and an ordinary
// user can remove nothing from a copied directory that has none.

// The bits of a mode.
const (
	readBits  = 0o444
	writeBits = 0o222
	dirBits   = 0o777
)

// fillFile sets the attributes of a file that shows a part of the backing file st and refuses writing, size in bytes.
func fillFile(out *fuse.Attr, st storage.Stat, size int64) {
	out.Mode = syscall.S_IFREG | st.Mode&readBits
	out.Size = uint64(size)
	out.Nlink = 1
	fillOwner(out, st)
	fillTimes(out, st.ModTime(), time.Unix(0, st.Changed))
}

// fillWritable is fillFile for a file that takes writing, unless the mount takes none.
func (n *node) fillWritable(out *fuse.Attr, st storage.Stat, size int64) {
	fillFile(out, st, size)
	if !n.view.ReadOnly {
		out.Mode |= st.Mode & writeBits
	}
}

// fillDir sets the attributes of a directory that shows the backing file or directory st. In a mount that takes no
// writing nothing says otherwise.
func (n *node) fillDir(out *fuse.Attr, st storage.Stat) {
	mode := st.Mode & dirBits
	if st.Kind != storage.KindDir {
		mode |= mode & readBits >> 2 // who may read a file may walk what it is shown as
	}
	if n.view.ReadOnly {
		mode &^= writeBits
	}
	out.Mode = syscall.S_IFDIR | mode
	out.Nlink = 1 // unknown: find must not count directories by it
	fillOwner(out, st)
	fillTimes(out, st.ModTime(), time.Unix(0, st.Changed))
}

// fillPrivate sets the attributes of a generated directory or file that tells of all sessions: it belongs
// to the owner of the directory of them, and to nobody else, since it shows what is in files that may be
// less open than the directory is.
func (n *node) fillPrivate(out *fuse.Attr, st storage.Stat, kind uint32, size int64) {
	if kind == syscall.S_IFDIR {
		n.fillDir(out, st)
	} else {
		fillFile(out, st, size)
	}
	out.Mode &^= 0o077
}

// fillLink sets the attributes of a symbolic link.
func fillLink(out *fuse.Attr, to target) {
	out.Mode = syscall.S_IFLNK | 0o777
	out.Size = uint64(len(to.path))
	out.Nlink = 1
	fillOwner(out, to.st)
	if to.time.IsZero() {
		fillTimes(out, to.st.ModTime(), time.Unix(0, to.st.Changed))
	} else {
		fillTimes(out, to.time, to.time)
	}
}

func fillOwner(out *fuse.Attr, st storage.Stat) {
	out.Uid, out.Gid = st.UID, st.GID
}

func fillTimes(out *fuse.Attr, modified, changed time.Time) {
	out.SetTimes(&modified, &modified, &changed)
}

// staleIfGone turns the loss of a backing file into ESTALE for those who hold a node of it already:
// the kernel then looks the path up anew, and tells the user what there is now.
func staleIfGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sessioncore.ErrNotFound) ||
		errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) {
		return fmt.Errorf("%w: %w", storage.ErrStale, err)
	}
	return err
}
