package storage

import (
	"time"
)

// Kind is the kind of file that a name stands for.
type Kind uint8

// The kinds of files.
const (
	KindOther Kind = iota // device, socket, pipe: never shown and never opened
	KindFile
	KindDir
	KindLink
)

// Stat is the state of a name.
type Stat struct {
	Token
	Kind     Kind
	Mode     uint32 // permission bits
	UID, GID uint32
	Link     string // where a link leads, as stored; only Stat of Files knows it
}

// Token identifies one state of a file: equal tokens mean an unchanged file. A storage without inodes numbers its
// objects in any way and counts versions in Changed.
type Token struct {
	Device, Inode uint64
	Size          int64 // bytes
	Modified      int64 // nanoseconds since the epoch
	Changed       int64 // nanoseconds since the epoch
}

// SameObject reports whether two tokens are of the same object, in any states.
func (t Token) SameObject(u Token) bool { return t.Device == u.Device && t.Inode == u.Inode }

// ModTime returns the time of the last change of the content.
func (t Token) ModTime() time.Time { return time.Unix(0, t.Modified) }

// DirMode is the mode of a new directory for a session. Like the session, it is accessible only to its owner.
const DirMode = 0o700

// FileMode is the mode of a new file. Sessions are accessible only to their owner.
const FileMode = 0o600

// WriterState says whether a process has a file open for writing.
type WriterState uint8

// The values of WriterState.
const (
	WritersUnknown WriterState = iota // the system does not let us find out
	WritersNone
	WritersPresent
)

// String returns the state for logs.
func (w WriterState) String() string {
	switch w {
	case WritersNone:
		return "none"
	case WritersPresent:
		return "present"
	}
	return "unknown"
}

const (
	// clockTick is the longest tick of the clocks that kernels take file times from. Before Linux 6.13, a file's
	// time is that of the last timer interrupt, of which there are 100 to 1,000 per second.
	clockTick = 20 * time.Millisecond
	// coarseTick is the same for file systems that store whole or even seconds (old ext4, FAT).
	coarseTick = 2 * time.Second
)

// Settling returns for how long after at a change to the file may leave the token unchanged, because the file's
// clock has not ticked. It returns 0 if the token shows every change after at. A token taken within that time does
// not prove that the content read then is still there.
//
// Settling uses the time of the last change of the inode, which programs cannot set.
func (t Token) Settling(at time.Time) time.Duration {
	tick := clockTick
	if t.Changed%int64(time.Second) == 0 {
		tick = coarseTick
	}
	age := time.Duration(at.UnixNano() - t.Changed)
	return max(0, min(tick, tick-age))
}

// Racy reports whether content read at readAt, in ns since the epoch, may have changed without a change of the
// token.
func (t Token) Racy(readAt int64) bool { return t.Settling(time.Unix(0, readAt)) > 0 }
