package main

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"

	"github.com/spf13/cobra"
)

// tarCommand is sessionfs tar: it writes a tar archive of what tar finds in a mount.
func tarCommand() *cobra.Command {
	return onSource(&cobra.Command{
		Use:     "tar [-s SOURCE] [PATH...]",
		Short:   "Write a tar archive of what a mount would show to the standard output",
		Long:    "Write a tar archive of what a mount would show to the standard output, sorted by name.\nA PATH that is a link to a directory stands for the directory; links in it stay links.",
		Example: "  sessionfs tar by-id/019d3d | ssh host tar x",
	}, func(cmd *cobra.Command, src *source, args []string) error {
		if isTerminal(cmd.OutOrStdout()) {
			return refuse(exitUsage, "tar: the archive would go to the terminal; redirect it: sessionfs tar PATH > FILE")
		}
		out := bufio.NewWriterSize(cmd.OutOrStdout(), copySize)
		a := &archiver{cmd: cmd, src: src, out: tar.NewWriter(out), buf: make([]byte, copySize)}
		err := src.eachPath(cmd, args, func(name string) error {
			info, err := src.Stat(name)
			if err != nil {
				return err
			}
			return a.add(name, info)
		})
		if closed := cmp.Or(a.out.Close(), out.Flush()); closed != nil {
			return closed
		}
		if err == nil && a.failed {
			err = &exitError{exitFailure}
		}
		return err
	})
}

// archiver writes an archive. Not tar.Writer.AddFS, which gives up at what cannot be read, or grows meanwhile: that is
// reported here, and the archive goes on, as that of tar does.
type archiver struct {
	cmd    *cobra.Command
	src    *source
	out    *tar.Writer
	owner  owner
	buf    []byte
	failed bool
}

// add adds what info is of and what is below it, which are named in the archive as tar would do it. Its error ends the
// archive.
func (a *archiver) add(name string, info iofs.FileInfo) error {
	place := path.Clean(name) // without ./
	switch {
	case info.IsDir():
		items, err := a.src.ReadDir(place)
		if err != nil {
			return a.leaveOut(name, err)
		}
		if err := a.header(info, name+"/", ""); err != nil {
			return err
		}
		for _, it := range items {
			below := name + "/" + it.Name()
			info, err := it.Info()
			if err != nil {
				err = a.leaveOut(below, err)
			} else {
				err = a.add(below, info)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case info.Mode()&iofs.ModeSymlink != 0:
		target, err := a.src.ReadLink(place)
		if err != nil {
			return a.leaveOut(name, err)
		}
		return a.header(info, name, target)
	}
	f, err := a.src.Open(place)
	if err != nil {
		return a.leaveOut(name, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // of the version that is open
		return a.leaveOut(name, err)
	}
	if err := a.header(info, name, ""); err != nil {
		return err
	}
	return a.content(f, name, info.Size())
}

// content adds as many bytes as the header of a file has promised: what is missing of them is NULs.
func (a *archiver) content(f io.Reader, name string, size int64) error {
	n, err := io.CopyBuffer(a.out, io.LimitReader(f, size), a.buf)
	if n == size {
		return err
	}
	if _, failed := io.CopyN(a.out, nuls{}, size-n); failed != nil {
		return failed
	}
	return a.leaveOut(name+" (the rest of it)", cmp.Or(err, errors.New("it became shorter while it was read")))
}

type nuls struct{}

func (nuls) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// leaveOut reports what is not in the archive, if it is not gone; the archive goes on, unless the user has had enough.
func (a *archiver) leaveOut(name string, err error) error {
	if a.cmd.Context().Err() != nil || isGone(err) {
		return a.cmd.Context().Err()
	}
	var at *iofs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	sayError(a.cmd, fmt.Errorf("%s: %w", name, err))
	a.failed = true
	return nil
}

// header describes a node as tar describes it in a mount.
func (a *archiver) header(info iofs.FileInfo, name, target string) error {
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	a.owner = ownerOf(info, a.owner)
	h.Name, h.Format = name, tar.FormatPAX
	h.Uid, h.Gid, h.Uname, h.Gname = int(a.owner.uid), int(a.owner.gid), a.owner.user, a.owner.group
	return a.out.WriteHeader(h)
}
