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
	"runtime/debug"
	"strings"
	"time"
)

// Storage is the only way in which sessioncore accesses session files. Names are slash-separated paths below the
// storage's root, without ".", ".." or empty elements. dir.Storage keeps files in a directory, memory.Storage in
// memory. A database with a row or key per file could implement it too: it would append by concatenation, and
// replace if its version is the expected one.
//
// Not every storage supports every method. An implementation embeds Unsupported and overrides the methods that it
// has; callers simply call. A method that may be unsupported documents what its callers do then.
//
// Errors wrap fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, ErrNotRegular, ErrBadName, ErrStale, ErrUnsupported or
// an error of the backing system. Methods are safe for concurrent use.
type Storage interface {
	// List returns the names directly in dir ("" for the root), sorted by name.
	List(dir string) ([]Item, error)
	// Each calls f with the names directly in dir ("" for the root), in no order, until f returns false. It takes no more
	// time and memory than the names for which f is called. f must not use the storage.
	Each(dir string, f func(Item) bool) error
	// ListStat returns the names in dir ("" for the root) for which want returns true, with their states, in no
	// order. It costs less than a Stat of each name. Names that are removed meanwhile are left out. If it is
	// unsupported, the function ListStat calls Stat for each name.
	ListStat(dir string, want func(Item) bool) ([]StatItem, error)
	// StatNames calls f with the state of each of the names in dir, in order, or with the zero Stat if the name
	// does not exist. It costs less than a Stat of each name. If it is unsupported, f is not called, and the
	// function StatNames calls Stat for each name.
	StatNames(dir string, names []string, f func(i int, st Stat)) error
	// Stat returns the state of a name without following links. Equal tokens mean an unchanged file.
	Stat(name string) (Stat, error)
	// Readlink returns the target of a symbolic link as stored. If it is unsupported, there are no links.
	Readlink(name string) (string, error)
	// Open opens a regular file for reading and pins it: its content stays readable after the name is replaced or
	// removed.
	Open(name string) (Object, error)
	// ReadAhead says that files are about to be opened and their beginnings read. A storage for which each of them is a
	// question to somebody else asks for all at once, and returns when it has the answer. Others do nothing.
	ReadAhead(names []string)

	// MkdirAll creates a directory ("" for the root) and its missing parents. The error wraps ErrNotRegular if a
	// file is in the way. If it is unsupported, files need no directory.
	MkdirAll(dir string) error
	// CheckWritable returns nil if creating a file in an existing directory ("" for the root) seems possible, and
	// otherwise the reason why it is not. If it is unsupported, callers have to try.
	CheckWritable(dir string) error
	// Append adds data to the end of an existing file with one write. After an error the file is unchanged. Callers
	// must hold Lock(name).
	Append(name string, data []byte) (Stat, error)
	// Overwrite replaces the first len(data) bytes of a file in place, as clients do with the title slot. It
	// returns ErrStale if the file's token is not expect or the file is shorter. After an error the file is
	// unchanged. Callers must hold Lock(name). If it is unsupported, Replace does the same with more work.
	Overwrite(name string, expect Token, data []byte) (Stat, error)
	// Replace replaces the file name by what write writes, atomically and durably. It returns ErrStale and changes
	// nothing if the file's token is not expect; the zero Token stands for no file. The mode and owner of a
	// replaced file are kept. Callers must hold Lock(name).
	Replace(name string, expect Token, write func(io.Writer) error) (Stat, error)
	// ReplaceIf is Replace for a file that others append to, and that takes long to write. It calls ready when
	// everything is written and durable, and the new file is about to get its name. Callers need not hold Lock(name)
	// before ready returns; it takes the lock. An error of ready is returned, and nothing has changed. What is
	// appended to the old file without the lock after that is carried over to the new one. If it is unsupported,
	// nothing is written, and callers use Replace.
	ReplaceIf(name string, expect Token, write func(io.Writer) error, ready Ready) (Stat, error)
	// HardLink gives a file a second name in the same directory. The error wraps fs.ErrExist if that is taken. If it is
	// unsupported, files have one name.
	HardLink(name, second string) error
	// Move gives the file name another name, in an existing directory, and durably takes the directory beside it along,
	// which is called like the file without suffix. At any moment the file has one of the two names, and BesideOf
	// finds the directory. The error wraps fs.ErrExist if a new name is taken. After an error nothing has changed. If it
	// is unsupported, files stay where they are.
	Move(name, to, suffix string) error
	// Sync makes appended data durable.
	Sync(name string) error

	// Lock takes the lock that all writers of name use (docs/format.md, The client's lock). It waits until
	// LockLimit has passed or ctx is done. Callers must call unlock.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	// Writers reports whether a process has the file open for writing at this moment, as a live client does
	// (docs/design.md section 4). Callers must hold Lock(name), so that a writer that takes the lock is not found
	// in the middle of its work. If it is unsupported, the state is WritersUnknown.
	Writers(name string) (WriterState, error)

	// CreatePending creates a pending file: one that is not on disk yet, and to which all other methods apply. Its
	// content is what write writes. used reports whether that must not be lost. The error wraps fs.ErrExist if the
	// file exists, ErrTooMany, ErrNoRoom, the error of write, or the reason why the file could not be put on disk
	// later. After ErrNoRoom, or if it is unsupported, in which case write is not called, callers use Replace.
	CreatePending(name string, used bool, write func(io.Writer) error) error
	// Pending reports whether a file is pending. Append to a pending file returns ErrNoRoom if the file has to go
	// to disk with the data. If CreatePending is unsupported, Pending returns false.
	Pending(name string) bool
	// Keep puts a pending file on disk, with more added to its end. Callers must hold Lock(name).
	Keep(ctx context.Context, name string, more []byte) error
	// KeepAll puts every pending file on disk, durably, that was created as used or appended to, in the order of
	// names. It returns the files for which that failed; they are still pending. It takes their locks.
	KeepAll(ctx context.Context) (failed []Unkept)
}

// Ready returns the token that a file has now, under its lock. It is the one that was expected, or the file has only
// grown since, and Ready writes to more what was added.
type Ready func(more io.Writer) (now Token, err error)

// Dated is what the io.Writer of a Replace may be: then the file gets the time that is set as that of its last change.
type Dated interface{ SetModified(time.Time) }

// Unkept is a pending file that could not be put on disk, and the reason.
type Unkept struct {
	Name string
	Err  error
}

// Object is a pinned file. An implementation embeds UnsupportedObject for the methods that it does not have.
type Object interface {
	io.ReaderAt
	io.Closer
	// Stat returns the current state of the pinned file. It shows growth, but not a replacement.
	Stat() (Stat, error)
	// Fd returns the file descriptor of an object that is an open file of this process. It is valid until Close. If
	// it is unsupported, callers use ReadAt.
	Fd() (uintptr, error)
	// Writers is Storage.Writers for the pinned file, as far as that can be told without opening it. If the error
	// is ErrLeaseKept, the state is right, but the object should be closed. If it is unsupported, Storage.Writers
	// may know.
	Writers() (WriterState, error)
}

// Kind is the kind of file that a name stands for.
type Kind uint8

// The kinds of files.
const (
	KindOther Kind = iota // device, socket, pipe: never shown and never opened
	KindFile
	KindDir
	KindLink
)

// Item is a name in a directory, with its kind.
type Item struct {
	Name string
	Kind Kind
}

// Stat is the state of a name.
type Stat struct {
	Token
	Kind     Kind
	Mode     uint32 // permission bits
	UID, GID uint32
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

// StatItem is a name in a directory, with its state.
type StatItem struct {
	Name string
	Stat
}

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

// CheckName returns ErrBadName for names that could lead out of the root or that cannot name a file.
func CheckName(name string) error {
	if name == "" || !fs.ValidPath(name) && !validBytes(name) || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("%w: %q", ErrBadName, name)
	}
	return nil
}

// validBytes is fs.ValidPath for names that are not UTF-8, which directories may contain.
func validBytes(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// EndsInNewline reports whether data appended to a file of this size begins a new line: the file is empty or its
// last byte is a newline. Otherwise its last line is torn (docs/design.md section 4).
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

// Replaced converts the results of a Storage.Replace to an error. If only syncing the directory failed, the file
// has its new content nevertheless, and an error would make the writer write it again; so Replaced logs a warning
// and returns nil. Callers that need the content durable call Sync, which reports the error.
func Replaced(st Stat, err error) error {
	if err != nil && st != (Stat{}) {
		slog.Warn("a replaced session may not survive a crash", "err", err)
		return nil
	}
	return err
}

// ReadFull fills p from obj, starting at off. The error wraps ErrStale if the file ends before that.
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

// Dir returns the directory of a name, "" for the root.
func Dir(name string) string {
	dir, _ := path.Split(name)
	return strings.TrimSuffix(dir, "/")
}

// RecoverTo recovers from a panic and stores it in err: no file may crash the process (docs/design.md section 7).
func RecoverTo(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic while reading: %v", r)
	}
}

// Guarded returns a function that calls f and logs its panic: nothing that is done besides may end the process.
func Guarded(f func()) func() {
	return func() {
		defer func() {
			if r := recover(); r != nil {
				slog.Error("a bug: what is done besides panicked", "panic", r, "stack", string(debug.Stack()))
			}
		}()
		f()
	}
}

// IsMissing reports whether err means that the file does not exist.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// TemporaryName returns a random name for a temporary file beside base. Readers of the directory recognize it as a
// temporary of the client (docs/format.md, Files), and IsTemporaryName as one of ours.
func TemporaryName(base string) string { return temporaryName(base, temporaryMark) }

// AsideName returns a random name for a file that must not be taken for a temporary one of ours.
func AsideName(base string) string { return temporaryName(base, asideMark) }

// temporaryMark begins the digits of our temporary files. The client's are at random.
const temporaryMark, asideMark = "5e5510", "a51de0"

func temporaryName(base, mark string) string {
	var random [5]byte
	_, _ = rand.Read(random[:]) // never fails
	return "." + base + "." + mark + hex.EncodeToString(random[:]) + ".tmp"
}

// IsTemporaryName reports whether base is a name that TemporaryName made.
func IsTemporaryName(base string) bool { return isTemporary(base, temporaryMark) }

// IsOwnName reports whether base is a name that TemporaryName or AsideName made.
func IsOwnName(base string) bool { return IsTemporaryName(base) || isTemporary(base, asideMark) }

func isTemporary(base, mark string) bool {
	base, ok := strings.CutSuffix(base, ".tmp")
	at := strings.LastIndexByte(base, '.')
	return ok && at > 0 && base[0] == '.' && len(base)-at-1 == len(mark)+10 && strings.HasPrefix(base[at+1:], mark)
}
