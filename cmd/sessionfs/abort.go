//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// connections is where fusectl shows the connections of FUSE mounts, each as a directory with a file "abort", which
// belongs to the user who mounted.
const connections = "/sys/fs/fuse/connections"

// abort detaches a mount and ends its connection: whoever waits for it gets an error.
func abort(e mountEntry) error {
	err := os.WriteFile(filepath.Join(connections, strconv.FormatUint(uint64(e.minor), 10), "abort"), []byte("1"), 0)
	switch {
	case err == nil:
		return unmount(e.mountpoint, true)
	case mayMount(): // fusectl may not be mounted; forced, umount2(2) aborts as well
		return unix.Unmount(e.mountpoint, unix.MNT_FORCE|unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return err
}
