//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lookEnv is the environment variable with the mount point at which a child process looks: a process that waits for a hung
// file system may be one that cannot be killed, and the command must return.
const lookEnv = "SESSIONFS_LOOK"

// lookLimit is how long a mount may take to answer a look-up in its root directory, for which it reads nothing. A
// busy machine or a slow disk are not to be taken for a mount that hangs.
const lookLimit = 5 * time.Second

// lookAt looks at a mount of any type, and returns its state: stateSilent, also if it cannot be looked at, stateHangs or
// stateDead.
func lookAt(e mountEntry) (state string) {
	self, err := os.Executable()
	if err != nil {
		return stateSilent
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), lookEnv+"="+e.mountpoint)
	if e.uid >= 0 && e.uid != os.Geteuid() { // root too: the kernel lets nobody into another user's mount
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(e.uid), Gid: uint32(e.gid)}}
	}
	if cmd.Start() != nil {
		return stateSilent
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(lookLimit):
		_ = cmd.Process.Kill()
		return stateHangs
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitFailure && !answers(e) {
		return stateDead
	}
	return stateSilent
}

// answers reports whether the daemon of a mount that looks dead answers: then it is SOURCE that is not connected, of whose
// directory the kernel asks for the attributes.
func answers(e mountEntry) bool {
	if !e.isSessionfs() {
		return false
	}
	_, _, err := askDaemon(e, "", socketLimit)
	return err == nil
}

// absentName is a name that no mount has, so that the kernel has to ask the server, and the server need not ask SOURCE for
// it.
const absentName = ".sessionfs-absent"

// look is what the child process does.
func look(mountpoint string) int {
	err := unix.Access(filepath.Join(mountpoint, absentName), unix.F_OK)
	if errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ECONNREFUSED) {
		return exitFailure
	}
	return exitOK
}
