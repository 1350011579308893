package nodes

import (
	"context"
	"errors"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// maxControlLine is the longest line that a control file accepts, in bytes (docs/design.md section 2).
const maxControlLine = writer.MaxLine

// uninterrupted returns the context for a write: what was begun is finished, so that no line takes effect twice because a
// program was told that it did not. It waits for a lock only for a limited time.
func uninterrupted(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// controller is what a control file does with the lines that are written to it.
type controller interface {
	// apply carries out lines in order and returns the results, which the writer can read back. At a bad line it stops
	// and returns how many lines before it took effect, with the error.
	apply(ctx context.Context, lines [][]byte) (results []string, done int, err error)
	// unfinished reports whether a last line without a newline is incomplete: then it is not carried out when a
	// descriptor is closed, since the rest may be written through another.
	unfinished(line []byte) bool
	// sync makes durable what was written.
	sync(ctx context.Context) error
	// refused records why a line was refused, in last-error and in the log, and returns the errno.
	refused(err error) syscall.Errno
	// errno returns the errno of an error without a record.
	errno(err error) syscall.Errno
	// accepted records that an open for writing ended without a refusal, which empties last-error.
	accepted()
}

// applyLines carries out lines that were written to a control file; see controller.
type applyLines func(ctx context.Context, lines [][]byte) (results []string, done int, err error)

// ControlFile is a file that accepts commands, a line each: in a session's directory append, labels, fork, title and cwd, in
// the root new-session. labels, title and cwd can be read too and have the size of what is read; the others have size 0
// (docs/design.md section 2).
type ControlFile struct {
	GeneratedFile // what reads return; its render is nil if that is nothing
	of, name      string
	// stat returns the state of the file or directory whose owner and mode it has.
	stat func(context.Context) (storage.Stat, error)
	do   applyLines
	// part reports whether a last line without a newline is incomplete; nil means never.
	part func(line []byte) bool
	// makeDurable is for fsync; nil where a line that took effect is on disk.
	makeDurable func(context.Context) error
	empty       bool // an empty line has a meaning
	single      bool // each open file accepts one line
}

// control returns the node of a control file; r is nil for one of size 0.
func (d *SessionDir) control(name string, do applyLines, r render) *ControlFile {
	return &ControlFile{
		GeneratedFile: GeneratedFile{node: node{view: d.view}, session: d.session, render: r, writable: true},
		of:            d.session.Name(), name: name, stat: d.session.Probe, do: do,
		makeDurable: func(ctx context.Context) error { return d.view.Writer.Sync(ctx, d.session) },
	}
}

func (f *ControlFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	if f.render != nil {
		return f.GeneratedFile.fillAttr(ctx, out)
	}
	st, err := f.stat(ctx)
	if err != nil {
		return err
	}
	f.fillWritable(out, st, 0)
	return nil
}

var _ = (fusefs.NodeSetattrer)((*ControlFile)(nil))

// Setattr accepts and ignores a size and times, which > and touch send, and a mode and an owner that are there
// already, as an editor's fchmod sets them. Others are those of the file behind the control file, and are refused; the log
// has that, but not last-error, which is about lines.
func (f *ControlFile) Setattr(ctx context.Context, fh fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if f.view.Archived() {
		return f.denyWrite("setattr")
	}
	errno := f.Getattr(ctx, fh, out)
	if errno != 0 {
		return errno
	}
	if mode, sets := in.GetMode(); sets && mode&07777 != out.Mode&07777 || setsOwner(in, out) {
		f.view.Log.Info("refused", "op", "setattr", "path", f.path(), "errno", syscall.EPERM, "why", errDenied)
		return syscall.EPERM
	}
	return 0
}

// setsOwner reports whether an owner is to be set that is not the one that there is.
func setsOwner(in *fuse.SetAttrIn, out *fuse.AttrOut) bool {
	uid, setsUID := in.GetUID()
	gid, setsGID := in.GetGID()
	return setsUID && uid != out.Uid || setsGID && gid != out.Gid
}

var _ = (fusefs.NodeOpener)((*ControlFile)(nil))

// Open returns a handle that accepts lines, or if only reading is asked for, one that shows the file. It can seek, which
// some programs require (Python's a+ and r+), though the offset has no meaning.
func (f *ControlFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) && f.view.Archived() {
		return nil, 0, f.denyWrite("open")
	}
	h := &controlHandle{
		file: f, empty: f.empty, single: f.single,
		mute: flags&syscall.O_ACCMODE == syscall.O_WRONLY, writes: writes(flags), appends: flags&syscall.O_APPEND != 0,
		memory: f.view.Memory, hold: f.view.Memory.Hold(),
	}
	if f.render == nil {
		return h, fuse.FOPEN_DIRECT_IO, 0
	}
	if !writes(flags) {
		return f.GeneratedFile.Open(ctx, flags)
	}
	if flags&syscall.O_ACCMODE == syscall.O_RDWR {
		shown, errno := f.GeneratedFile.handle(ctx)
		if errno != 0 {
			return nil, 0, errno
		}
		h.shown = shown
	}
	return h, fuse.FOPEN_DIRECT_IO, 0
}

func (f *ControlFile) apply(ctx context.Context, lines [][]byte) ([]string, int, error) {
	return f.do(ctx, lines)
}

func (f *ControlFile) unfinished(line []byte) bool { return f.part != nil && f.part(line) }

func (f *ControlFile) sync(ctx context.Context) error {
	if f.makeDurable == nil {
		return nil
	}
	return f.makeDurable(ctx)
}

// refused records a refusal. An id that does not exist is ENOENT, a session that no longer exists ESTALE
// (docs/design.md section 7).
func (f *ControlFile) refused(err error) syscall.Errno {
	return f.view.refuse(f.of, f.name, f.path(), f.gone(err))
}

func (f *ControlFile) errno(err error) syscall.Errno { return errnoOf(f.gone(err)) }

func (f *ControlFile) gone(err error) error {
	if f.of == outside || errors.Is(err, sessioncore.ErrNotFound) {
		return err
	}
	return staleIfGone(err)
}

func (f *ControlFile) accepted() { f.view.accepted(f.of) }

// oneByOne calls do for each line until it fails.
func oneByOne(do func(ctx context.Context, line string) (result string, err error)) applyLines {
	return func(ctx context.Context, lines [][]byte) (results []string, done int, err error) {
		for _, line := range lines {
			result, err := do(ctx, string(line))
			if err != nil {
				return results, done, err
			}
			if result != "" {
				results = append(results, result)
			}
			done++
		}
		return results, done, nil
	}
}
