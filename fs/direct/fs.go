package direct

import (
	"context"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// FS is a file system. Paths are relative to its root, with or without a slash before them. It is safe for concurrent
// use.
type FS struct {
	raw    fuse.RawFileSystem
	caller fuse.Caller
	log    *slog.Logger
}

// New returns a file system whose requests are made by caller.
func New(raw fuse.RawFileSystem, caller fuse.Caller, log *slog.Logger) *FS {
	return &FS{raw, caller, log}
}

// header is the beginning of a request for a node.
func (f *FS) header(id uint64) fuse.InHeader { return fuse.InHeader{NodeId: id, Caller: f.caller} }

// Lstat returns what a path stands for.
func (f *FS) Lstat(ctx context.Context, name string) (iofs.FileInfo, error) {
	return f.stat(ctx, "lstat", name, false)
}

// Stat is Lstat, but follows a link.
func (f *FS) Stat(ctx context.Context, name string) (iofs.FileInfo, error) {
	return f.stat(ctx, "stat", name, true)
}

func (f *FS) stat(ctx context.Context, op, name string, follow bool) (iofs.FileInfo, error) {
	n, err := f.Find(ctx, name, follow)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	defer n.Forget()
	return n.Info(), nil
}

// ReadDir lists a directory, a link to it included. The names are in the order in which a mount lists them.
func (f *FS) ReadDir(ctx context.Context, name string) ([]Name, error) {
	var names []Name
	err := f.withNode(ctx, "readdir", name, func(n *Node) (err error) {
		names, err = n.List(ctx)
		return err
	})
	return names, err
}

// Readlink returns the target of a link.
func (f *FS) Readlink(ctx context.Context, name string) (string, error) {
	n, err := f.Find(ctx, name, false)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	defer n.Forget()
	target, err := n.Readlink(ctx)
	return target, pathError("readlink", name, err)
}

// Open opens a file for reading. Callers must close it.
func (f *FS) Open(ctx context.Context, name string) (*File, error) {
	return f.OpenFile(ctx, name, os.O_RDONLY)
}

// OpenFile opens a file that exists; flag is as in os.OpenFile. Callers must close the file.
func (f *FS) OpenFile(ctx context.Context, name string, flag int) (*File, error) {
	var file *File
	err := f.withNode(ctx, "open", name, func(n *Node) (err error) {
		file, err = n.Open(ctx, flag)
		return err
	})
	return file, err
}

// maxStale is how often a path is looked up anew when what it led to has changed meanwhile. The kernel does so once.
const maxStale = 4

// withNode calls do with the node that a path leads to, and forgets that.
func (f *FS) withNode(ctx context.Context, op, name string, do func(*Node) error) error {
	var err error
	for range maxStale {
		var n *Node
		if n, err = f.Find(ctx, name, true); err != nil {
			break
		}
		err = do(n)
		n.Forget()
		if err != syscall.ESTALE {
			break
		}
	}
	return pathError(op, name, err)
}

// pathError adds the path to an error.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if _, has := err.(*iofs.PathError); has {
		return err
	}
	return &iofs.PathError{Op: op, Path: name, Err: err}
}

// ask makes a request, which ends early when ctx is done, and returns its error. A panic is logged and becomes EIO, as
// in a mount: one bad session ends no command that goes through all.
func (f *FS) ask(ctx context.Context, request func(gone <-chan struct{}) fuse.Status) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			f.log.Error("a bug: a request panicked", "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			err = syscall.EIO
		}
	}()
	switch status := request(ctx.Done()); {
	case status.Ok():
		return nil
	case status == fuse.EINTR && ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return syscall.Errno(status)
	}
}
