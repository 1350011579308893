package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// saveEnv is the environment variable with the mount point whose new sessions a child of saveTyped puts on disk.
const saveEnv = "SESSIONFS_SAVE"

const (
	// saveLimit is how long that may take: enough for a slow disk with many sessions, but a server that hangs must
	// not block -u forever.
	saveLimit = time.Minute
	// saveLimitLazy is the limit for -z, which is for mounts that hang.
	saveLimitLazy = 5 * time.Second
)

// errNoAnswer means that the limit has passed.
var errNoAnswer = errors.New("the mount does not answer")

// saveTyped puts on disk the new sessions of a mount that are in memory. The error says why that cannot be done. If
// the mount cannot be asked, because it is dead or another user's, there is no error: the server saves them when it
// ends.
//
// A child process asks, since a process that waits for a hung file system cannot be killed, and -u must return.
func saveTyped(e mountEntry, limit time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), saveEnv+"="+e.mountpoint)
	if e.uid >= 0 && e.uid != os.Geteuid() { // root too: the kernel lets nobody into another user's mount
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(e.uid), Gid: uint32(e.gid)}}
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if cmd.Start() != nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(limit):
		_ = cmd.Process.Kill()
		return errNoAnswer
	}
	if err == nil {
		return nil
	}
	if why := strings.TrimSpace(said.String()); why != "" {
		return errors.New(why)
	}
	return err
}

// takeSave returns the mount point if this process is a child of saveTyped, else "".
func takeSave() (mountpoint string, ok bool) {
	mountpoint, ok = os.LookupEnv(saveEnv)
	os.Unsetenv(saveEnv)
	return mountpoint, ok
}

// save is what the child does: an fsync of new-session puts all new sessions on disk.
func save(mountpoint string, stderr io.Writer) int {
	fd, err := unix.Open(filepath.Join(mountpoint, newSession), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return exitOK // cannot be asked
	}
	err = unix.Fsync(fd)
	_ = unix.Close(fd)
	if err == nil || err == unix.ENOTCONN || err == unix.ECONNABORTED { // the mount has just ended
		return exitOK
	}
	fmt.Fprintln(stderr, err)
	return exitFailure
}

// newSession is the control file that creates sessions.
const newSession = "new-session"
