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

// WriteLines writes the lines of in to the control file at a path, until in or ctx ends; out gets
// the answers. If the path is a session's leaf, in has the new target. The error of a
// refusal has the reason that last-error gives.
func (f *FS) WriteLines(ctx context.Context, at string, in io.Reader, out io.Writer) error {
	whole := f.With(context.WithoutCancel(ctx)) // an interrupt comes between lines
	_, notLink := f.ReadLink(at)
	var err error
	if notLink == nil && path.Base(at) == leafLink {
		err = whole.moveLeaf(at, in)
	} else {
		err = whole.writeControl(ctx, at, in, out)
	}
	if ctx.Err() != nil {
		return err
	}
	return whole.explain(at, err)
}

// leafLink is the link that tells where a conversation stands.
const leafLink = "leaf"

// writeControl writes lines to a control file until ctx ends.
func (f *FS) writeControl(ctx context.Context, at string, in io.Reader, out io.Writer) (err error) {
	var file *File
	err = f.at("open", at, true, func(w *walker) error {
		flag := os.O_WRONLY | os.O_APPEND
		c, ok := w.last().node.(nodes.Control)
		if ok && !c.Readable() {
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
	if err == nil {
		err = file.flush()
	}
	if err == nil {
		_, err = io.Copy(out, file)
	}
	return err
}

// feed writes the input, and after each write the answers to out, until the input or ctx ends.
func (f *File) feed(ctx context.Context, in io.Reader, out io.Writer) error {
	read, typed := io.Pipe()
	defer read.Close()
	go storage.Guarded(func() { // a read of a terminal cannot be interrupted
		defer typed.CloseWithError(errors.New("a bug: reading the input panicked")) // does nothing behind the next
		_, err := io.Copy(typed, in)
		if err != nil {
			err = fmt.Errorf("reading the input: %w", err)
		}
		typed.CloseWithError(err)
	})()
	defer context.AfterFunc(ctx, func() {
		typed.CloseWithError(ErrUnended)
	})()
	buf := make([]byte, maxWrite)
	for {
		n, err := read.Read(buf)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f.write(buf[:n])
			_, answered := io.Copy(out, f)
			if err == nil {
				err = answered
			}
		}
		if err != nil {
			return err
		}
	}
}

// maxWrite bounds the bytes of one write, as in the kernel.
const maxWrite = 128 << 10

// write writes like write(2) to a control file, which ignores the offset.
func (f *File) write(p []byte) (err error) {
	defer f.fs.answer("write", f.path, &err)
	for len(p) > 0 {
		n, errno := f.handle.(nodes.WriteHandle).Write(f.fs.ctx, p, 0)
		if n == 0 {
			if errno != 0 {
				return errno
			}
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

// moveLeaf makes the link leaf lead to the line of the input, which must be the only one.
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

// explain adds to a refusal the reason that last-error gives.
func (f *FS) explain(at string, err error) error {
	_, ok := errors.AsType[*iofs.PathError](err)
	if !ok {
		return err
	}
	text, readErr := iofs.ReadFile(f, path.Join(path.Dir(at), "last-error"))
	if readErr != nil {
		return err
	}
	line := strings.TrimSpace(string(text))
	_, reason, hasTime := strings.Cut(line, " ")
	if !hasTime {
		return err
	}
	subject, rest, hasSubject := strings.Cut(reason, ": ")
	if hasSubject && path.Base(subject) == path.Base(at) {
		reason = rest
	}
	return fmt.Errorf("%s: %s", at, reason)
}
