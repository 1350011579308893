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

// saveEnv tells a copy of this program which mount's new sessions it is to put on disk (saveTyped).
const saveEnv = "SESSIONFS_SAVE"

const (
	// saveLimit is how long that may take: a slow disk with many sessions is waited for, a server that hangs is not
	// waited for forever.
	saveLimit = time.Minute
	// saveLimitLazy is the limit for -z, which is for mounts that hang.
	saveLimitLazy = 5 * time.Second
)

// errNoAnswer: the limit is over.
var errNoAnswer = errors.New("the mount does not answer")

// saveTyped puts on disk what was typed into new sessions of a mount and lives in memory. The error is why that
// cannot be done; where the mount cannot be asked (it is dead, or another user's) there is none, and the server does
// it at its end.
//
// A child asks: whoever waits for a file system that hangs cannot be ended, and -u has to.
func saveTyped(e mountEntry, limit time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), saveEnv+"="+e.mountpoint)
	if e.uid >= 0 && e.uid != os.Geteuid() { // root, whom the kernel lets into nobody else's mount
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

// takeSave returns the mount point for which this process is the child of saveTyped.
func takeSave() (mountpoint string, ok bool) {
	mountpoint, ok = os.LookupEnv(saveEnv)
	os.Unsetenv(saveEnv)
	return mountpoint, ok
}

// save is that child: an fsync on new-session puts all new sessions on disk.
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

// newSession is the control file that makes sessions.
const newSession = "new-session"
