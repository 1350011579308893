//go:build linux

package fs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
)

const (
	// endLimit is how long it may take a daemon of an earlier version to put new sessions on disk
	// and to end: enough for a slow disk with many of them, but one that hangs must not block -u
	// forever.
	endLimit = time.Minute
	// liveLimit is how long -z, which is for mounts that hang, waits for a sign that the daemon
	// does not.
	liveLimit = time.Second
)

// Unmount ends the mount at a path; lazy detaches it also while it is in use. A daemon of an earlier version
// also ends, after it has put new sessions on disk.
func Unmount(arg string, lazy bool) error {
	path, err := ResolveMountpoint(arg)
	if err != nil { // for example in a dead mount
		path, _ = filepath.Abs(arg)
	}
	e, err := ownMountAt(arg, path, err)
	if err != nil {
		return err
	}
	limit := AnswerLimit
	if lazy {
		limit = liveLimit
	}
	pid, status, err := e.ask(limit, AnswerLimit)
	isSilent := errors.Is(err, os.ErrDeadlineExceeded)
	if isSilent && !lazy {
		return Refuse(ErrUnmount, "%s does not answer and is still mounted; "+
			"'sessionfs -u -z %s' detaches it all the same", path, path)
	}
	if isSilent {
		// Requests that wait for the mount must not wait for ever.
		isAborted := abort(e) == nil
		if isAborted {
			return nil
		}
	}
	endDaemon := func() {}
	isEarlier := !isSilent && status.Unsaved != nil
	if isEarlier {
		endDaemon = endEarlier(pid)
	}
	if lazy && !isSilent {
		const isEnding = false
		err = detach(e, isEnding)
	} else {
		err = unmount(path, lazy)
	}
	if err != nil {
		return unmountError(path, lazy, err)
	}
	endDaemon()
	return nil
}

// ownMountAt returns the mount at a path, or an error if that is no mount which this user may unmount. unresolved
// is the error of resolving arg, or nil.
func ownMountAt(arg, path string, unresolved error) (MountEntry, error) {
	e, isMounted := MountAt(path)
	switch {
	case !isMounted && e.IsSessionfs():
		return e, Refuse(ErrUnmount, "%s lies in the mount at %s; unmount that with: sessionfs -u %s",
			path, e.Mountpoint, e.Mountpoint)
	case unresolved != nil:
		return e, Refuse(ErrUnmount, "%s cannot be resolved: %s", arg, unresolved)
	case !isMounted:
		return e, refuseUnmounted(path)
	case !e.IsSessionfs():
		return e, Refuse(ErrUnmount, "%s is a mount of type %s, not %s; unmount it with: umount %s",
			path, e.Type, mountopts.FSType, path)
	case !e.MayAsk():
		return e, Refuse(ErrUnmount, "%s was mounted by user %d; only that user or root can unmount it: "+
			"sudo sessionfs -u %s", path, e.User, path)
	}
	return e, nil
}

// unmountError returns the error of an unmount for people.
func unmountError(path string, lazy bool, err error) error {
	switch {
	case errors.Is(err, errNoMtab):
		return Refuse(ErrUnmount, "%s is still mounted: %s", path, err)
	case lazy:
		return Refuse(ErrUnmount, "%s could not be detached: %s", path, err)
	}
	return Refuse(ErrUnmount, "%s could not be unmounted: %s\n"+
		"If it is in use, 'fuser -vm %s' shows by whom; 'sessionfs -u -z %s' detaches it all the same.",
		path, err, path, path)
}

// endEarlier returns a function that ends a daemon of an earlier version after its mount is gone, and
// waits for it, endLimit at most: such a daemon puts new sessions on disk when it ends.
func endEarlier(pid int) func() {
	daemon, err := unix.PidfdOpen(pid, 0) // which no other process gets
	return func() {
		if err != nil || unix.PidfdSendSignal(daemon, unix.SIGTERM, nil, 0) != nil {
			return // it has ended, or this kernel is too old: it ends by itself
		}
		start := time.Now()
		for time.Since(start) < endLimit { // a signal may interrupt a poll
			end := []unix.PollFd{{Fd: int32(daemon), Events: unix.POLLIN}}
			n, _ := unix.Poll(end, int(endLimit.Milliseconds()))
			if n > 0 {
				return
			}
		}
	}
}

const (
	// stuckAfter is how long requests may take before it is taken that SOURCE does not answer.
	stuckAfter = 2 * time.Second
	// stuckPoll is how often it is looked whether there are any.
	stuckPoll = 100 * time.Millisecond
)

// detach detaches a mount. If requests are under way that do not end, it ends the connection too:
// else their callers would wait as long as SOURCE hangs, and so would the server, which has a
// thread in each. Where the kernel does not tell whether there are any, it does so only if
// isEnding says that the server ends.
func detach(e MountEntry, isEnding bool) error {
	const lazy = true
	start := time.Now()
	for {
		text, err := os.ReadFile(e.control("waiting"))
		isKnown := err == nil
		isQuiet := isKnown && strings.TrimSpace(string(text)) == "0"
		mayWait := isKnown || isEnding
		if isQuiet || !mayWait {
			return unmount(e.Mountpoint, lazy)
		}
		if time.Since(start) > stuckAfter {
			break
		}
		time.Sleep(stuckPoll)
	}
	err := abort(e)
	if err == nil {
		return nil
	}
	return unmount(e.Mountpoint, lazy)
}

// End unmounts, and logs the outcome. It detaches a mount that is in use, which frees the mount point: open files then
// get errors.
func (s *Server) End() {
	mountpoint := s.options.Mountpoint
	err := unmount(mountpoint, false)
	if err == nil {
		s.Wait()
		s.log.Info("unmounted", "mountpoint", mountpoint)
		return
	}
	e, ok := MountAt(mountpoint)
	if !ok || !e.IsOurs() {
		s.log.Info("already unmounted", "mountpoint", mountpoint) // Wait is about to return
		return
	}
	s.log.Warn("the mount is in use, detaching it", "mountpoint", mountpoint, "err", err)
	const isEnding = true
	err = detach(e, isEnding)
	if err != nil {
		s.log.Error("detaching failed", "mountpoint", mountpoint, "err", err)
	}
}

// EndIdle unmounts if the mount has been idle as long as limit, and returns the time until the next
// check; after the unmount that has no effect, as Wait returns. The kernel refuses to unmount a mount in use, also by a
// working directory, which makes no requests.
func (s *Server) EndIdle(limit time.Duration) (next time.Duration) {
	idle := s.Idle()
	mountpoint := s.options.Mountpoint
	if idle < limit {
		return limit - idle
	}
	// Another mount on top of it, or in its place, is not ours to unmount.
	e, ok := MountAt(mountpoint)
	if !ok || e.minor != s.minor {
		return limit
	}
	s.log.Info("idle, unmounting", "mountpoint", mountpoint, "for", idle.Round(time.Second))
	err := unmount(mountpoint, false)
	if err != nil {
		s.log.Info("idle, but in use: still mounted", "mountpoint", mountpoint, "err", err)
	}
	return limit
}

// abort detaches a mount and ends its connection: waiting callers get an error.
func abort(e MountEntry) error {
	err := os.WriteFile(e.control("abort"), []byte("1"), 0)
	switch {
	case err == nil:
		return unmount(e.Mountpoint, true)
	case mayMount(): // fusectl may not be mounted; forced, umount2(2) aborts as well
		return unix.Unmount(e.Mountpoint, unix.MNT_FORCE|unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return err
}

// refuseUnmounted refuses a path without a mount. It may be the SOURCE of a mount.
func refuseUnmounted(path string) error {
	for _, e := range AllMounts() {
		if e.IsSessionfs() && e.Source == path {
			return Refuse(ErrUnmount, "%s is SOURCE of the mount at %s; unmount that with: sessionfs -u %s",
				path, e.Mountpoint, e.Mountpoint)
		}
	}
	return Refuse(ErrUnmount, "nothing is mounted at %s; 'findmnt -t %s' lists what is", path, mountopts.FSType)
}

// unmount unmounts path, which must be absolute and resolved, with umount2(2) if that is permitted,
// else with fusermount3. lazy detaches a mount that is in use. The error wraps errNoMtab where fusermount3 cannot
// unmount for want of the table.
func unmount(path string, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	err := unix.Unmount(path, flags)
	if err == nil || !errors.Is(err, unix.EPERM) {
		return err
	}
	bin, err := fusermount()
	if err != nil {
		return fmt.Errorf("it needs root or fusermount3 (package fuse3): %w", err)
	}
	args := []string{"-u"}
	if lazy {
		args = append(args, "-z")
	}
	out, err := exec.Command(bin, append(args, path)...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil && text != "" {
		err = fmt.Errorf("%s (%w)", text, err)
	}
	if err == nil {
		return nil
	}
	_, missing := os.Stat(mtab)
	if missing != nil {
		return fmt.Errorf("%w: %s", errNoMtab, err)
	}
	return err
}

// mtab is the table where fusermount3 looks a mount up to unmount it for an ordinary user.
const mtab = "/etc/mtab"

// errNoMtab says why fusermount3 cannot unmount, and the remedy. A daemon that cannot end its mount
// logs it too.
var errNoMtab = errors.New("fusermount3 unmounts nothing without " + mtab + ", which is missing here, as in a small " +
	"container; as root: ln -s /proc/self/mounts " + mtab + ", or unmount as root")

// fusermount finds fusermount3 as go-fuse does, which also looks in /bin: mount(8) and systemd may
// set no PATH.
func fusermount() (string, error) {
	for _, name := range []string{"fusermount3", "/bin/fusermount3", "fusermount", "/bin/fusermount"} {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, nil
		}
	}
	return exec.LookPath("fusermount3") // its error
}
