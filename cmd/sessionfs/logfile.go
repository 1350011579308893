//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// logFile is the log of --log-file. What is written to it is added in one write, so that others may write to it as well.
type logFile struct {
	// dir is the directory of the file, open: it is found again without a look-up of its path, which may lead into the
	// mount that this process serves and would wait for itself.
	dir  *os.File
	name string

	mu   sync.Mutex // guards file
	file *os.File
}

// openLog opens the log file of a mount. It may not be what the mount serves, where a session would be damaged.
func openLog(path string, o mountopts.Options) (*logFile, error) {
	l := &logFile{name: filepath.Base(path)}
	place, err := resolveMountpoint(filepath.Dir(path))
	if err == nil {
		l.dir, err = os.Open(place)
	}
	for _, dir := range append(fs.Places(o, os.Getenv), o.Mountpoint) {
		if err == nil && isWithin(place, resolveFar(dir)) {
			return nil, refuse(exitUsage, "the log file %s lies in %s; choose another place", path, dir)
		}
	}
	if err == nil {
		err = l.reopen()
	}
	if err != nil {
		return nil, refuse(exitUsage, "the log file %s cannot be opened: %s", path, err)
	}
	return l, nil
}

// reopen opens the file by its name, where another file may be by now. If it cannot be opened, the old one stays.
func (l *logFile) reopen() error {
	// Not through a link, which may lead into the mount, and without waiting for the reader of a pipe.
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := unix.Openat(int(l.dir.Fd()), l.name, flags, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), l.name)
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeCharDevice == 0 {
		err = fmt.Errorf("%s is no regular file", l.name)
	}
	if err != nil {
		file.Close()
		return err
	}
	l.mu.Lock()
	old := l.file
	l.file = file
	l.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return nil
}

// Write adds to the file.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(line)
}
