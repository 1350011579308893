package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"time"
)

// Storage is the one way in which sessioncore reaches session files. Names are slash-separated paths
// below the storage's root, without ".", ".." or empty parts. dir.Storage keeps files in a directory,
// memory.Storage in memory; a database that keeps a row or key a file fits as well: it appends by
// concatenation and replaces where its version is the expected one.
//
// Not every storage can do everything. An implementation embeds Unsupported and has methods for what it can;
// callers ask by calling. A method that may be unsupported says what its callers do then.
//
// Errors wrap fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, ErrNotRegular, ErrBadName, ErrStale, ErrUnsupported or
// what the backing system says. Methods are safe for concurrent use.
type Storage interface {
	// List returns what is directly in dir ("" for the root), sorted by name.
	List(dir string) ([]Item, error)
	// ListStat returns the names in dir ("" for the root) that want wants, with their states and in no order, for
	// less than a Stat of each. A name that goes away meanwhile is left out. Where that is unsupported, the function
	// ListStat asks for one name after the other.
	ListStat(dir string, want func(Item) bool) ([]StatItem, error)
	// StatNames calls f with the state of each of the names in dir, in their order, for less than a Stat of each; the
	// zero Stat for one that is gone. Where that is unsupported, f is not called, and the function StatNames asks for
	// one name after the other.
	StatNames(dir string, names []string, f func(i int, st Stat)) error
	// Stat tells about a name without following a link. Equal tokens mean an unchanged file.
	Stat(name string) (Stat, error)
	// Readlink returns a symbolic link's target as stored. Where that is unsupported there are no links.
	Readlink(name string) (string, error)
	// Open pins one state of a regular file for reading: what is replaced or removed afterwards can
	// still be read through it.
	Open(name string) (Object, error)

	// MkdirAll creates a directory ("" for the root) and those above it that are missing. ErrNotRegular: a file is in
	// the way. Where that is unsupported, files need no directory.
	MkdirAll(dir string) error
	// CheckWritable returns why no file can be made in a directory that is there ("" for the root), nil where nothing
	// speaks against it. Where that is unsupported, only trying tells.
	CheckWritable(dir string) error
	// Append adds data to the end of an existing file in one piece, or leaves the file as it was.
	// The caller holds Lock(name).
	Append(name string, data []byte) (Stat, error)
	// Overwrite puts data in the place of a file's first bytes, as clients do with the title slot, if its token is
	// still expect and it has as many; else it returns ErrStale. The file is as it was after an error. The caller holds
	// Lock(name). Where that is unsupported, Replace does the same with more work.
	Overwrite(name string, expect Token, data []byte) (Stat, error)
	// Replace puts what write writes in the place of name, at once and durably, if its token is still
	// expect (the zero Token: if there is no such file); else it returns ErrStale and changes nothing.
	// Mode and owner of a replaced file are kept. The caller holds Lock(name).
	Replace(name string, expect Token, write func(io.Writer) error) (Stat, error)
	// ReplaceIf is Replace for a file to which programs append that do not take its lock. When everything is written,
	// and the new file is about to get its name, ready may forbid that: its error is returned, and nothing has changed.
	// What is appended to the old file after that look is carried over into the new one. Where that is unsupported,
	// nothing is written, and Replace is all that there is.
	ReplaceIf(name string, expect Token, write func(io.Writer) error, ready func() error) (Stat, error)
	// Sync makes what was appended durable.
	Sync(name string) error

	// Lock takes the lock that writers of name agree on (docs/format.md, The client's lock), waiting for it
	// no longer than the lock's own limit or until ctx is done.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	// Writers says whether a process holds the file open for writing at this moment, as a live client does
	// (docs/design.md section 4). The caller holds Lock(name), so that a writer that follows the lock is not met in the
	// middle of its work. Where that is unsupported, the state is WritersUnknown.
	Writers(name string) (WriterState, error)

	// CreatePending makes a file with what write writes that is not on disk yet: a pending one, to which all other
	// methods apply. used tells that it holds what must not be lost. The error wraps fs.ErrExist where there is a file
	// of that name, ErrTooMany, ErrNoRoom, write's, or what keeps the file from being put on disk later. After ErrNoRoom,
	// and where that is unsupported and write is not called, Replace makes the file.
	CreatePending(name string, used bool, write func(io.Writer) error) error
	// Pending reports whether a file is pending. Append to such a file fails with ErrNoRoom where it has to go to disk
	// with that. Where CreatePending is unsupported, no file is pending.
	Pending(name string) bool
	// Keep puts a pending file on disk, with more at its end. The caller holds Lock(name).
	Keep(ctx context.Context, name string, more []byte) error
	// KeepAll puts every pending file on disk, durably, that was used or that somebody appended to, in the order of
	// names, and returns those for which that failed: they are pending as before. It takes their locks.
	KeepAll(ctx context.Context) (failed []Unkept)
}

// Unkept is a pending file that could not be put on disk, and why.
type Unkept struct {
	Name string
	Err  error
}

// Object is a pinned file. As with Storage, an implementation embeds UnsupportedObject.
type Object interface {
	io.ReaderAt
	io.Closer
	// Stat tells about the pinned file as it is now; growth shows, a replacement does not.
	Stat() (Stat, error)
	// Fd returns the descriptor of an object that is an open file of this process, valid until Close. Where that is
	// unsupported, ReadAt reads.
	Fd() (uintptr, error)
	// Writers is Storage.Writers for the pinned file, without opening it and as far as that can tell. ErrLeaseKept: the
	// state is right, and the object should be closed. Where it is unsupported, Storage.Writers may know.
	Writers() (WriterState, error)
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

// DirMode is the mode of a directory that a session needs: its owner's alone, as the session is.
const DirMode = 0o700

// FileMode is the mode of a file that replaces none: a session is its owner's alone.
const FileMode = 0o600

// WriterState says whether some process holds a file open for writing.
type WriterState uint8

// The answers. The zero value promises nothing.
const (
	WritersUnknown WriterState = iota // nobody lets us find out
	WritersNone
	WritersPresent
)

// String names the state for logs.
func (w WriterState) String() string {
	switch w {
	case WritersNone:
		return "none"
	case WritersPresent:
		return "present"
	}
	return "unknown"
}

// CheckName refuses names that could leave the root or that no file can have.
func CheckName(name string) error {
	if name == "" || !fs.ValidPath(name) && !validBytes(name) || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("%w: %q", ErrBadName, name)
	}
	return nil
}

// validBytes is fs.ValidPath for names that are not UTF-8, which directories may hold.
func validBytes(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// EndsInNewline reports whether what is appended to a file of this size begins a new line: the file
// is empty or its last byte is a newline. Else its last line is torn (docs/design.md section 4).
func EndsInNewline(o io.ReaderAt, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	var last [1]byte
	if n, err := o.ReadAt(last[:], size-1); n == 0 {
		return false, err
	}
	return last[0] == '\n', nil
}

// Replaced is what became of a Storage.Replace. A file whose directory could not be synced has its new
// content all the same: to report that as a failure would make its writer do it twice. Who wants it
// durable calls Sync, which tells.
func Replaced(st Stat, err error) error {
	if err != nil && st != (Stat{}) {
		slog.Warn("a replaced session may not survive a crash", "err", err)
		return nil
	}
	return err
}

// ReadFull fills p from off on.
func ReadFull(obj io.ReaderAt, p []byte, off int64) error {
	n, err := obj.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		return fmt.Errorf("%w: it ends at %d", ErrStale, off+int64(n))
	}
	return err
}

// Dir is the name of the directory that a name is in.
func Dir(name string) string {
	dir, _ := path.Split(name)
	return strings.TrimSuffix(dir, "/")
}

// RecoverTo turns a panic into an error: no file may take the process down (docs/design.md section 7).
func RecoverTo(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic while reading: %v", r)
	}
}

// IsMissing: nothing has been written yet.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// TemporaryName is a name that nobody has, and that readers of the directory know to be a temporary
// of the client (docs/format.md, Files).
func TemporaryName(base string) string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return "." + base + "." + hex.EncodeToString(random[:]) + ".tmp"
}
