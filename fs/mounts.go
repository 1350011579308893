//go:build linux

package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"

	"sessionfs/mountopts"
)

// MountEntry holds the needed fields of a line of /proc/self/mountinfo.
type MountEntry struct {
	Mountpoint string
	Type       string
	Source     string
	User       int    // user_id of a FUSE mount, the user that made it; -1 for other types
	minor      uint32 // of the device number: fusectl's name for the connection of a FUSE mount
}

// IsSessionfs reports whether it is a mount of this program, by any user.
func (e MountEntry) IsSessionfs() bool { return e.Type == mountopts.FSType }

// IsOurs reports whether it is a mount of this program by this user.
func (e MountEntry) IsOurs() bool { return e.IsSessionfs() && e.User == os.Geteuid() }

// MayAsk reports whether this user may ask the daemon of a mount: its own user, and root.
func (e MountEntry) MayAsk() bool { return e.User == os.Geteuid() || os.Geteuid() == 0 }

// AllMounts reads the mount table. On one mount point the uppermost mount is the last.
func AllMounts() (all []MountEntry) {
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil
	}
	for _, i := range infos {
		all = append(all, entryOf(i))
	}
	return all
}

// entryOf returns the entry of a row of mountinfo. Its user is -1 for a file system other than FUSE.
func entryOf(i *mountinfo.Info) MountEntry {
	e := MountEntry{
		Mountpoint: i.Mountpoint,
		Type:       i.FSType,
		Source:     i.Source,
		User:       -1,
		minor:      uint32(i.Minor),
	}
	for option := range strings.SplitSeq(i.VFSOptions, ",") {
		_, _ = fmt.Sscanf(option, "user_id=%d", &e.User) // another option changes nothing
	}
	return e
}

// MountOver returns the topmost mount over a path, which must be absolute and resolved.
func MountOver(path string) (found MountEntry) {
	for _, e := range AllMounts() {
		if IsBelow(path, e.Mountpoint) && len(e.Mountpoint) >= len(found.Mountpoint) {
			found = e
		}
	}
	return found
}

// MountAt returns the topmost mount at path, which must be absolute and resolved.
func MountAt(path string) (found MountEntry, ok bool) {
	e := MountOver(path)
	return e, e.Mountpoint == path
}

// connections is the directory of fusectl with the connections of FUSE mounts, each as a
// directory with the files "abort" and "waiting", which belong to the mount's user.
const connections = "/sys/fs/fuse/connections"

// control returns the path of a file of a mount's connection.
func (e MountEntry) control(name string) string {
	return filepath.Join(connections, strconv.FormatUint(uint64(e.minor), 10), name)
}
