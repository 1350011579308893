//go:build linux

package fs

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// maxStacked bounds how many dead mounts on one mount point are removed: a crash leaves one.
const maxStacked = 16

// maxLinks bounds a chain of symlinks, as in the kernel.
const maxLinks = 40

// CheckMountpoint returns MOUNTPOINT absolute and with its symlinks resolved, or refuses it. It
// removes dead mounts of our own there. o.Source must be absolute and resolved.
func CheckMountpoint(o mountopts.Options) (string, error) {
	path, err := ResolveMountpoint(o.Mountpoint)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", refuseMissing(o.Mountpoint)
	}
	if err != nil {
		return "", Refuse(ErrMountpoint, "MOUNTPOINT %s cannot be used: %s", o.Mountpoint, err)
	}
	err = checkMounted(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", Refuse(ErrMountpoint, "MOUNTPOINT %s cannot be used: %s", path, err)
	case !info.IsDir():
		return "", Refuse(ErrMountpoint, "MOUNTPOINT %s is not a directory", path)
	}
	err = checkOverlap(path, o)
	if err != nil {
		return "", err
	}
	if !o.NonEmpty {
		err := checkEmpty(path)
		if err != nil {
			return "", err
		}
	}
	return path, checkWritable(path, info)
}

// refuseMissing refuses a MOUNTPOINT that does not exist, with the command that makes it.
func refuseMissing(mountpoint string) error {
	missing := mountpoint
	_, err := os.Readlink(mountpoint)
	if err == nil { // mkdir does not follow a link
		abs, _ := filepath.Abs(mountpoint)
		missing = resolveFar(abs)
	}
	return Refuse(ErrMountpoint, "MOUNTPOINT %s does not exist; create it: mkdir -p %s", mountpoint, missing)
}

// checkWritable refuses a directory with an info if fusermount3 would not let this user mount there.
func checkWritable(path string, info iofs.FileInfo) error {
	if mayMount() {
		return nil
	}
	err := unix.Access(path, unix.W_OK)
	if err != nil {
		return Refuse(ErrMountpoint, "MOUNTPOINT %s cannot be written by user %d, "+
			"who therefore may not mount there: %s",
			path, os.Geteuid(), err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	isOthers := ok && int(st.Uid) != os.Geteuid()
	if isOthers && info.Mode()&iofs.ModeSticky != 0 {
		return Refuse(ErrMountpoint, "MOUNTPOINT %s is a shared directory (sticky) of user %d; choose one of your own",
			path, st.Uid)
	}
	return nil
}

// ResolveMountpoint makes a path absolute and resolves its symlinks without a request to the
// directory itself, which may be a dead mount, where every call fails.
func ResolveMountpoint(path string) (string, error) {
	short := path
	for strings.HasSuffix(short, "/.") || strings.HasSuffix(short, "/") { // the kernel would ask the mount for the end
		short = strings.TrimSuffix(short, ".")
		short = strings.TrimSuffix(short, "/")
	}
	if short == "" { // the root
		short = path
	}
	fd, err := unix.Open(short, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// checkMounted refuses a mount point with a sessionfs mounted already, and removes dead
// mounts of our own.
func checkMounted(path string) error {
	for range maxStacked {
		e, mounted := MountAt(path)
		switch {
		case !mounted || !e.IsSessionfs():
			return nil // for example a mounted disk with an empty root
		case !e.IsOurs(): // the kernel does not tell other users whether it is dead
			return Refuse(ErrMountpoint, "user %d has already mounted %s at %s; that user or root can unmount it, "+
				"dead or alive: sessionfs -u %s",
				e.User, e.Source, path, path)
		}
		switch e.status(AnswerLimit).State {
		case StateHangs:
			return Refuse(ErrMountpoint, "%s is already mounted at %s, but does not answer; if it stays so, "+
				"'sessionfs -u -z %s' detaches it all the same",
				e.Source, path, path)
		case StateDead:
			// Lazily: programs with open files in it get errors in any case.
			err := unmount(path, true)
			if err != nil {
				return Refuse(ErrMountpoint, "MOUNTPOINT %s holds a dead mount that could not be removed: %s",
					path, err)
			}
		default:
			return Refuse(ErrMountpoint, "%s is already mounted at %s; unmount it with: sessionfs -u %s",
				e.Source, path, path)
		}
	}
	return Refuse(ErrMountpoint, "MOUNTPOINT %s holds more than %d dead mounts", path, maxStacked)
}

// checkOverlap refuses a mount point inside a place that the mount serves, which the mount would
// show, or one that contains such a place, which the mount would hide: the daemon would wait for
// itself. mountpoint must be resolved. It compares the directories along the paths, not the names,
// so that it recognises bind mounts too.
func checkOverlap(mountpoint string, o mountopts.Options) error {
	for _, place := range Directories(o, os.Getenv) {
		resolved := resolveFar(place)
		if isWithin(mountpoint, resolved) {
			return Refuse(ErrMountpoint, "MOUNTPOINT %s lies in SOURCE (%s); choose a directory outside of it",
				mountpoint, place)
		}
		if isWithin(resolved, mountpoint) {
			return Refuse(ErrMountpoint, "MOUNTPOINT %s would hide SOURCE (%s); "+
				"choose a directory that does not contain it", mountpoint, place)
		}
	}
	return nil
}

// ServedAt returns the directory of a mount, or its mount point, that a path lies in. ok is false if
// it lies in none.
func ServedAt(o mountopts.Options, path string) (dir string, ok bool) {
	for _, dir := range append(Directories(o, os.Getenv), o.Mountpoint) {
		if isWithin(path, resolveFar(dir)) {
			return dir, true
		}
	}
	return "", false
}

// resolveFar resolves the symlinks of an absolute path as far as there is something. Of more than maxLinks it follows
// the first ones.
func resolveFar(path string) string {
	for range maxLinks {
		resolved, err := ResolveMountpoint(path)
		if err == nil || path == "/" {
			return resolved
		}
		dir := resolveFar(filepath.Dir(path))
		target, err := os.Readlink(path)
		if err != nil {
			return filepath.Join(dir, filepath.Base(path))
		}
		path = target
		if !filepath.IsAbs(target) {
			path = filepath.Join(dir, target)
		}
	}
	return path
}

// checkEmpty refuses a directory that is not empty: the mount would hide its files. Of the control
// files, new-session alone becomes a real file when it is written to without a mount.
func checkEmpty(path string) error {
	d, err := storage.OpenDir(path)
	if err != nil {
		return Refuse(ErrMountpoint, "MOUNTPOINT %s cannot be read by user %d: %s", path, os.Geteuid(), err)
	}
	defer d.Close()
	names, err := d.Readdirnames(2) // enough to know of another name beside new-session
	switch {
	case len(names) == 1 && names[0] == nodes.NewSessionName.Name:
		return Refuse(ErrMountpoint, "MOUNTPOINT %s is not empty: %s was written while nothing was mounted, "+
			"so it is a file. "+
			"Move it away (mv %[1]s/%[2]s FILE), mount, and have its lines done: cat FILE > %[1]s/%[2]s",
			path, nodes.NewSessionName.Name)
	case len(names) > 0:
		return Refuse(ErrMountpoint, "MOUNTPOINT %s is not empty (it holds %q); move that away, "+
			"choose an empty directory, or hide it with -o nonempty",
			path, names[0])
	case err != nil && !errors.Is(err, io.EOF):
		return Refuse(ErrMountpoint, "MOUNTPOINT %s cannot be read: %s", path, err)
	}
	return nil
}

// mayMount reports whether this process has CAP_SYS_ADMIN.
func mayMount() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // version 3 of the call writes two
	err := unix.Capget(&header, &data[0])
	if err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
