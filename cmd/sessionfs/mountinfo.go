//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/moby/sys/mountinfo"

	"sessionfs/mountopts"
)

// mountEntry holds the fields that we need of a line of /proc/self/mountinfo.
type mountEntry struct {
	mountpoint string
	fsType     string
	source     string
	uid, gid   int    // user_id and group_id of a FUSE mount, the user who made it; -1 for other types
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
	e := mountEntry{mountpoint: i.Mountpoint, fsType: i.FSType, source: i.Source, uid: -1, gid: -1, minor: uint32(i.Minor)}
	for option := range strings.SplitSeq(i.VFSOptions, ",") {
		_, _ = fmt.Sscanf(option, "user_id=%d", &e.uid) // another option changes nothing
		_, _ = fmt.Sscanf(option, "group_id=%d", &e.gid)
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
