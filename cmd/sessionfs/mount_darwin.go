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
	mountpoint, err := filepath.EvalSymlinks(at.Mountpoint)
	if err == nil {
		mountpoint, err = filepath.Abs(mountpoint)
	}
	if items, readErr := os.ReadDir(mountpoint); errors.Join(err, readErr) != nil || len(items) > 0 {
		return refuse(exitMountpoint, "%s is not there, or not empty; choose an empty directory", at.Mountpoint)
	}
	server, err := openNFS(&at, 0, stderr)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() { stop(); <-served }()
	command := append(strings.Fields("/sbin/"+mountNFS(server)), mountpoint)
	if text, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return refuse(exitMount, "mounting at %s failed: %s %s", mountpoint, err, text)
	}
	if ready != nil {
		if err := sayReady(ready); err != nil {
			return errors.Join(err, fs.Unmount(mountpoint, true))
		}
	}
	for look := time.Tick(5 * time.Second); slices.Contains(fs.OurMountpoints(), mountpoint); {
		select {
		case <-look:
		case <-ctx.Done():
			return fs.Unmount(mountpoint, true)
		}
	}
	return nil
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
