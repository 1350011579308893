//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// connections is where fusectl shows the connections of FUSE mounts, each as a directory with the files "abort" and
// "waiting", which belong to the user who mounted.
const connections = "/sys/fs/fuse/connections"

// control returns the path of a file of a mount's connection.
func (e mountEntry) control(name string) string {
	return filepath.Join(connections, strconv.FormatUint(uint64(e.minor), 10), name)
}

// hasRequests reports whether there are requests that the server has not answered.
func (e mountEntry) hasRequests() (bool, error) {
	waiting, err := os.ReadFile(e.control("waiting"))
	return strings.TrimSpace(string(waiting)) != "0", err
}

// abort detaches a mount and ends its connection: whoever waits for it gets an error.
func abort(e mountEntry) error {
	err := os.WriteFile(e.control("abort"), []byte("1"), 0)
	switch {
	case err == nil:
		return unmount(e.mountpoint, true)
	case mayMount(): // fusectl may not be mounted; forced, umount2(2) aborts as well
		return unix.Unmount(e.mountpoint, unix.MNT_FORCE|unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return err
}
