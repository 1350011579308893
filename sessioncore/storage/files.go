package storage

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Files is a read-only store of session files: a directory, a table of a database, an archive, or
// another program's data in the form of session files. Four methods are all that a mount needs.
//
// Names are slash-separated paths below the store's root, without ".", ".." or empty elements; ""
// is the root directory. Errors wrap fs.ErrNotExist, fs.ErrPermission, ErrNotRegular, ErrBadName,
// ErrStale or an error of the backing system. Methods are safe for concurrent use.
//
// Readers get no notice of changes. They call Stat, thousands of times a second, so Stat must be
// cheap, and an equal token promises an unchanged file. The token of a directory changes with its
// names.
type Files interface {
	// List calls f with each name directly in dir, once and in no order, until f returns false. If
	// only is not nil, it calls f with the existing ones of these names, in their order (see
	// ListOnly), and takes no more time and memory than for these. f must not use the store except
	// by Item.State. The error wraps fs.ErrNotExist if dir is no directory.
	List(dir string, only []string, f func(Item) bool) error
	// Stat returns the state of a name, and the target of a link. It follows no link.
	Stat(name string) (Stat, error)
	// Open opens a file for reading and pins it: its content stays readable after the name is
	// replaced or removed. The error wraps ErrNotRegular for other kinds.
	Open(name string) (Object, error)
	// ReadAhead announces that files will be opened and their beginnings read. A store with a
	// remote backing may fetch them all at once before it returns. Others do nothing.
	ReadAhead(names []string)
}

// Object is an open file. If the file changes and does not just grow, a read returns other bytes or
// an error that wraps ErrStale.
type Object interface {
	io.ReaderAt
	io.Closer
	// Stat returns the current state of the file. It shows growth, but not a replacement.
	Stat() (Stat, error)
}

// IsPacked reports whether an open file is compressed, so that its end is not cheap.
func IsPacked(obj Object) bool {
	_, isPacked := obj.(PackedObject)
	return isPacked
}

// Item is a name in a directory.
type Item struct {
	Name string
	Kind Kind
	// State returns the state of the name, cheaper than Stat. It may be called only while List is
	// at this name. The error wraps fs.ErrNotExist if the name is removed meanwhile.
	State func() (Stat, error)
}

// List returns the names directly in dir, sorted. Their State cannot be called.
func List(files Files, dir string) ([]Item, error) {
	var items []Item
	err := files.List(dir, nil, func(item Item) bool {
		items = append(items, Item{Name: item.Name, Kind: item.Kind})
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(items, func(a, b Item) int {
		return strings.Compare(a.Name, b.Name)
	})
	return items, nil
}

// ListOnly implements List for some names by a Stat of each.
func ListOnly(files Files, dir string, only []string, f func(Item) bool) error {
	for _, name := range only {
		st, err := files.Stat(path.Join(dir, name))
		if IsMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		item := Item{
			Name:  name,
			Kind:  st.Kind,
			State: func() (Stat, error) { return st, nil },
		}
		if !f(item) {
			return nil
		}
	}
	return nil
}

// StatItem is a name in a directory, with its state.
type StatItem struct {
	Name string
	Stat
}

// ListStat returns the names directly in dir for which want is true, with their states, in no order. It omits names that are
// removed meanwhile. After an error of a state it returns the names before it.
func ListStat(files Files, dir string, want func(Item) bool) (items []StatItem, err error) {
	var failed error
	err = files.List(dir, nil, func(item Item) bool {
		if !want(item) {
			return true
		}
		st, err := item.State()
		switch {
		case err == nil:
			items = append(items, StatItem{Name: item.Name, Stat: st})
		case !IsMissing(err):
			failed = err
		}
		return failed == nil
	})
	if failed != nil {
		err = failed
	}
	return items, err
}

// ReadFull fills p from obj at off. The error wraps ErrStale if the file ends before.
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

// ReadFile returns the first bytes of a file, at most limit. The error wraps ErrStale if the file becomes shorter meanwhile.
func ReadFile(files Files, name string, limit int64) ([]byte, error) {
	obj, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(st.Size, limit))
	return text, ReadFull(obj, text, 0)
}

// compareSize is how many bytes SameBytes reads at once.
const compareSize = 64 << 10

// SameBytes reports whether size bytes of a at offset offsetA equal the bytes of b at offset offsetB. The error
// wraps ErrStale if one of them ends before.
func SameBytes(a io.ReaderAt, offsetA int64, b io.ReaderAt, offsetB, size int64) (bool, error) {
	most := max(0, min(size, compareSize))
	bytesA := make([]byte, most)
	bytesB := make([]byte, most)
	for done := int64(0); done < size; done += int64(len(bytesA)) {
		n := min(most, size-done)
		bytesA = bytesA[:n]
		bytesB = bytesB[:n]
		err := ReadFull(a, bytesA, offsetA+done)
		if err != nil {
			return false, err
		}
		err = ReadFull(b, bytesB, offsetB+done)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(bytesA, bytesB) {
			return false, nil
		}
	}
	return true, nil
}

// RecoverTo stores a panic in err: no file may crash the process (docs/design.md section 7).
func RecoverTo(err *error) {
	r := recover()
	if r != nil {
		*err = fmt.Errorf("panic while reading: %v", r)
	}
}

// Guarded returns a function that calls f and logs its panic, for background work.
func Guarded(f func()) func() {
	return func() {
		defer func() {
			r := recover()
			if r != nil {
				slog.Error("a bug: what is done besides panicked", "panic", r, "stack", string(debug.Stack()))
			}
		}()
		f()
	}
}

// IsMissing reports whether err means that the file does not exist.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// IsGone reports whether err means that a name that was listed does not exist any more.
func IsGone(err error) bool { return IsMissing(err) || errors.Is(err, syscall.ESTALE) }

// CheckName returns ErrBadName for a name that could leave the root or cannot name a file.
func CheckName(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.IndexByte(part, 0) >= 0 {
			return fmt.Errorf("%w: %q", ErrBadName, name)
		}
	}
	return nil
}

// Dir returns the directory of a name below a store's root, "" for the root. (path.Dir returns "." there.)
func Dir(name string) string {
	dir, _ := path.Split(name)
	return strings.TrimSuffix(dir, "/")
}

// TemporaryName returns a random name for a temporary file beside base. Readers of the directory
// know it as a temporary file of the client (docs/format.md, Files), and IsTemporaryName as ours.
func TemporaryName(base string) string { return temporaryName(base, temporaryMark, randomDigits()) }

// AsideName returns a random name that IsTemporaryName does not know.
func AsideName(base string) string { return temporaryName(base, asideMark, randomDigits()) }

// ReplacedName returns the name for a file that another one replaces in this moment. Its digits are
// the size of the file and the last byte of its inode number, so that ReplacedFile knows whether it grew later.
// ok is false for a file of 4 GiB and more, of which the digits have no room for the size.
func ReplacedName(base string, of Token) (name string, ok bool) {
	digits := fmt.Sprintf("%08x%02x", of.Size, byte(of.Inode))
	return temporaryName(base, replacedMark, digits), len(digits) == markedDigits
}

// temporaryMark begins the digits of our temporary files, the others the digits of files that may be a
// replaced version. The client's digits are random.
const temporaryMark, asideMark, replacedMark = "5e5510", "a51de0", "01d5e5"

// markedDigits is how many digits follow a mark.
const markedDigits = 10

// temporaryName returns a hidden name beside base with a mark and digits.
func temporaryName(base, mark, digits string) string {
	return "." + base + "." + mark + digits + ".tmp"
}

// randomDigits returns random hexadecimal digits, as many as the names of marked files have.
func randomDigits() string {
	var random [markedDigits / 2]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// IsTemporaryName reports whether TemporaryName made base.
func IsTemporaryName(base string) bool {
	_, _, ok := cutTemporary(base, temporaryMark)
	return ok
}

// IsOwnName reports whether TemporaryName, AsideName or ReplacedName made base.
func IsOwnName(base string) bool {
	_, _, isAside := cutTemporary(base, asideMark)
	_, _, isReplaced := cutTemporary(base, replacedMark)
	return isAside || isReplaced || IsTemporaryName(base)
}

// TemporaryOf returns the name beside which TemporaryName made a name.
func TemporaryOf(name string) (base string, ok bool) {
	base, _, ok = cutTemporary(name, temporaryMark)
	return base, ok
}

// ReplacedFile returns the name beside which ReplacedName made a name, and the token in it: a size,
// and the last byte of an inode.
func ReplacedFile(name string) (base string, of Token, ok bool) {
	base, digits, ok := cutTemporary(name, replacedMark)
	if !ok {
		return "", Token{}, false
	}
	facts, err := hex.DecodeString(digits)
	if err != nil {
		return "", Token{}, false
	}
	const sizeBytes = 4 // the byte of the inode number follows
	size := binary.BigEndian.Uint32(facts[:sizeBytes])
	return base, Token{Size: int64(size), Inode: uint64(facts[sizeBytes])}, true
}

// cutTemporary returns the parts of a name that temporaryName made with a mark: of .BASE.MARKDIGITS.tmp, BASE
// and DIGITS.
func cutTemporary(name, mark string) (base, digits string, ok bool) {
	hidden, isTemporary := strings.CutSuffix(name, ".tmp")
	dot := strings.LastIndexByte(hidden, '.')
	if !isTemporary || dot <= 0 || hidden[0] != '.' {
		return "", "", false
	}
	digits, isMarked := strings.CutPrefix(hidden[dot+1:], mark)
	return hidden[1:dot], digits, isMarked && len(digits) == markedDigits
}

// Kind is the kind of a file.
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
	Link     string // target of a link, as stored; only from Files.Stat
}

// Token identifies a state of a file: equal tokens mean an unchanged file. A storage without inodes
// numbers its objects, and counts versions in Changed.
type Token struct {
	Device, Inode uint64
	Size          int64 // bytes
	Modified      int64 // nanoseconds since the epoch
	Changed       int64 // nanoseconds since the epoch
}

// With returns a token that changes with t or u. It is of no object, and as racy as both.
func (t Token) With(u Token) Token {
	t.Device = t.Device*31 + u.Device
	for _, fact := range []uint64{u.Inode, uint64(u.Size), uint64(u.Modified), uint64(u.Changed)} {
		t.Inode = t.Inode*31 + fact // a hash of all facts
	}
	t.Modified = max(t.Modified, u.Modified)
	t.Changed = max(t.Changed, u.Changed)
	return t
}

// SameObject reports whether two tokens are of the same object, in any states.
func (t Token) SameObject(u Token) bool { return t.Device == u.Device && t.Inode == u.Inode }

// ClockMargin is how far the time of a file may lie before the time of the last text in it: a copy keeps
// the time of the machine that it comes from.
const ClockMargin = 24 * time.Hour

// ModTime returns the time of the last change of the content.
func (t Token) ModTime() time.Time { return time.Unix(0, t.Modified) }

// DirMode is the mode of a new session directory, accessible only to its owner.
const DirMode = 0o700

// FileMode is the mode of a new session, accessible only to its owner.
const FileMode = 0o600

// WriterState says whether a process has a file open for writing.
type WriterState uint8

// The values of WriterState.
const (
	WritersUnknown WriterState = iota // the system cannot tell
	WritersNone
	WritersPresent
)

const (
	// clockTick is the longest tick of the kernel clocks for file times. Before Linux 6.13 a file's
	// time is the time of the last timer interrupt. There are 100 to 1,000 of them per second.
	clockTick = 20 * time.Millisecond
	// coarseTick is the tick of file systems with whole or even seconds (old ext4, FAT).
	coarseTick = 2 * time.Second
)

// Settling returns for how long after at a change to the file may leave the token unchanged, as the
// file's clock has not ticked: 0 if the token shows every change after at. A token taken within
// that time proves nothing about the content. Settling uses Changed, which programs cannot set.
func (t Token) Settling(at time.Time) time.Duration {
	tick := clockTick
	if t.Changed%int64(time.Second) == 0 {
		tick = coarseTick
	}
	age := time.Duration(at.UnixNano() - t.Changed)
	return max(0, min(tick, tick-age))
}

// Racy reports whether content read at readAt, in ns since the epoch, may change without the token.
func (t Token) Racy(readAt int64) bool { return t.Settling(time.Unix(0, readAt)) > 0 }

// The errors of storages, beside the errors of package io/fs and of the backing system.
var (
	// ErrStale means that the backing file changed or disappeared while a reader had it open.
	ErrStale = errors.New("the backing file changed or is gone")
	// ErrNotRegular means that a name is no file but a directory, link, device or the like.
	ErrNotRegular = errors.New("not a regular file")
	// ErrBadName means that a name leaves the root or cannot name a file.
	ErrBadName = errors.New("not a usable name")
	// ErrLocked means that another writer held a file's lock, or a lease on it, for LockLimit
	// (docs/format.md, The client's lock).
	ErrLocked = errors.New("locked by another writer")
	// ErrUnsupported means that a store cannot do this for any name, and did nothing. Errors of the
	// backing system, which concern one file, never match it.
	ErrUnsupported = fmt.Errorf("the storage cannot do that: %w", errors.ErrUnsupported)
)
