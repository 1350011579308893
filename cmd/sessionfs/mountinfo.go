//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"

	"sessionfs/mountopts"
)

// mountEntry holds the fields that we need of a line of /proc/self/mountinfo.
type mountEntry struct {
	mountpoint string
	fsType     string
	source     string
	uid        int    // user_id of a FUSE mount, the user who made it; -1 for other types
	minor      uint32 // of the device number, by which fusectl names the connection of a FUSE mount
}

// isSessionfs reports whether it is a mount of this program, by any user.
func (e mountEntry) isSessionfs() bool { return e.fsType == mountopts.FSType }

// ours reports whether it is a mount of this program by this user.
func (e mountEntry) ours() bool { return e.isSessionfs() && e.uid == os.Geteuid() }

// allMounts reads the mount table. On one mount point the uppermost mount is the last.
func allMounts() (all []mountEntry) {
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil
	}
	for _, i := range infos {
		all = append(all, entryOf(i))
	}
	return all
}

func entryOf(i *mountinfo.Info) mountEntry {
	e := mountEntry{mountpoint: i.Mountpoint, fsType: i.FSType, source: i.Source, uid: -1, minor: uint32(i.Minor)}
	for option := range strings.SplitSeq(i.VFSOptions, ",") {
		_, _ = fmt.Sscanf(option, "user_id=%d", &e.uid) // another option changes nothing
	}
	return e
}

// mountAt returns the topmost mount at path, which must be absolute and resolved.
func mountAt(path string) (found mountEntry, ok bool) {
	for _, e := range allMounts() {
		if e.mountpoint == path {
			found, ok = e, true
		}
	}
	return found, ok
}

// mountWith returns a mount of this program that contains path or whose SOURCE is path, which must be absolute and
// resolved.
func mountWith(path string) (mountEntry, bool) {
	for _, e := range allMounts() {
		if e.isSessionfs() && (e.source == path || strings.HasPrefix(path, e.mountpoint+"/")) {
			return e, true
		}
	}
	return mountEntry{}, false
}

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
