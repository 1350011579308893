package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// ErrUnended means that the writing was interrupted within a line.
var ErrUnended = errors.New("interrupted: a line that was not ended is not written")

// WriteLines writes the lines of in to the control file at the path name, until in or ctx ends; out gets
// the answers. If the path is a session's leaf, in has the new target. The error of a
// refusal has the reason that last-error gives.
func (f *FS) WriteLines(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	whole := f.With(context.WithoutCancel(ctx)) // an interrupt comes between lines
	_, err := f.ReadLink(name)
	isLink := err == nil
	if isLink && path.Base(name) == leafLink {
		err = whole.moveLeaf(name, in)
	} else {
		err = whole.writeControl(ctx, name, in, out)
	}
	if ctx.Err() != nil { // last-error says nothing of an interrupt
		return err
	}
	return whole.explain(name, err)
}

// leafLink is the link that tells where a conversation stands.
const leafLink = "leaf"

// writeControl writes lines to the control file at the path name until in or ctx ends, and the answers to out.
// f is for requests that nothing interrupts.
func (f *FS) writeControl(ctx context.Context, name string, in io.Reader, out io.Writer) (err error) {
	var file *File
	err = f.at("open", name, true, func(w *walker) error {
		flag := os.O_WRONLY | os.O_APPEND
		control, isControl := w.last().node.(nodes.Control)
		if isControl && !control.Readable() {
			flag = os.O_RDWR | os.O_APPEND // its answers are read
		}
		file, err = w.open(flag)
		return err
	})
	if err != nil {
		return err
	}
	defer file.Close()
	err = file.feed(ctx, in, out)
	if err != nil {
		return err
	}
	err = file.flush()
	if err != nil {
		return err
	}
	_, err = io.Copy(out, file) // the answer to a line without a newline
	return err
}

// feed writes the input, and after each write the answers to out, until the input or ctx ends. The error is
// ErrUnended if ctx ends.
func (f *File) feed(ctx context.Context, in io.Reader, out io.Writer) error {
	input := startReading(ctx, in)
	defer input.Close()
	buf := make([]byte, maxWrite)
	for {
		n, err := input.Read(buf)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = f.write(buf[:n])
		_, copyErr := io.Copy(out, f) // also of the lines before a refused one
		if err == nil {
			err = copyErr
		}
		if err != nil {
			return err
		}
	}
}

// startReading returns a reader of in. Its reads fail with ErrUnended when ctx is done: a read of a terminal
// itself cannot be interrupted. The caller must close the reader.
func startReading(ctx context.Context, in io.Reader) *io.PipeReader {
	read, typed := io.Pipe()
	copyInput := storage.Guarded(func() {
		defer typed.CloseWithError(errors.New("a bug: reading the input panicked")) // does nothing after the next
		_, err := io.Copy(typed, in)
		if err != nil {
			err = fmt.Errorf("reading the input: %w", err)
		}
		typed.CloseWithError(err)
	})
	go copyInput()
	context.AfterFunc(ctx, func() {
		typed.CloseWithError(ErrUnended)
	})
	return read
}

// maxWrite bounds the bytes of one write, as in the kernel.
const maxWrite = 128 << 10

// write writes all of p, like a program with write(2), to a control file, which ignores the offset.
func (f *File) write(p []byte) (err error) {
	defer f.fs.answer("write", f.path, &err)
	lines := f.handle.(nodes.WriteHandle)
	for len(p) > 0 {
		n, errno := lines.Write(f.fs.ctx, p, 0)
		if errno != 0 {
			return errno
		}
		if n == 0 { // it would be repeated for ever
			return syscall.EIO
		}
		p = p[n:]
	}
	return nil
}

// flush does the work of close(2): it executes a last line without a newline.
func (f *File) flush() (err error) {
	defer f.fs.answer("close", f.path, &err)
	return errorOf(f.handle.(nodes.WriteHandle).Flush(f.fs.ctx))
}

// maxTarget bounds the target of a link, in bytes, as PATH_MAX does.
const maxTarget = 4096

// newLeaf is the name of the link that replaces leaf.
const newLeaf = "." + leafLink

// moveLeaf makes the link at the path leaf lead to the line of the input, which must be the only one.
func (f *FS) moveLeaf(leaf string, in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, maxTarget+1))
	if err != nil {
		return fmt.Errorf("reading the input: %w", err)
	}
	target := strings.TrimSuffix(string(text), "\n")
	if target == "" || len(target) > maxTarget || strings.Contains(target, "\n") {
		return fmt.Errorf("%s: one line is expected, the entry to which the conversation goes back: "+
			"entries/ID.json", leaf)
	}
	return f.at("link", path.Dir(leaf), true, func(w *walker) error {
		dir, hasLinks := w.last().node.(nodes.LinkDir)
		if !hasLinks {
			return syscall.EPERM
		}
		return errorOf(replaceLeaf(f.ctx, dir, target))
	})
}

// replaceLeaf removes leaf, makes a link of another name, and renames that, as ln -sfn does.
func replaceLeaf(ctx context.Context, dir nodes.LinkDir, target string) syscall.Errno {
	errno := dir.Remove(ctx, leafLink) // it writes nothing; where links are refused, the reason names leaf
	if errno != 0 {
		return errno
	}
	errno = dir.Symlink(ctx, target, newLeaf)
	if errno != 0 {
		return errno
	}
	errno = dir.Rename(ctx, newLeaf, leafLink, 0) // it replaces a leaf that is back
	if errno != 0 {
		_ = dir.Remove(ctx, newLeaf)
	}
	return errno
}

// explain returns the reason that last-error gives for a refusal at the path name, in place of the error. It
// returns another error, nil, and a refusal without a reason, as they are.
func (f *FS) explain(name string, err error) error {
	_, isRefusal := errors.AsType[*iofs.PathError](err)
	if !isRefusal {
		return err
	}
	text, readErr := iofs.ReadFile(f, path.Join(path.Dir(name), "last-error"))
	if readErr != nil {
		return err
	}
	line := strings.TrimSpace(string(text))
	_, reason, hasTime := strings.Cut(line, " ")
	if !hasTime {
		return err
	}
	subject, rest, hasSubject := strings.Cut(reason, ": ")
	if hasSubject && path.Base(subject) == path.Base(name) {
		reason = rest // the error begins with the path
	}
	return fmt.Errorf("%s: %s", name, reason)
}
