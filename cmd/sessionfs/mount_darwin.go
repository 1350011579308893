package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/source"
)

// serve mounts by NFS, and serves the mount until it is unmounted or a signal comes. In the
// background, ready is the pipe to the waiting process.
func serve(c mountopts.Command, ready *os.File, stderr io.Writer) error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	at := source.Place{Options: c.Options}
	defer at.Discard()
	mountpoint, err := emptyDir(at.Mountpoint)
	if err != nil {
		return refuse(exitMountpoint, "%s is not there, or not empty; choose an empty directory", at.Mountpoint)
	}
	const anyPort = 0
	server, err := openNFS(&at, anyPort, stderr)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() {
		stop()
		<-served
	}()
	command := strings.Fields("/sbin/" + mountNFS(server))
	command = append(command, mountpoint)
	text, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return refuse(exitMount, "mounting at %s failed: %s %s", mountpoint, err, text)
	}
	const lazy = true // whoever uses the mount gets errors
	if ready != nil {
		err := sayReady(ready)
		if err != nil {
			return errors.Join(err, fs.Unmount(mountpoint, lazy))
		}
	}
	look := time.Tick(5 * time.Second) // nobody tells an NFS server that its mount is gone
	for slices.Contains(fs.OurMountpoints(), mountpoint) {
		select {
		case <-look:
		case <-ctx.Done():
			return fs.Unmount(mountpoint, lazy)
		}
	}
	return nil
}

// emptyDir returns the path of an empty directory, absolute and without links.
func emptyDir(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	items, err := os.ReadDir(dir)
	if err == nil && len(items) > 0 {
		err = unix.ENOTEMPTY
	}
	return dir, err
}

// statusCommand is sessionfs status.
func statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the mounts",
		Args:  noArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			runStatus(cmd.OutOrStdout())
		},
	}
}

// runStatus prints where the mounts are.
func runStatus(out io.Writer) {
	for _, mountpoint := range fs.OurMountpoints() {
		fmt.Fprintln(out, mountpoint)
	}
}

var umountCommand func() *cobra.Command

func ourMountpoints() []string { return fs.OurMountpoints() }

// closeLater does nothing: this system has no call for all descriptors.
func closeLater() {}

func dup(from, to *os.File) error { return unix.Dup2(int(from.Fd()), int(to.Fd())) }
