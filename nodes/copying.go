package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// copying is a file on its way into sessions/ (docs/design.md section 2, Files copied in). Its content is in a temporary
// file of SOURCE, until it gets its name when it is closed or renamed. What was written after that is one more
// copy, which begins with the first.
type copying struct {
	view    *View
	files   storage.Storage
	user    uint32         // who copies
	as      *access.Caller // for whom it is done, where that has to be asked
	dirMode uint32         // of the directory, if it has to be made
	number  uint64         // tells copies of one name apart
	mode    atomic.Uint32  // as it was created, for the kernel
	idle    atomic.Int64   // since when nobody has it open, 0 if somebody has

	mu        sync.Mutex // guards what follows
	name      string     // where it is to appear, in files
	kind      layout.Copied
	in        storage.Incoming // nil until there is something
	over      storage.Object   // what has the name already, if it was opened; else nil
	set       storage.Attributes
	begun     bool  // the size was set, or something was written
	dirty     bool  // there is something that has no name yet
	moved     bool  // in has its name
	taken     bool  // what came before dirty has its name
	told      bool  // a reason was given why it does not appear
	failed    error // why it never will
	handles   int
	discarded bool
	timer     *time.Timer
}

var copyNumber atomic.Uint64

// errKilled means that the process that copied did not end well.
var errKilled error = &writer.CopyError{Why: "the program that copied it was killed before it closed the file"}

// errEmptyCopy means that nothing was copied.
var errEmptyCopy error = &writer.CopyError{Why: "it is empty"}

// newCopy returns a copy of a file that is to appear as name, with one handle.
func (v *View) newCopy(ctx context.Context, files storage.Storage, name string, kind layout.Copied, mode uint32) (*copying, error) {
	c := &copying{
		view: v, files: files, name: name, kind: kind, handles: 1,
		user: userOf(ctx), as: v.Access.caller(ctx), number: copyNumber.Add(1), dirMode: storage.DirMode,
	}
	c.mode.Store(mode & 0o777)
	dropped, err := v.copies.add(c, c.user, c.as != nil)
	if other, ok := dropped.(*copying); ok {
		other.giveUp(errManyCopies)
	}
	return c, err
}

func (c *copying) context(ctx context.Context) context.Context {
	ctx = uninterrupted(ctx)
	if c.as != nil {
		ctx = access.With(ctx, c.as)
	}
	return ctx
}

// begin makes sure that there is a temporary file to write to. Callers must hold c.mu.
func (c *copying) begin(ctx context.Context) error {
	switch {
	case c.discarded:
		return storage.ErrStale
	case c.in != nil && !c.moved:
		return nil
	}
	in, err := c.view.Writer.Receive(c.context(ctx), storage.Dir(c.name))
	if err != nil {
		return err
	}
	mode := c.mode.Load()
	if err = in.SetAttributes(storage.Attributes{Mode: &mode}); err == nil && c.in != nil {
		err = copyAll(in, c.in)
	}
	if err != nil {
		_ = in.Close()
		return err
	}
	if c.in != nil {
		_ = c.in.Close()
	}
	c.in, c.moved = in, false
	return nil
}

// copyAll copies what one file has into another.
func copyAll(to storage.Incoming, from storage.Incoming) error {
	st, err := from.Stat()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(from, 0, st.Size))
	return err
}

// write takes a piece of the content.
func (c *copying) write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return 0, errnoOf(c.failed)
	}
	if err := c.mayWrite(data, off); err != nil {
		return 0, c.refuse(err)
	}
	if err := c.begin(ctx); err != nil {
		return 0, c.refuse(err)
	}
	n, err := c.in.WriteAt(data, off)
	c.begun, c.dirty = true, true
	if err != nil { // what came may look whole, and is not
		c.failed = fmt.Errorf("the copy is not whole: %w", err)
		return 0, c.refuse(err)
	}
	return uint32(n), 0
}

// mayWrite fails where it is clear already that the copy does not begin with the file that is there, so that programs
// hear of it that do not ask what close(2) says.
func (c *copying) mayWrite(data []byte, off int64) error {
	if c.over == nil {
		return nil
	}
	if !c.begun {
		return errNotEmptied
	}
	there := make([]byte, len(data))
	n, err := c.over.ReadAt(there, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(there[:n]) != string(data[:n]) {
		return fmt.Errorf("%w: what is in %s is not what is written, and is not replaced", fs.ErrExist, c.name)
	}
	return nil
}

// setSize cuts the content, or makes room.
func (c *copying) setSize(ctx context.Context, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
	if size == 0 && c.in == nil {
		return nil
	}
	err := c.begin(ctx)
	if err == nil {
		err = c.in.Truncate(size)
	}
	if err == nil {
		c.dirty = true
	}
	return err
}

// setAttributes changes what the file will have, or has.
func (c *copying) setAttributes(ctx context.Context, a storage.Attributes) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = a.Or(c.set)
	if a.Mode != nil {
		c.mode.Store(*a.Mode & 0o777)
	}
	if c.taken && !c.dirty {
		err := c.files.SetAttributes(c.name, a)
		c.view.copies.noteStored(ctx, c.files, c.name, made{kind: c.kind})
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	return c.in.SetAttributes(a)
}

// close is called for each close(2), and when a process ends that has the file open. Unless it has a temporary name, the
// copy appears then.
func (c *copying) close(ctx context.Context) syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failed != nil:
		return errnoOf(c.failed)
	case c.dirty && whoCloses(ctx) == killed:
		c.failed = errKilled
		return c.refuse(c.failed)
	case c.kind == layout.CopiedTemporary, !c.dirty && c.taken, !c.begun && c.over != nil:
		return 0
	case !c.dirty && (c.over != nil || c.kind == layout.CopiedSession):
		return errnoOf(errEmptyCopy) // perhaps only until something is written: a shell closes what it has duplicated
	}
	return c.takeIn(ctx, c.name, c.kind)
}

// sync is called for fsync(2). What was written stays a copy without a name; close makes it durable.
func (c *copying) sync() syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errnoOf(c.failed)
}

// takeIn gives the copy a name. Callers must hold c.mu.
func (c *copying) takeIn(ctx context.Context, name string, kind layout.Copied) syscall.Errno {
	if c.failed != nil {
		return errnoOf(c.failed)
	}
	ctx = c.context(ctx)
	if err := c.begin(ctx); err != nil { // an empty file
		return c.refuse(err)
	}
	before := c.name
	c.name = name
	_, err := c.files.Stat(storage.Dir(name))
	newDir := storage.IsMissing(err)
	st, err := c.files.Stat(name)
	wasMade := c.view.copies.beginGrowing(name, st.Token)
	if storage.IsMissing(err) { // it is one that was copied in from the moment on that it has its name
		c.view.copies.noteMade(ctx, name, made{kind: kind, growing: true})
	}
	taken, err := c.view.Writer.TakeIn(ctx, name, writer.Copied{
		Incoming: c.in, Attributes: c.set, Other: kind == layout.CopiedArtifact, DirMode: c.dirMode,
	})
	if err != nil {
		c.view.copies.endGrowing(name)
		errno := c.refuse(err)
		c.name = before
		return errno
	}
	c.kind, c.dirty, c.taken, c.told = kind, false, true, false
	c.moved = c.moved || taken == writer.TakenNew
	c.view.copies.noteStored(ctx, c.files, name, made{kind: kind, grown: taken != writer.TakenNew && !wasMade})
	if newDir {
		c.view.copies.noteStored(ctx, c.files, storage.Dir(name), made{})
	}
	c.view.found(c.what())
	c.view.accepted(name)
	return 0
}

// what is how last-error calls the copy.
func (c *copying) what() string { return layout.Sessions + "/" + c.name }

// refuse records why the copy, or a part of it, was refused: in last-error of the session that is there, else in that of
// the root. Callers must hold c.mu.
func (c *copying) refuse(err error) syscall.Errno {
	c.told = true
	of := outside
	if st, statErr := c.files.Stat(c.name); statErr == nil && st.Kind == storage.KindFile && c.kind != layout.CopiedArtifact {
		of = c.name
	}
	return c.view.refuse(of, c.what(), c.what(), copyErr(err))
}

// open notes one more handle.
func (c *copying) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discarded || c.failed != nil || c.taken {
		return storage.ErrStale
	}
	c.handles++
	c.idle.Store(0)
	if c.timer != nil {
		c.timer.Stop()
	}
	return nil
}

// release is called when a handle is gone. Without one, a copy under a temporary name waits to be renamed, and any other
// is over.
func (c *copying) release() {
	c.mu.Lock()
	c.handles--
	if c.handles > 0 {
		c.mu.Unlock()
		return
	}
	if c.kind == layout.CopiedTemporary && c.failed == nil && !c.taken {
		c.idle.Store(time.Now().UnixNano())
		c.timer = time.AfterFunc(maxCopyWait, func() {
			if c.idle.Load() != 0 {
				c.giveUp(errNotRenamed)
			}
		})
		c.mu.Unlock()
		return
	}
	switch { // what close(2) did not tell
	case c.told:
	case !c.taken && (c.over == nil || c.begun):
		_ = c.refuse(errEmptyCopy)
	}
	c.mu.Unlock()
	c.end()
}

// errNotRenamed means that a copy under a temporary name was left behind.
var errNotRenamed error = &writer.CopyError{Why: "it was not renamed to the name of one"}

// end forgets the copy and removes what is left of it.
func (c *copying) end() {
	c.view.copies.remove(c)
	c.discard()
}

// giveUp is end for a copy that somebody may miss.
func (c *copying) giveUp(why error) {
	c.mu.Lock()
	if !c.discarded {
		_ = c.refuse(fmt.Errorf("it was given up: %w", why))
	}
	c.mu.Unlock()
	c.end()
}

func (c *copying) idleSince() int64 { return c.idle.Load() }

// discard removes the temporary file.
func (c *copying) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discarded {
		return
	}
	c.discarded = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.in != nil {
		_ = c.in.Close()
	}
	if c.over != nil {
		_ = c.over.Close()
	}
}

// fillAttr shows what has come. It belongs to who copies it.
func (c *copying) fillAttr(out *fuse.Attr) error {
	st, err := c.stat()
	if err != nil {
		return err
	}
	fillFile(out, st, st.Size)
	out.Mode = syscall.S_IFREG | st.Mode
	return nil
}

func (c *copying) stat() (st storage.Stat, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.discarded:
		return st, storage.ErrStale
	case c.in != nil:
		st, err = c.in.Stat()
	default:
		st, err = c.files.Stat("")
		st.Size = 0
	}
	st.Mode = c.mode.Load()
	if c.as != nil && !c.taken {
		st.UID = c.as.UID
	}
	return st, err
}

// CloseCopies gives up all copies that are not whole, or not renamed yet. It is called when the mount is gone.
func (v *View) CloseCopies() {
	for _, c := range v.copies.takeAll() {
		c.discard()
	}
}
