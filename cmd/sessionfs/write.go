package main

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

	"github.com/spf13/cobra"

	"sessionfs/nodes/direct"
	"sessionfs/sessioncore/storage"
)

var (
	// answering are the control files that answer each line with a line.
	answering = []string{"append", "fork", newSession}
	// writable are all that take lines.
	writable = []string{"append", "cwd", "fork", "labels", leafLink, newSession, "title"}
)

// newSession is the control file that creates sessions, leafLink the link that tells where a
// conversation stands.
const (
	newSession = "new-session"
	leafLink   = "leaf"
)

// writeCommand is sessionfs write.
func writeCommand() *cobra.Command {
	return onSource(treePaths, &cobra.Command{
		Use:   "write [-s SOURCE] PATH < LINES",
		Short: "Write to a control file: append, labels, title, fork, new-session; or leaf",
		Long: "Write the lines of the standard input to a control file of what a mount would show, or the target " +
			"of the link leaf. Answers are printed. What is refused is told with its reason, and the status is 1: " +
			"the lines before it have taken effect, those behind it have not.",
		Example: "  echo 'A better title' | sessionfs write by-id/019d3d9/title",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		paths, err := src.expand(args[0])
		switch {
		case err != nil:
			return err
		case len(paths) > 1:
			return refuse(exitUsage, "write: %s stands for %d paths; one is written at a time", args[0], len(paths))
		}
		w := &lineWriter{src: src, path: paths[0], in: cmd.InOrStdin(), out: cmd.OutOrStdout()}
		err = w.write(cmd.Context())
		if err != nil && cmd.Context().Err() == nil {
			return w.explain(err)
		}
		return err
	})
}

// lineWriter writes lines to a control file.
type lineWriter struct {
	src  *source
	path string
	in   io.Reader
	out  io.Writer
}

func (w *lineWriter) write(ctx context.Context) error {
	name := path.Base(w.path)
	if info, err := w.src.Lstat(w.path); err == nil && name == leafLink && info.Mode()&iofs.ModeSymlink != 0 {
		return w.moveLeaf()
	}
	flag := os.O_WRONLY | os.O_APPEND
	answer := func(*direct.File) error { return nil }
	if slices.Contains(answering, name) {
		flag, answer = os.O_RDWR|os.O_APPEND, w.answer
	}
	f, err := w.src.With(context.WithoutCancel(ctx)).OpenFile(w.path, flag) // an interrupt comes between lines
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
func (w *lineWriter) feed(ctx context.Context, f *direct.File, after func(*direct.File) error) error {
	in, typed := io.Pipe()
	defer in.Close()
	go storage.Guarded(func() { // a read of a terminal cannot be interrupted
		defer typed.CloseWithError(errors.New("a bug: reading the input panicked")) // does nothing behind the next
		_, err := io.Copy(typed, w.in)
		if err != nil {
			err = fmt.Errorf("reading the input: %w", err)
		}
		typed.CloseWithError(err)
	})()
	defer context.AfterFunc(ctx, func() {
		typed.CloseWithError(refuse(exitFailure, "interrupted: a line that was not ended is not written"))
	})()
	for buf := make([]byte, copySize); ; {
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

// answer prints the answers that have come.
func (w *lineWriter) answer(f *direct.File) error {
	_, err := io.Copy(w.out, f)
	return err
}

// maxTarget bounds the target of a link, in bytes, as PATH_MAX does.
const maxTarget = 4096

// moveLeaf makes the link leaf lead to the first line of the input.
func (w *lineWriter) moveLeaf() error {
	text, err := io.ReadAll(io.LimitReader(w.in, maxTarget+1))
	if err != nil {
		return fmt.Errorf("reading the input: %w", err)
	}
	target := strings.TrimSuffix(string(text), "\n")
	if target == "" || len(target) > maxTarget || strings.Contains(target, "\n") {
		return refuse(exitFailure, "%s: one line is expected, the entry to which the conversation goes back: "+
			"entries/ID.json", w.path)
	}
	return w.src.ReplaceLink(target, w.path, fmt.Sprintf(".leaf.%d", os.Getpid()))
}

// explain adds to a refusal the reason that last-error gives.
func (w *lineWriter) explain(err error) error {
	if _, ok := errors.AsType[*iofs.PathError](err); !ok {
		return err
	}
	text, readErr := iofs.ReadFile(w.src, path.Join(path.Dir(w.path), "last-error"))
	_, reason, ok := strings.Cut(strings.TrimSpace(string(text)), " ") // the time
	if readErr != nil || !ok {
		return err
	}
	if what, why, ok := strings.Cut(reason, ": "); ok && path.Base(what) == path.Base(w.path) {
		reason = why
	}
	return fmt.Errorf("%s: %s", w.path, reason)
}
