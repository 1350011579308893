//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// maxStacked bounds how many dead mounts on one mount point are removed: a crash leaves one.
const maxStacked = 16

// maxLinks bounds a chain of symlinks, as in the kernel.
const maxLinks = 40

// checkMountpoint returns MOUNTPOINT absolute and with its symlinks resolved, or refuses it. It
// removes dead mounts of our own there. o.Source must be absolute and resolved.
func checkMountpoint(o mountopts.Options) (string, error) {
	arg := o.Mountpoint
	path, err := resolveMountpoint(arg)
	if errors.Is(err, iofs.ErrNotExist) {
		missing := arg
		if _, err := os.Readlink(arg); err == nil { // mkdir does not follow a link
			abs, _ := filepath.Abs(arg)
			missing = resolveFar(abs)
		}
		return "", refuse(exitMountpoint, "MOUNTPOINT %s does not exist; create it: mkdir -p %s", arg, missing)
	}
	if err != nil {
		return "", refuse(exitMountpoint, "MOUNTPOINT %s cannot be used: %s", arg, err)
	}
	if err := checkMounted(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", refuse(exitMountpoint, "MOUNTPOINT %s cannot be used: %s", path, err)
	case !info.IsDir():
		return "", refuse(exitMountpoint, "MOUNTPOINT %s is not a directory", path)
	}
	if err := checkOverlap(path, o); err != nil {
		return "", err
	}
	if !o.NonEmpty {
		if err := checkEmpty(path); err != nil {
			return "", err
		}
	}
	return path, checkWritable(path, info)
}

// checkWritable refuses a directory on which fusermount3 would not let this user mount.
func checkWritable(path string, info iofs.FileInfo) error {
	if mayMount() {
		return nil
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return refuse(exitMountpoint, "MOUNTPOINT %s cannot be written by user %d, "+
			"who therefore may not mount there: %s",
			path, os.Geteuid(), err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && info.Mode()&iofs.ModeSticky != 0 && int(st.Uid) != os.Geteuid() {
		return refuse(exitMountpoint, "MOUNTPOINT %s is a shared directory (sticky) of user %d; choose one of your own",
			path, st.Uid)
	}
	return nil
}

// resolveMountpoint makes a path absolute and resolves its symlinks without a request to the
// directory itself, which may be a dead mount, on which every call fails.
func resolveMountpoint(path string) (string, error) {
	short := path
	for strings.HasSuffix(short, "/.") || strings.HasSuffix(short, "/") { // of which the mount would be asked
		short = strings.TrimSuffix(strings.TrimSuffix(short, "."), "/")
	}
	fd, err := unix.Open(cmp.Or(short, path), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// checkMounted refuses a mount point on which a sessionfs is mounted already, and removes dead
// mounts of our own.
func checkMounted(path string) error {
	for range maxStacked {
		e, mounted := mountAt(path)
		switch {
		case !mounted || !e.isSessionfs():
			return nil // for example a mounted disk with an empty root
		case !e.ours(): // the kernel does not tell other users whether it is dead
			return refuse(exitMountpoint, "user %d has already mounted %s at %s; that user or root can unmount it, "+
				"dead or alive: sessionfs -u %s",
				e.uid, e.source, path, path)
		}
		switch statusOf(e, socketLimit).State {
		case stateHangs:
			return refuse(exitMountpoint, "%s is already mounted at %s, but does not answer; if it stays so, "+
				"'sessionfs -u -z %s' detaches it all the same",
				e.source, path, path)
		case stateDead:
			// Lazily: programs with open files in it get errors in any case.
			if err := unmount(path, true); err != nil {
				return refuse(exitMountpoint, "MOUNTPOINT %s holds a dead mount that could not be removed: %s",
					path, err)
			}
		default:
			return refuse(exitMountpoint, "%s is already mounted at %s; unmount it with: sessionfs -u %s",
				e.source, path, path)
		}
	}
	return refuse(exitMountpoint, "MOUNTPOINT %s holds more than %d dead mounts", path, maxStacked)
}

// checkOverlap refuses a mount point inside a place that the mount serves, which the mount would
// show, or one that contains such a place, which the mount would hide: the daemon would wait for
// itself. mountpoint must be resolved. It compares the directories along the paths, not the names,
// so that it recognises bind mounts too.
func checkOverlap(mountpoint string, o mountopts.Options) error {
	for _, place := range fs.Directories(o, os.Getenv) {
		resolved := resolveFar(place)
		if isWithin(mountpoint, resolved) {
			return refuse(exitMountpoint, "MOUNTPOINT %s lies in SOURCE (%s); choose a directory outside of it",
				mountpoint, place)
		}
		if isWithin(resolved, mountpoint) {
			return refuse(exitMountpoint, "MOUNTPOINT %s would hide SOURCE (%s); "+
				"choose a directory that does not contain it", mountpoint, place)
		}
	}
	return nil
}

// resolveFar resolves the symlinks of an absolute path as far as there is something.
func resolveFar(path string) string {
	for range maxLinks {
		resolved, err := resolveMountpoint(path)
		if err == nil || path == "/" {
			return resolved
		}
		dir := resolveFar(filepath.Dir(path))
		target, err := os.Readlink(path)
		if err != nil {
			return filepath.Join(dir, filepath.Base(path))
		}
		if path = target; !filepath.IsAbs(target) {
			path = filepath.Join(dir, target)
		}
	}
	return path
}

// isWithin reports whether path is dir or below it; both are absolute and resolved.
func isWithin(path, dir string) bool {
	outer, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, outer) {
			return true
		}
		parent := filepath.Dir(path)
		if parent == path {
			return false
		}
		path = parent
	}
}

// checkEmpty refuses a directory that is not empty: the mount would hide its files. Of the control
// files, new-session alone becomes a real file when it is written to without a mount.
func checkEmpty(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return refuse(exitMountpoint, "MOUNTPOINT %s cannot be read by user %d: %s", path, os.Geteuid(), err)
	}
	defer d.Close()
	names, err := d.Readdirnames(2)
	switch {
	case len(names) == 1 && names[0] == newSession:
		return refuse(exitMountpoint, "MOUNTPOINT %s is not empty: %s was written while nothing was mounted, "+
			"so it is a file. "+
			"Move it away (mv %[1]s/%[2]s FILE), mount, and have its lines done: cat FILE > %[1]s/%[2]s",
			path, newSession)
	case len(names) > 0:
		return refuse(exitMountpoint, "MOUNTPOINT %s is not empty (it holds %q); move that away, "+
			"choose an empty directory, or hide it with -o nonempty",
			path, names[0])
	case err != nil && !errors.Is(err, io.EOF):
		return refuse(exitMountpoint, "MOUNTPOINT %s cannot be read: %s", path, err)
	}
	return nil
}

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

// mayAsk reports whether this user may ask the daemon of a mount: its own user, and root.
func (e mountEntry) mayAsk() bool { return e.uid == os.Geteuid() || os.Geteuid() == 0 }

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

// mountOver returns the topmost mount in which a path lies, which must be absolute and resolved.
func mountOver(path string) (found mountEntry) {
	for _, e := range allMounts() {
		if isBelow(path, e.mountpoint) && len(e.mountpoint) >= len(found.mountpoint) {
			found = e
		}
	}
	return found
}

// mountAt returns the topmost mount at path, which must be absolute and resolved.
func mountAt(path string) (found mountEntry, ok bool) {
	e := mountOver(path)
	return e, e.mountpoint == path
}

// connections is the directory in which fusectl shows the connections of FUSE mounts, each as a
// directory with the files "abort" and "waiting", which belong to the mount's user.
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
