package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"runtime/debug"
	"slices"
	"strings"
)

// Files is a store of files that are read: a directory, a table of a database, an archive, or what another program keeps
// in a form of its own, shown as session files. Four methods are all that it takes to be shown.
//
// Names are slash-separated paths below the store's root, without ".", ".." or empty elements; "" is the root, which is a
// directory. Errors wrap fs.ErrNotExist, fs.ErrPermission, ErrNotRegular, ErrBadName, ErrStale or an error of the
// backing system. Methods are safe for concurrent use.
//
// Nobody tells a reader that something changed: it asks for the Stat of what it knows, thousands of times a second. So
// Stat has to be cheap, and a token that stays the same is a promise that the file does. The token of a directory changes
// with the names in it.
type Files interface {
	// List calls f with each name directly in dir, once and in no order, until f returns false. If only is not nil, it calls
	// f with those of these names that are there, in their order (ListOnly does that for a store for which it is all the
	// same). It takes no more time and memory than the names for which f is called. f must not use the store, except by
	// Item.State. The error wraps fs.ErrNotExist if dir is no directory.
	List(dir string, only []string, f func(Item) bool) error
	// Stat returns the state of a name, and of a link where it leads. No link is followed.
	Stat(name string) (Stat, error)
	// Open opens a file for reading and pins it: what it had stays readable after the name is replaced or removed. The
	// error wraps ErrNotRegular if the name stands for something else.
	Open(name string) (Object, error)
	// ReadAhead says that files are about to be opened and their beginnings read. A store for which each of them is a
	// question to somebody else asks for all at once, and returns when it has the answer. Others do nothing.
	ReadAhead(names []string)
}

// Object is a file that is open. Reading it after it was changed in another way than by adding to it returns
// other bytes or an error that wraps ErrStale.
type Object interface {
	io.ReaderAt
	io.Closer
	// Stat returns the current state of the file. It shows growth, but not a replacement.
	Stat() (Stat, error)
}

// Item is a name in a directory.
type Item struct {
	Name string
	Kind Kind
	// State returns the state of the name, for less than Stat takes. It may only be called while List is at this name. The
	// error wraps fs.ErrNotExist if the name is removed meanwhile.
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
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return items, nil
}

// ListOnly is List for a store that asks for the Stat of each name.
func ListOnly(files Files, dir string, only []string, f func(Item) bool) error {
	for _, name := range only {
		st, err := files.Stat(path.Join(dir, name))
		if IsMissing(err) {
			continue
		}
		if err != nil || !f(Item{Name: name, Kind: st.Kind, State: func() (Stat, error) { return st, nil }}) {
			return err
		}
	}
	return nil
}

// StatItem is a name in a directory, with its state.
type StatItem struct {
	Name string
	Stat
}

// ListStat returns the names directly in dir for which want returns true, with their states, in no order. Names that are
// removed meanwhile are left out.
func ListStat(files Files, dir string, want func(Item) bool) (items []StatItem, err error) {
	var failed error
	err = files.List(dir, nil, func(item Item) bool {
		if !want(item) {
			return true
		}
		switch st, err := item.State(); {
		case err == nil:
			items = append(items, StatItem{item.Name, st})
		case !IsMissing(err):
			failed = err
		}
		return failed == nil
	})
	return items, cmp.Or(failed, err)
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
