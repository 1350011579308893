package sessioncore

import (
	"context"
	"io"
	"time"
)

// Storage is the one way in which sessioncore reaches session files. Names are slash-separated paths
// below the storage's root, without ".", ".." or empty parts. FileStorage keeps files in a directory,
// MemoryStorage in memory; a database that keeps a row or key a file fits as well: it appends by
// concatenation and replaces where its version is the expected one.
//
// Errors wrap fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, ErrNotRegular, ErrBadName, ErrStale or
// what the backing system says. Methods are safe for concurrent use.
type Storage interface {
	// List returns what is directly in dir ("" for the root), sorted by name.
	List(dir string) ([]Item, error)
	// Stat tells about a name without following a link. Equal tokens mean an unchanged file.
	Stat(name string) (Stat, error)
	// Open pins one state of a regular file for reading: what is replaced or removed afterwards can
	// still be read through it.
	Open(name string) (Object, error)
	// Append adds data to the end of an existing file in one piece, or leaves the file as it was.
	// The caller holds Lock(name).
	Append(name string, data []byte) (Stat, error)
	// Replace puts what write writes in the place of name, at once and durably, if its token is still
	// expect (the zero Token: if there is no such file); else it returns ErrStale and changes nothing.
	// Mode and owner of a replaced file are kept. The caller holds Lock(name).
	Replace(name string, expect Token, write func(io.Writer) error) (Stat, error)
	// Sync makes what was appended durable.
	Sync(name string) error
	// Lock takes the lock that writers of name agree on (format.md, the client's lock), waiting for it
	// no longer than the lock's own limit or until ctx is done.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
}

// Object is a pinned file.
type Object interface {
	io.ReaderAt
	io.Closer
	// Stat tells about the pinned file as it is now; growth shows, a replacement does not.
	Stat() (Stat, error)
}

// Kind is what a name stands for.
type Kind uint8

// The kinds of names.
const (
	KindOther Kind = iota // device, socket, pipe: never shown and never opened
	KindFile
	KindDir
	KindLink
)

// Item is a name in a directory.
type Item struct {
	Name string
	Kind Kind
}

// Stat is what a storage knows of a name.
type Stat struct {
	Token
	Kind     Kind
	Mode     uint32 // permission bits
	UID, GID uint32
}

// Token identifies one state of a file: equal tokens mean that nothing changed. A storage without
// inodes numbers its objects as it likes and counts versions in Changed.
type Token struct {
	Device, Inode uint64
	Size          int64 // bytes
	Modified      int64 // nanoseconds since the epoch
	Changed       int64 // nanoseconds since the epoch
}

// SameObject reports whether two tokens are of one object, at whatever times.
func (t Token) SameObject(u Token) bool { return t.Device == u.Device && t.Inode == u.Inode }

// ModTime is the time of the last change of content.
func (t Token) ModTime() time.Time { return time.Unix(0, t.Modified) }

// StatItem is a name in a directory and what the storage knows of it.
type StatItem struct {
	Name string
	Stat
}

// StatLister is a storage that tells the states of many names in a directory for less than a Stat of
// each.
type StatLister interface {
	// ListStat returns the names in dir ("" for the root) that want wants, in no order. A name that
	// goes away meanwhile is left out.
	ListStat(dir string, want func(Item) bool) ([]StatItem, error)
	// StatNames calls f with the state of each of the names in dir, in their order; the zero Stat for one
	// that is gone.
	StatNames(dir string, names []string, f func(i int, st Stat)) error
}

// Linker is a storage that has symbolic links.
type Linker interface {
	// Readlink returns a link's target as stored.
	Readlink(name string) (string, error)
}

// Filer is an Object that is an open file of this process.
type Filer interface {
	// Fd returns its descriptor, valid until Close.
	Fd() uintptr
}
