//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lookLimit is how long a mount may take to answer a look-up in its root directory, for which it reads nothing. A
// busy machine or a slow disk are not to be taken for a mount that hangs.
const lookLimit = 5 * time.Second

// lookAt looks at a mount of any type, and returns its state: stateSilent, also if it cannot be asked, stateHangs or stateDead.
func lookAt(e mountEntry) (state string) {
	var exit *exec.ExitError
	switch _, err := ask(e, lookEnv, lookLimit); {
	case errors.Is(err, errNoAnswer):
		return stateHangs
	case errors.As(err, &exit) && exit.ExitCode() == exitFailure && !(e.isSessionfs() && livesOn(e)):
		return stateDead
	}
	return stateSilent
}

// A server whose connection was cut ends within endLimit, unless it has much to save.
const (
	endLimit = time.Second
	endPoll  = endLimit / 10
)

// livesOn reports whether the server of a mount that looks dead lives: then it is SOURCE that is not connected, of whose
// directory the kernel asks for the attributes.
func livesOn(e mountEntry) bool {
	for start := time.Now(); time.Since(start) < endLimit; time.Sleep(endPoll) {
		if _, _, err := askStatus(e, lookLimit); err != nil {
			return false
		}
	}
	return true
}

// absentName is a name that no mount has, so that the kernel has to ask the server, and the server need not ask SOURCE for
// it.
const absentName = ".sessionfs-absent"

// look is what the child process does.
func look(mountpoint string, stderr io.Writer) int {
	err := unix.Access(filepath.Join(mountpoint, absentName), unix.F_OK)
	if errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ECONNREFUSED) {
		fmt.Fprintln(stderr, err)
		return exitFailure
	}
	return exitOK
}
