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

	"sessionfs/mountopts"
)

// serve mounts by NFS, and serves the mount until it is unmounted or a signal comes. In the
// background, ready is the pipe to the waiting process.
func serve(c mountopts.Command, ready *os.File, stderr io.Writer) error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	at := place{Options: c.Options}
	defer at.remove()
	mountpoint, err := filepath.EvalSymlinks(at.Mountpoint)
	if err == nil {
		mountpoint, err = filepath.Abs(mountpoint)
	}
	if items, readErr := os.ReadDir(mountpoint); errors.Join(err, readErr) != nil || len(items) > 0 {
		return refuse(exitMountpoint, "%s is not there, or not empty; choose an empty directory", at.Mountpoint)
	}
	server, err := at.openNFS(0, stderr)
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
			return errors.Join(err, unmountCommand(mountpoint, true))
		}
	}
	for look := time.Tick(5 * time.Second); slices.Contains(ourMountpoints(), mountpoint); {
		select {
		case <-look:
		case <-ctx.Done():
			return unmountCommand(mountpoint, true)
		}
	}
	return nil
}

// ourMountpoints returns the mount points that this program serves. The path that it exports tells
// its mounts.
func ourMountpoints() (found []string) {
	mounts := make([]unix.Statfs_t, 1024)
	n, _ := unix.Getfsstat(mounts, unix.MNT_NOWAIT)
	for i := range mounts[:max(n, 0)] {
		from := unix.ByteSliceToString(mounts[i].Mntfromname[:])
		if path, ok := strings.CutPrefix(from, "127.0.0.1:/"); ok && len(path) == 26 {
			found = append(found, unix.ByteSliceToString(mounts[i].Mntonname[:]))
		}
	}
	return found
}

// unmountCommand unmounts, with force also a mount that is in use.
func unmountCommand(mountpoint string, force bool) error {
	ours := ourMountpoints()
	if !slices.ContainsFunc(realPaths(mountpoint), func(real string) bool { return slices.Contains(ours, real) }) {
		return refuse(exitUnmount, "%s is no mount of sessionfs", mountpoint)
	}
	args := []string{mountpoint}
	if force {
		args = []string{"-f", mountpoint}
	}
	if text, err := exec.Command("/sbin/umount", args...).CombinedOutput(); err != nil {
		return refuse(exitUnmount, "cannot unmount %s: %s %s", mountpoint, err, text)
	}
	return nil
}

var systemCommands = []commandMaker{{"status", func() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the mounts",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			for _, m := range ourMountpoints() {
				fmt.Fprintln(cmd.OutOrStdout(), m)
			}
		},
	}
}}}

// closeLater does nothing: this system has no call for all descriptors.
func closeLater() {}

func dup(from, to *os.File) error { return unix.Dup2(int(from.Fd()), int(to.Fd())) }
