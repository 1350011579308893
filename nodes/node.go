package nodes

import (
	"context"
	"os"
	"syscall"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Node is implemented by each Dir, File and Link.
type Node interface {
	// Stat returns the current attributes; the size of a file is exact. They mean nothing beside an
	// error.
	Stat(context.Context) (Attr, error)
	// Stability returns how long a door may use an answer.
	Stability() Stability
	// Base returns the directory itself, or the directory of any other node.
	Base() *Directory
}

// Dir is a directory. Doors list it with ListDir and find names in a DirState, which call these methods.
type Dir interface {
	Node
	// Acquire returns the state of a session in which the names are found, or nil for other
	// directories. The caller must release it.
	Acquire(context.Context) (*sessioncore.Snapshot, error)
	// List returns the current names in the directory, in order. It renders nothing.
	List(context.Context, *sessioncore.Snapshot) ([]Item, error)
	// Find finds the child of an item of List, perhaps of an older snapshot, or of Named. The error of a name that
	// is not there is ENOENT or wraps sessioncore.ErrNotFound.
	Find(context.Context, *sessioncore.Snapshot, Item) (Child, error)
	// Noted returns the directory's name in last-error for failed lookups; "" if these are not
	// recorded.
	Noted() string
}

// LinkDir is a directory with a link that programs replace. Other directories refuse changes.
type LinkDir interface {
	Dir
	// Symlink makes a link, which may wait to be renamed.
	Symlink(ctx context.Context, target, name string) syscall.Errno
	// Remove removes a link.
	Remove(ctx context.Context, name string) syscall.Errno
	// Rename renames a link in the directory; flags are as in renameat2(2).
	Rename(ctx context.Context, name, newName string, flags uint32) syscall.Errno
}

// File is a file.
type File interface {
	Node
	// Open opens the file; flag is as in os.OpenFile. Doors call OpenFile.
	Open(ctx context.Context, flag int) (Handle, error)
}

// Link is a symbolic link.
type Link interface {
	Node
	// Target returns the current target. It is "" beside an error.
	Target(context.Context) (string, error)
}

// Control is a file that accepts commands, a line each. A Handle of it is a WriteHandle.
type Control interface {
	File
	// Sync makes all lines that took effect durable, through this node or another.
	Sync(context.Context) syscall.Errno
	// Readable reports whether the file shows content other than the answers to lines.
	Readable() bool
	// Refused records in last-error the reason of a refusal of lines, and returns the errno.
	Refused(error) syscall.Errno
}

// Handle is an open file. All reads see one version, or one that grows at its end. Handles of files
// with versions have the method Stat too; see StatVersion.
type Handle interface {
	// ReadAt is as in io.ReaderAt, but at the end it may return fewer bytes and no error.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	// Close ends the handle.
	Close()
}

// WriteHandle is a handle that accepts lines. Its errors are in last-error already.
type WriteHandle interface {
	Handle
	// Write executes the lines that p completes. It returns fewer bytes than p has, and no error,
	// if a line is refused after others took effect.
	Write(ctx context.Context, p []byte, off int64) (int, syscall.Errno)
	// Flush executes a last line without a newline, for each close of a descriptor.
	Flush(context.Context) syscall.Errno
}

// VersionHandle is a handle that shows one version of a file, which has attributes of its own.
type VersionHandle interface {
	Handle
	Stat(context.Context) (Attr, error)
}

// StatVersion returns the attributes of the version of a file that a handle of it shows, or the attributes of the
// file if the handle has none of its own.
func StatVersion(ctx context.Context, f File, h Handle) (Attr, error) {
	version, hasOwn := h.(VersionHandle)
	if hasOwn {
		return version.Stat(ctx)
	}
	return f.Stat(ctx)
}

// IsRendered reports whether a node is a file that Stat renders for its size.
func IsRendered(n Node) bool {
	switch n := n.(type) {
	case *SourceFile, *EntryFile:
		return false
	case Control:
		return n.Readable()
	case File:
		return true
	}
	return false
}

// Stability is how long an answer about a node holds.
type Stability uint8

const (
	// Changing nodes may differ at each access. Each open of a file may show another version.
	Changing Stability = iota
	// Relinked links lead to sessions: each access looks the name up, and attributes hold briefly.
	Relinked
	// Growing files stand for one content, which grows at its end for open handles.
	Growing
	// Fixed nodes stand for one content; another content is another node. Directories are Fixed
	// too: their names are listed and looked up at each access.
	Fixed
)

// Follower is a file with open handles that may share a version; see sharedVersion.
type Follower interface {
	File
	// Follows reports whether its handles share a version.
	Follows() bool
	// StandsFor reports whether the node shows the same as its name; content is the Content of the Child.
	StandsFor(ctx context.Context, content uint64) bool
}

// Attr are the attributes of a node.
type Attr struct {
	Kind     storage.Kind // KindOther in attributes that are not known
	Mode     uint32       // permission bits
	UID, GID uint32
	Size     int64 // in bytes; a link has the size of its target
	Modified time.Time
	Changed  time.Time
}

// Child is the node of a name in a directory. The names from the root to a node, with the kind and
// Content of the last one, are its identity, from which a door makes inode numbers and handles.
type Child struct {
	Kind storage.Kind
	// Content identifies the content of a node that stands for one only; else it is 0, or replaced.
	Content uint64
	// Attr are the attributes, if they are known.
	Attr Attr
	// Make makes the node. A door keeps it.
	Make func() Node
}

// replaced is the content of a node if another node of the same kind may have had its name.
const replaced = 1

// Item is a name in a listing.
type Item struct {
	Name string
	Kind storage.Kind
	// Bare items are listed without their attributes, which may take long.
	Bare   bool
	number int32 // for the directory's own use, such as an entry's number
}

// unnumbered is the number of an item that was not listed.
const unnumbered = -1

// Named returns the item of a name that was not listed.
func Named(name string) Item { return Item{Name: name, number: unnumbered} }

// node is the base of all files and links.
type node struct{ in *Directory }

func (n *node) Base() *Directory { return n.in }

func (n *node) Stability() Stability { return Changing }

func (n *node) view() *View { return n.in.view }

// Modes and owners mirror the backing file: a user who may not read a session may not read a part
// of it (docs/design.md section 8). A file that refuses writes has no write bits. Directories keep
// those of the backing file or directory, though nothing can be created in most of them: a copy
// gets the modes of the original, and an ordinary user can remove nothing from a directory without
// write bits.

// Permission bits.
const (
	readBits   = 0o444
	writeBits  = 0o222
	dirBits    = 0o777
	othersBits = 0o077
)

// fileAttr returns the attributes of a file of that size, in bytes, that shows a part of the
// backing file st and refuses writes.
func fileAttr(st storage.Stat, size int64) Attr {
	return Attr{
		Kind:     storage.KindFile,
		Mode:     st.Mode & readBits,
		UID:      st.UID,
		GID:      st.GID,
		Size:     size,
		Modified: st.ModTime(),
		Changed:  time.Unix(0, st.Changed),
	}
}

// writableAttr is fileAttr for a file that can be written, unless the mount is read-only.
func (v *View) writableAttr(st storage.Stat, size int64) Attr {
	a := fileAttr(st, size)
	if !v.ReadOnly {
		a.Mode |= st.Mode & writeBits
	}
	return a
}

// dirAttr returns the attributes of a directory that shows the backing file or directory st. In a
// read-only mount it has no write bits.
func (v *View) dirAttr(st storage.Stat) Attr {
	a := fileAttr(st, 0)
	a.Kind = storage.KindDir
	a.Mode = st.Mode & dirBits
	if st.Kind != storage.KindDir {
		const fromReadToSearch = 2 // the search bit is two below the read bit
		canRead := a.Mode & readBits
		a.Mode |= canRead >> fromReadToSearch // a reader of the file may search the directory
	}
	if v.ReadOnly {
		a.Mode &^= writeBits
	}
	return a
}

// private hides a generated directory or file that shows parts of all sessions, or typed text. Only
// the owner of the files behind it may access it, as the session files may be less open.
func (a Attr) private() Attr {
	a.Mode &^= othersBits
	return a
}

// withTimes returns the attributes with other times of modification and change.
func (a Attr) withTimes(modified, changed time.Time) Attr {
	a.Modified = modified
	a.Changed = changed
	return a
}

// writes reports whether the flag of an open, as in os.OpenFile, includes writing. Truncation counts.
func writes(flag int) bool {
	const writing = os.O_WRONLY | os.O_RDWR | os.O_TRUNC
	return flag&writing != 0
}
