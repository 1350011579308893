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

// OpenTree opens the tree of the place with options of a mount. Callers must close it; if it fails,
// they need not discard the place. The arguments of the command are of a kind.
func (p *Place) OpenTree(ctx context.Context, kind Arguments, options []string, debug bool, stderr io.Writer) (
	t *MountTree, err error,
) {
	defer func() {
		if err != nil {
			p.Discard()
		}
	}()
	p.Options, err = mountopts.ParseOptions(p.Options, options, false)
	if err != nil {
		return nil, fs.Refuse(fs.ErrUsage, "%s", err)
	}
	if p.Mountpoint == "" {
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

// local returns the path in the tree of an argument that is a path of this machine.
func (t *MountTree) local(arg string) (shown string, ok bool) {
	if t.kind == Elsewhere || t.kind == Words {
		return "", false
	}
	if shown, ok := t.loneShown(arg); ok {
		return shown, true
	}
	dir, err := filepath.EvalSymlinks(arg)
	if err == nil && arg != "." && IsSame(dir, t.Source) {
		return ".", true
	}
	for _, realPath := range fs.RealPaths(arg) {
		at, err := fs.ShownAt(realPath)
		if at.Mountpoint != "" {
			shown, _ = filepath.Rel(at.Mountpoint, realPath)
			ok = err == nil && at.Source == t.Source
		} else {
			shown, ok = fs.ShownAs(t.Options, realPath)
		}
		shown = filepath.ToSlash(shown)
		if ok {
			file, rest, cut := strings.Cut(shown, layout.SessionSuffix+"/")
			if cut { // a name in a session, behind its file
				shown = file + "/" + rest
			}
			_, err := t.Lstat(shown)
			if err == nil {
				return shown, true
			}
		}
	}
	return "", false
}
