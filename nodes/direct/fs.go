package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"sessionfs/nodes"
)

// FS is a file system. It is safe for concurrent use.
type FS struct {
	ctx  context.Context
	root nodes.Dir
	log  *slog.Logger
}

var (
	_ = (iofs.ReadLinkFS)((*FS)(nil))
	_ = (iofs.ReadDirFS)((*FS)(nil))
	_ = (iofs.StatFS)((*FS)(nil))
	_ = (iofs.GlobFS)((*FS)(nil))
)

// New returns the file system of the nodes below root.
func New(root nodes.Dir, log *slog.Logger) *FS { return &FS{context.Background(), root, log} }

// With returns the file system with requests that end when ctx is done.
func (f *FS) With(ctx context.Context) *FS { return &FS{ctx, f.root, f.log} }

// Lstat returns the attributes of a path.
func (f *FS) Lstat(name string) (info iofs.FileInfo, err error) {
	err = f.at("lstat", name, false, func(w *walker) error { info = w.last().info(); return nil })
	return info, err
}

// Stat is Lstat, but follows a link.
func (f *FS) Stat(name string) (info iofs.FileInfo, err error) {
	err = f.at("stat", name, true, func(w *walker) error { info = w.last().info(); return nil })
	return info, err
}

// ReadLink returns the target of a link.
func (f *FS) ReadLink(name string) (target string, err error) {
	err = f.at("readlink", name, false, func(w *walker) error { target, err = w.readlink(); return err })
	return target, err
}

// Resolve returns the path of a name's target, without links.
func (f *FS) Resolve(name string) (resolved string, err error) {
	err = f.at("resolve", name, true, func(w *walker) error { resolved = w.path(); return nil })
	return resolved, err
}

// Open opens a file for reading.
func (f *FS) Open(name string) (iofs.File, error) { return f.OpenFile(name, os.O_RDONLY) }

// OpenFile opens a file that exists; flag is as in os.OpenFile. Callers must close the file.
func (f *FS) OpenFile(name string, flag int) (file *File, err error) {
	err = f.at("open", name, true, func(w *walker) error { file, err = w.open(flag); return err })
	return file, err
}

// ReadDir lists a directory, or the directory to which a link leads.
func (f *FS) ReadDir(name string) (items []iofs.DirEntry, err error) {
	err = f.at("readdir", name, true, func(w *walker) error {
		items, err = w.list(name)
		slices.SortFunc(items, func(a, b iofs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
		return err
	})
	return items, err
}

// Glob returns the paths that match a pattern, sorted in each directory, like a shell: names with a
// leading dot only if that part of the pattern has one. It looks up parts without *, ? and [ ], so
// that unlisted names are found.
func (f *FS) Glob(pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		if _, err := f.Lstat(pattern); err != nil {
			return nil, f.ctx.Err()
		}
		return []string{pattern}, nil
	}
	dir, part := path.Split(pattern)
	dirs, err := f.Glob(path.Clean(dir))
	var found []string
	for _, dir := range dirs {
		if !strings.ContainsAny(part, `*?[\`) {
			if _, err := f.Lstat(path.Join(dir, part)); err == nil {
				found = append(found, path.Join(dir, part))
			}
			continue
		}
		items, _ := f.ReadDir(dir) // other files have no items
		for _, it := range items {
			if ok, _ := path.Match(part, it.Name()); ok && (it.Name()[0] != '.' || part[0] == '.') {
				found = append(found, path.Join(dir, it.Name()))
			}
		}
	}
	return found, cmp.Or(err, f.ctx.Err())
}

// ReplaceLink makes a path, whose last part must not be a directory, a link to target, like ln
// -sfn: it makes a link of a temporary name, which must not exist, and renames it.
func (f *FS) ReplaceLink(target, name, temporary string) error {
	return f.at("link", path.Dir(name), true, func(w *walker) error {
		dir, ok := w.last().node.(nodes.LinkDir)
		if !ok {
			return syscall.EPERM
		}
		errno := dir.Symlink(f.ctx, target, temporary)
		if errno == 0 {
			if errno = dir.Rename(f.ctx, temporary, path.Base(name), 0); errno != 0 {
				_ = dir.Remove(f.ctx, temporary)
			}
		}
		return errorOf(errno)
	})
}

// maxStale bounds the lookups of a path whose node has changed meanwhile. The kernel repeats one.
const maxStale = 4

// at calls do at the target of a path; with follow it follows a link at the path's end.
func (f *FS) at(op, name string, follow bool, do func(*walker) error) (err error) {
	defer f.answer(op, name, &err)
	if name == ".." || strings.HasPrefix(name, "../") {
		return ErrLeadsOut
	}
	if !iofs.ValidPath(strings.ToValidUTF8(name, "?")) { // names need not be UTF-8
		return iofs.ErrInvalid
	}
	for range maxStale {
		w := &walker{fs: f}
		if err = w.walk(name, follow); err == nil {
			err = do(w)
		}
		if err != syscall.ESTALE {
			break
		}
	}
	return err
}

// answer converts an error for the caller. It must be deferred. A panic is logged and becomes EIO,
// as in a mount, so that one bad session ends no command over all sessions.
func (f *FS) answer(op, name string, err *error) {
	if reason := recover(); reason != nil {
		f.log.Error("a bug: a request panicked", "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
		*err = syscall.EIO
	}
	if *err == syscall.EINTR && f.ctx.Err() != nil {
		*err = context.Cause(f.ctx)
	}
	if has := (*iofs.PathError)(nil); *err != nil && !errors.As(*err, &has) {
		*err = &iofs.PathError{Op: op, Path: name, Err: *err}
	}
}

// errorOf returns nil for an errno of 0.
func errorOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
