//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// saveLimit is how long that may take: enough for a slow disk with many sessions, but a server that hangs must
	// not block -u forever.
	saveLimit = time.Minute
	// saveLimitLazy is the limit for -z, which is for mounts that hang.
	saveLimitLazy = 5 * time.Second
)

// saveTyped puts on disk the new sessions of a mount that are in memory. The error says why that cannot be done. If
// the mount cannot be asked, because it is dead or another user's, there is no error: the server saves them when it
// ends.
func saveTyped(e mountEntry, limit time.Duration) error {
	said, err := ask(e, saveEnv, limit)
	switch {
	case errors.Is(err, errCannotAsk):
		return nil
	case err != nil && said != "":
		return errors.New(said)
	}
	return err
}

// save is what the child process does: an fsync of new-session puts all new sessions on disk.
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
