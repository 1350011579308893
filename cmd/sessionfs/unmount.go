//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
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

// umountCommand is -u by the name that people know.
func umountCommand() *cobra.Command {
	lazy := false
	cmd := &cobra.Command{
		Use:               "umount [-z] MOUNTPOINT",
		Aliases:           []string{"unmount"},
		Short:             "Unmount, as sessionfs -u",
		Example:           "  sessionfs umount ~/agent-sessions",
		Hidden:            true, // there is -u
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeMountpoints,
		RunE:              func(_ *cobra.Command, args []string) error { return unmountCommand(args[0], lazy) },
	}
	cmd.Flags().BoolVarP(&lazy, "lazy", "z", false, "also while it is in use")
	return cmd
}

func completeMountpoints(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ourMountpoints(), cobra.ShellCompDirectiveNoFileComp
}

// unmountCommand is -u.
func unmountCommand(arg string, lazy bool) error {
	path, err := resolveMountpoint(arg)
	if err != nil { // for example in a dead mount
		path, _ = absolute(arg)
		path = filepath.Clean(path)
	}
	e, mounted := mountAt(path)
	switch {
	case !mounted && e.isSessionfs():
		return refuse(exitUnmount, "%s lies in the mount at %s; unmount that with: sessionfs -u %s",
			path, e.mountpoint, e.mountpoint)
	case err != nil:
		return refuse(exitUnmount, "%s cannot be resolved: %s", arg, err)
	case !mounted:
		return refuseUnmounted(path)
	case !e.isSessionfs():
		return refuse(exitUnmount, "%s is a mount of type %s, not %s; unmount it with: umount %s",
			path, e.fsType, mountopts.FSType, path)
	case !e.mayAsk():
		return refuse(exitUnmount, "%s was mounted by user %d; only that user or root can unmount it: "+
			"sudo sessionfs -u %s", path, e.uid, path)
	}
	limit := socketLimit
	if lazy {
		limit = liveLimit
	}
	pid, said, err := askDaemon(e, limit, socketLimit)
	silent, end := errors.Is(err, os.ErrDeadlineExceeded), func() {}
	switch {
	case silent && lazy:
		// Requests that wait for the mount must not wait for ever.
		if abort(e) == nil {
			return nil
		}
	case silent:
		return refuse(exitUnmount, "%s does not answer and is still mounted; "+
			"'sessionfs -u -z %s' detaches it all the same", path, path)
	case said.Unsaved != nil:
		end = endEarlier(pid)
	}
	if lazy && !silent {
		err = detach(e, false)
	} else {
		err = unmount(path, lazy)
	}
	switch {
	case err == nil:
		end()
		return nil
	case errors.Is(err, errNoMtab):
		return refuse(exitUnmount, "%s is still mounted: %s", path, err)
	case lazy:
		return refuse(exitUnmount, "%s could not be detached: %s", path, err)
	default:
		return refuse(exitUnmount, "%s could not be unmounted: %s\n"+
			"If it is in use, 'fuser -vm %s' shows by whom; 'sessionfs -u -z %s' detaches it all the same.",
			path, err, path, path)
	}
}

// endEarlier returns a function that ends a daemon of an earlier version, whose mount is gone, and
// waits for it: such a daemon puts new sessions on disk when it ends.
func endEarlier(pid int) func() {
	daemon, err := unix.PidfdOpen(pid, 0) // which no other process gets
	return func() {
		if err != nil || unix.PidfdSendSignal(daemon, unix.SIGTERM, nil, 0) != nil {
			return // it has ended, or this kernel is too old: it ends by itself
		}
		for start := time.Now(); time.Since(start) < endLimit; {
			if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(daemon), Events: unix.POLLIN}}, int(endLimit.Milliseconds())); n > 0 {
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
// thread in each. Where the kernel does not tell whether there are any, it does so only if the
// server is ending.
func detach(e mountEntry, ending bool) error {
	for start := time.Now(); ; time.Sleep(stuckPoll) {
		waiting, err := e.hasRequests()
		switch {
		case err == nil && !waiting, err != nil && !ending:
			return unmount(e.mountpoint, true)
		case time.Since(start) > stuckAfter:
			if abort(e) == nil {
				return nil
			}
			return unmount(e.mountpoint, true)
		}
	}
}

// abort detaches a mount and ends its connection: waiting callers get an error.
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

// refuseUnmounted refuses a path at which nothing is mounted. It may be the SOURCE of a mount.
func refuseUnmounted(path string) error {
	for _, e := range allMounts() {
		if e.isSessionfs() && e.source == path {
			return refuse(exitUnmount, "%s is SOURCE of the mount at %s; unmount that with: sessionfs -u %s",
				path, e.mountpoint, e.mountpoint)
		}
	}
	return refuse(exitUnmount, "nothing is mounted at %s; 'findmnt -t %s' lists what is", path, mountopts.FSType)
}

// unmount unmounts path, which must be absolute and resolved, with umount2(2) if that is permitted,
// else with fusermount3. lazy detaches a mount that is in use.
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
	if text := strings.TrimSpace(string(out)); err != nil && text != "" {
		err = fmt.Errorf("%s (%w)", text, err)
	}
	if _, missing := os.Stat(mtab); err != nil && missing != nil {
		return fmt.Errorf("%w: %s", errNoMtab, err)
	}
	return err
}

// mtab is the table in which fusermount3 looks a mount up to unmount it for an ordinary user.
const mtab = "/etc/mtab"

// errNoMtab says why fusermount3 cannot unmount, and the remedy. A daemon whose mount it cannot end
// logs it too.
var errNoMtab = errors.New("fusermount3 unmounts nothing without " + mtab + ", which is missing here, as in a small " +
	"container; as root: ln -s /proc/self/mounts " + mtab + ", or unmount as root")

// fusermount finds fusermount3 as go-fuse does, which also looks in /bin: mount(8) and systemd may
// set no PATH.
func fusermount() (string, error) {
	for _, name := range []string{"fusermount3", "/bin/fusermount3", "fusermount", "/bin/fusermount"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("fusermount3") // its error
}
