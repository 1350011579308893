package direct

import (
	"context"
	"errors"
	"strings"
	"syscall"
)

// ErrLeadsOut means a link, or a path, that leads out of the file system: to an absolute path, or above the root.
var ErrLeadsOut = errors.New("leads out of the file system")

const (
	// maxLinks bounds how many links a path may lead through, as in the kernel.
	maxLinks = 40
	// maxPath bounds a path, in bytes, as in the kernel. Links make it no longer than maxLinks times that.
	maxPath = 4096
)

// walker resolves a path. at holds the nodes from the root to where it stands.
type walker struct {
	at    []*Node
	links int
}

// Find looks a path up; follow says that a link at its end is followed. Callers must call Forget of the node.
func (f *FS) Find(ctx context.Context, name string, follow bool) (*Node, error) {
	if len(name) > maxPath {
		return nil, syscall.ENAMETOOLONG
	}
	root, err := f.root(ctx)
	if err != nil {
		return nil, err
	}
	w := &walker{at: []*Node{root}}
	defer w.forget(0)
	if err := w.walk(ctx, strings.TrimLeft(name, "/"), follow); err != nil {
		return nil, err
	}
	last := len(w.at) - 1
	found := w.at[last]
	w.at = w.at[:last] // found keeps what it needs of them
	return found, nil
}

// forget gives the nodes from index keep on back.
func (w *walker) forget(keep int) {
	for i := len(w.at) - 1; i >= keep; i-- {
		w.at[i].Forget()
	}
	w.at = w.at[:min(keep, len(w.at))]
}

// walk goes on by a path. A slash at its end demands a directory.
func (w *walker) walk(ctx context.Context, name string, follow bool) error {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if err := w.step(ctx, part, follow || i+1 < len(parts)); err != nil {
			return err
		}
	}
	return nil
}

// step goes on by one part of a path. An empty part, as behind a slash at the end of a path, is as ".".
func (w *walker) step(ctx context.Context, part string, follow bool) error {
	here := w.at[len(w.at)-1]
	if here.attr.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return syscall.ENOTDIR
	}
	switch part {
	case "", ".":
		return nil
	case "..":
		if len(w.at) == 1 {
			return ErrLeadsOut
		}
		w.forget(len(w.at) - 1)
		return nil
	}
	n, err := here.Lookup(ctx, part)
	if err != nil {
		return err
	}
	if !follow || n.attr.Mode&syscall.S_IFMT != syscall.S_IFLNK {
		w.at = append(w.at, n)
		return nil
	}
	target, err := n.Readlink(ctx)
	n.Forget()
	switch {
	case err != nil:
		return err
	case target == "":
		return syscall.ENOENT
	case strings.HasPrefix(target, "/"):
		return ErrLeadsOut
	}
	if w.links++; w.links > maxLinks {
		return syscall.ELOOP
	}
	return w.walk(ctx, target, true)
}
