package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sessionfs/fs/direct"
)

// tarCommand is sessionfs tar: it writes a tar archive of what tar finds in a mount.
func tarCommand() *cobra.Command {
	return onSource(&cobra.Command{
		Use:     "tar [-s SOURCE] [PATH...]",
		Short:   "Write a tar archive of what a mount would show to the standard output",
		Long:    "Write a tar archive of what a mount would show to the standard output, sorted by name.\nA PATH that is a link to a directory stands for the directory; links in it stay links.",
		Example: "  sessionfs tar by-id/019d3d | ssh host tar x",
	}, func(cmd *cobra.Command, src *source, args []string) error {
		if terminalWidth(cmd.OutOrStdout()) > 0 {
			return refuse(exitUsage, "tar: the archive would go to the terminal; redirect it: sessionfs tar PATH > FILE")
		}
		paths, err := src.expand(cmd.Context(), args)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(cmd.OutOrStdout(), copySize)
		a := &archiver{cmd: cmd, out: tar.NewWriter(out), owners: ownerNames{}, buf: make([]byte, copySize)}
		err = eachPath(cmd, paths, func(path string) error { return a.addPath(cmd.Context(), src, path) })
		if closed := a.out.Close(); closed != nil {
			return closed
		}
		if flushed := out.Flush(); flushed != nil {
			return flushed
		}
		if err == nil && a.failed {
			err = &exitError{exitFailure}
		}
		return err
	})
}

// archiver writes an archive. What cannot be read is reported and left out, as tar does.
type archiver struct {
	cmd    *cobra.Command
	out    *tar.Writer
	owners ownerNames
	buf    []byte
	failed bool
}

// addPath adds what a path stands for, under that name.
func (a *archiver) addPath(ctx context.Context, src *source, name string) error {
	n, err := src.Find(ctx, name, true)
	if err != nil {
		return &iofs.PathError{Op: "tar", Path: name, Err: err}
	}
	defer n.Forget()
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		name = "."
	}
	return a.add(ctx, n, name)
}

// add adds a node and what is below it. Its error ends the archive.
func (a *archiver) add(ctx context.Context, n *direct.Node, name string) error {
	switch info := n.Info(); {
	case info.IsDir():
		return a.addDir(ctx, n, name)
	case info.Mode()&iofs.ModeSymlink != 0:
		target, err := n.Readlink(ctx)
		if err != nil {
			return a.leaveOut(ctx, name, err)
		}
		return a.out.WriteHeader(a.header(info, name, tar.TypeSymlink, target))
	default:
		return a.addFile(ctx, n, name)
	}
}

func (a *archiver) addDir(ctx context.Context, n *direct.Node, name string) error {
	names, err := n.List(ctx)
	if err != nil {
		return a.leaveOut(ctx, name, err)
	}
	if err := a.out.WriteHeader(a.header(n.Info(), name+"/", tar.TypeDir, "")); err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b direct.Name) int { return strings.Compare(a.Name, b.Name) })
	for _, item := range names {
		below := name + "/" + item.Name
		if err := a.addName(ctx, n, item.Name, below); err != nil {
			return err
		}
	}
	return nil
}

// addName adds what has a name in a directory. What is gone since the listing, or changes while it is looked up, is
// looked up again.
func (a *archiver) addName(ctx context.Context, dir *direct.Node, item, name string) error {
	for again := range 2 {
		n, err := dir.Lookup(ctx, item)
		if err == nil {
			err = a.add(ctx, n, name)
			n.Forget()
		}
		switch {
		case errors.Is(err, errChanged) && again == 0:
			continue
		case errors.Is(err, errChanged):
			return a.leaveOut(ctx, name, syscall.ESTALE)
		case isGone(err):
			return nil
		}
		var errno syscall.Errno
		if errors.As(err, &errno) && !errors.Is(err, syscall.EPIPE) {
			return a.leaveOut(ctx, name, err)
		}
		return err
	}
	return nil
}

// errChanged means that a file is not any more what was looked up.
var errChanged = errors.New("changed")

func (a *archiver) addFile(ctx context.Context, n *direct.Node, name string) error {
	f, err := n.Open(ctx, syscall.O_RDONLY)
	if errors.Is(err, syscall.ESTALE) {
		return errChanged
	} else if err != nil {
		return a.leaveOut(ctx, name, err)
	}
	defer f.Close()
	info, err := f.Info() // of the version that is open
	if err != nil {
		return a.leaveOut(ctx, name, err)
	}
	if err := a.out.WriteHeader(a.header(info, name, tar.TypeReg, "")); err != nil || info.Size() == 0 {
		return err
	}
	content := &sized{from: f, left: info.Size()}
	if _, err := io.CopyBuffer(struct{ io.Writer }{a.out}, content, a.buf); err != nil {
		return err
	}
	if content.err != nil {
		return a.leaveOut(ctx, name+" (the rest of it)", content.err)
	}
	return nil
}

// leaveOut reports what is not in the archive; the archive goes on, unless the user has had enough.
func (a *archiver) leaveOut(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	sayError(a.cmd, fmt.Errorf("%s: %w", name, err))
	a.failed = true
	return nil
}

// header describes a node as tar describes it in a mount.
func (a *archiver) header(info direct.Info, name string, kind byte, target string) *tar.Header {
	uid, gid := info.Owner()
	h := &tar.Header{
		Typeflag: kind, Name: name, Linkname: target, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(),
		Uid: int(uid), Gid: int(gid), Uname: a.owners.user(uid), Gname: a.owners.group(gid), Format: tar.FormatPAX,
	}
	if kind == tar.TypeReg {
		h.Size = info.Size()
	}
	return h
}

// sized reads exactly as many bytes as an archive's header has promised: what is missing of them is NULs, and err says
// why.
type sized struct {
	from io.Reader
	left int64
	err  error
}

func (s *sized) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.left)]
	n := 0
	if s.err == nil {
		var err error
		if n, err = s.from.Read(p); err == io.EOF {
			s.err = errors.New("it became shorter while it was read")
		} else if err != nil {
			s.err = err
		}
	}
	if n == 0 {
		clear(p)
		n = len(p)
	}
	s.left -= int64(n)
	return n, nil
}
