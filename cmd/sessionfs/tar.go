package main

import (
	"archive/tar"
	"bufio"
	"cmp"
	"fmt"
	"io"
	iofs "io/fs"
	"time"

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
		buffered := bufio.NewWriterSize(cmd.OutOrStdout(), copySize)
		out, failed := tar.NewWriter(buffered), false
		// Not tar.Writer.AddFS, which gives up at what cannot be read: that is reported here, and the archive goes on, as that
		// of tar does.
		err := src.eachPath(cmd, args, func(top string) error {
			return iofs.WalkDir(src, top, func(name string, it iofs.DirEntry, err error) error {
				if it == nil { // there is no top
					return err
				}
				var h *tar.Header
				var content iofs.File
				if err == nil {
					h, content, err = src.archived(name, it)
				}
				switch {
				case err != nil && cmd.Context().Err() != nil:
					return err
				case err != nil:
					if !isGone(err) {
						sayError(cmd, err)
						failed = true
					}
					return nil
				case content != nil:
					defer content.Close()
				}
				if top == "." && name != top {
					h.Name = "./" + h.Name
				}
				if err = out.WriteHeader(h); err == nil && content != nil {
					_, err = io.CopyN(out, content, h.Size)
				}
				if err != nil {
					err = fmt.Errorf("%s: %w; the archive is of no use", name, err)
				}
				return err
			})
		})
		if closed := cmp.Or(out.Close(), buffered.Flush()); closed != nil && err == nil {
			return closed
		}
		if err == nil && failed {
			err = ended(exitFailure)
		}
		return err
	})
}

// archived describes a node as tar describes it in a mount, and opens it if it is a file.
func (src *source) archived(name string, it iofs.DirEntry) (h *tar.Header, content iofs.File, err error) {
	info, err := it.Info()
	target := ""
	switch {
	case err != nil:
	case info.Mode()&iofs.ModeSymlink != 0:
		target, err = src.ReadLink(name)
	case !info.IsDir():
		if content, err = src.Open(name); err == nil {
			info, err = content.Stat() // of the version that is open
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if h, err = tar.FileInfoHeader(info, target); err != nil {
		return nil, nil, err
	}
	h.Name, h.Format = name, tar.FormatPAX
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	if info.IsDir() {
		h.Name += "/"
	}
	return h, content, nil
}
