package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/names"
)

// MountTree is the tree that a mount of SOURCE shows, for a command without a mount.
type MountTree struct {
	*fs.Unmounted
	*Place
	ctx  context.Context // of the command
	kind Arguments
}

// OpenTree opens the tree of the place with options of a mount, for a command with arguments of a kind. ctx ends its
// reads. It prints warnings and, at debug level if debug is set, its log to stderr. Callers must close the tree; if it
// fails, they need not discard the place.
func (p *Place) OpenTree(ctx context.Context, kind Arguments, options []string, debug bool, stderr io.Writer) (
	t *MountTree, err error,
) {
	defer func() {
		if err != nil {
			p.Discard()
		}
	}()
	const sloppy = false // an unknown option is refused
	p.Options, err = mountopts.ParseOptions(p.Options, options, sloppy)
	if err != nil {
		return nil, fs.Refuse(fs.ErrUsage, "%s", err)
	}
	if p.Mountpoint == "" { // otherwise the daemon has told the options, which are prepared
		err := p.Prepare(stderr)
		if err != nil {
			return nil, err
		}
	}
	level := slog.LevelError // the command itself prints refusals
	if debug || p.Debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	files, err := fs.Open(p.Options, log)
	if err != nil && !errors.Is(err, fs.ErrOption) {
		err = fs.Refuse(fs.ErrSource, "%s", err)
	}
	if err != nil {
		return nil, err
	}
	for _, out := range files.Refused() {
		fmt.Fprintln(stderr, "sessionfs: warning:", names.Visible(out))
	}
	t = &MountTree{Unmounted: files, Place: p, kind: kind}
	t.Use(ctx)
	return t, nil
}

// Context returns the context that ends the reads of the tree.
func (t *MountTree) Context() context.Context { return t.ctx }

// Use makes the reads of the tree end with ctx.
func (t *MountTree) Use(ctx context.Context) {
	t.FS = t.With(ctx)
	t.ctx = ctx
}

// Close closes the tree, and discards its place.
func (t *MountTree) Close() {
	t.Unmounted.Close()
	t.Discard()
}

// local returns the path in the tree of an argument that is a path of this machine. ok is false for another argument,
// and for a path that the tree does not show.
func (t *MountTree) local(arg string) (shown string, ok bool) {
	if t.kind == Elsewhere || t.kind == Words {
		return "", false
	}
	shown, ok = t.loneShown(arg)
	if ok {
		return shown, true
	}
	dir, err := filepath.EvalSymlinks(arg)
	isSource := err == nil && arg != "." && IsSame(dir, t.Source) // . may be a path of the tree
	if isSource {
		return ".", true
	}
	for _, realPath := range fs.RealPaths(arg) {
		shown, ok := t.shownAs(realPath)
		if !ok {
			continue
		}
		file, rest, isInSession := strings.Cut(shown, layout.SessionSuffix+"/")
		if isInSession { // a name in a session, behind its file
			shown = file + "/" + rest
		}
		_, err := t.Lstat(shown)
		if err == nil {
			return shown, true
		}
	}
	return "", false
}

// shownAs returns the path in the tree of a path of this machine without links, by its place in SOURCE or in a mount
// of SOURCE. Nothing need be there.
func (t *MountTree) shownAs(realPath string) (shown string, ok bool) {
	mount, err := fs.ShownAt(realPath)
	if mount.Mountpoint == "" {
		shown, ok = fs.ShownAs(t.Options, realPath)
		return filepath.ToSlash(shown), ok
	}
	if err != nil || mount.Source != t.Source {
		return "", false
	}
	shown, err = filepath.Rel(mount.Mountpoint, realPath)
	return filepath.ToSlash(shown), err == nil
}
