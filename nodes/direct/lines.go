package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/storage"
)

// LineWriter writes lines to a control file, or the target of a link leaf.
type LineWriter struct {
	FS   *FS
	Path string // of the file, or of a session's link leaf
	In   io.Reader
	Out  io.Writer // gets the answers
}

// The link that tells where a conversation stands, and the control files that answer each line with
// a line.
const leafLink = "leaf"

var answering = []string{"append", "fork", "new-session"}

// ErrUnended means that the writing was interrupted within a line.
var ErrUnended = errors.New("interrupted: a line that was not ended is not written")

// Write writes the lines of In until it or ctx ends.
func (w *LineWriter) Write(ctx context.Context) error {
	name := path.Base(w.Path)
	if info, err := w.FS.Lstat(w.Path); err == nil && name == leafLink && info.Mode()&iofs.ModeSymlink != 0 {
		return w.moveLeaf()
	}
	flag := os.O_WRONLY | os.O_APPEND
	answer := func(*File) error { return nil }
	if slices.Contains(answering, name) {
		flag, answer = os.O_RDWR|os.O_APPEND, w.answer
	}
	f, err := w.FS.With(context.WithoutCancel(ctx)).OpenFile(w.Path, flag) // an interrupt comes between lines
	if err != nil {
		return err
	}
	defer f.Abandon()
	if err = w.feed(ctx, f, answer); err == nil {
		err = f.Flush() // a last line without a newline
	}
	if err == nil {
		err = answer(f)
	}
	if err == nil {
		err = f.Close()
	}
	return err
}

// feed writes the input and calls after behind each write, until the input or ctx ends.
func (w *LineWriter) feed(ctx context.Context, f *File, after func(*File) error) error {
	in, typed := io.Pipe()
	defer in.Close()
	go storage.Guarded(func() { // a read of a terminal cannot be interrupted
		defer typed.CloseWithError(errors.New("a bug: reading the input panicked")) // does nothing behind the next
		_, err := io.Copy(typed, w.In)
		if err != nil {
			err = fmt.Errorf("reading the input: %w", err)
		}
		typed.CloseWithError(err)
	})()
	defer context.AfterFunc(ctx, func() {
		typed.CloseWithError(ErrUnended)
	})()
	for buf := make([]byte, writeSize); ; {
		n, err := in.Read(buf)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			_, err = f.Write(buf[:n])
			if answered := after(f); err == nil {
				err = answered
			}
		}
		if err != nil {
			return err
		}
	}
}

// writeSize is how much of the input is read at a time, in bytes.
const writeSize = 128 << 10

// answer prints the answers that have come.
func (w *LineWriter) answer(f *File) error {
	_, err := io.Copy(w.Out, f)
	return err
}

// maxTarget bounds the target of a link, in bytes, as PATH_MAX does.
const maxTarget = 4096

// moveLeaf makes the link leaf lead to the first line of the input.
func (w *LineWriter) moveLeaf() error {
	text, err := io.ReadAll(io.LimitReader(w.In, maxTarget+1))
	if err != nil {
		return fmt.Errorf("reading the input: %w", err)
	}
	target := strings.TrimSuffix(string(text), "\n")
	if target == "" || len(target) > maxTarget || strings.Contains(target, "\n") {
		return fmt.Errorf("%s: one line is expected, the entry to which the conversation goes back: "+
			"entries/ID.json", w.Path)
	}
	return w.FS.ReplaceLink(target, w.Path, fmt.Sprintf(".leaf.%d", os.Getpid()))
}

// Explain adds to a refusal the reason that last-error gives.
func (w *LineWriter) Explain(err error) error {
	if _, ok := errors.AsType[*iofs.PathError](err); !ok {
		return err
	}
	text, readErr := iofs.ReadFile(w.FS, path.Join(path.Dir(w.Path), "last-error"))
	_, reason, ok := strings.Cut(strings.TrimSpace(string(text)), " ") // the time
	if readErr != nil || !ok {
		return err
	}
	if what, why, ok := strings.Cut(reason, ": "); ok && path.Base(what) == path.Base(w.Path) {
		reason = why
	}
	return fmt.Errorf("%s: %s", w.Path, reason)
}
