package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// locked is a session file under the real client's lock (docs/format.md, The client's lock). All calls go through the
// directory, so that they stay in it when others move it.
type locked struct {
	dir        *os.File
	base, lock string
	text       []byte
}

const (
	lockTries = 250 // 500 ms in all, as the client waits
	lockPoll  = 2 * time.Millisecond
)

var errBusy = errors.New("the lock is held by another")

// lockFile takes the lock of a session file.
func lockFile(file string) (*locked, error) {
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	l := &locked{dir: dir, base: filepath.Base(file), lock: "." + filepath.Base(file) + ".lock"}
	for range lockTries {
		if err = l.create(); !errors.Is(err, syscall.EEXIST) {
			break
		}
		l.breakStale()
		time.Sleep(lockPoll)
	}
	if errors.Is(err, syscall.EEXIST) {
		err = errBusy
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return l, nil
}

func (l *locked) create() error {
	f, err := l.open(l.lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	l.text = fmt.Appendf(nil, "%d:%d\n", os.Getpid(), time.Now().UnixMilli())
	_, err = f.Write(l.text)
	f.Close()
	if err == nil && !bytes.Equal(l.read(), l.text) { // somebody took it for a stale one
		return syscall.EEXIST
	}
	return err
}

func (l *locked) read() []byte {
	f, err := l.open(l.lock, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	buf := make([]byte, 64)
	n, _ := f.Read(buf)
	return buf[:n]
}

// breakStale removes a lock whose process is gone. As between two daemons, flock keeps two of us from finding the same
// lock stale, of whom the second would remove the lock that a third has made meanwhile.
func (l *locked) breakStale() {
	f, err := l.open(l.lock, os.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	buf := make([]byte, 64)
	n, _ := f.Read(buf)
	pid, err := strconv.Atoi(strings.SplitN(string(buf[:n]), ":", 2)[0])
	if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return
	}
	var now, then unix.Stat_t
	if unix.Fstatat(int(l.dir.Fd()), l.lock, &now, unix.AT_SYMLINK_NOFOLLOW) == nil && unix.Fstat(int(f.Fd()), &then) == nil && now.Ino == then.Ino {
		_ = unix.Unlinkat(int(l.dir.Fd()), l.lock, 0)
	}
}

// release gives the lock back and reports whether it was ours until then.
func (l *locked) release() bool {
	defer l.dir.Close()
	ours := bytes.Equal(l.read(), l.text)
	if ours {
		_ = unix.Unlinkat(int(l.dir.Fd()), l.lock, 0)
	}
	return ours
}

// open opens a file of the directory.
func (l *locked) open(base string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(l.dir.Fd()), base, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), base), nil
}

// add appends text to the file, on a line of its own. written reports whether the file has changed.
func (l *locked) add(text string) (written bool, err error) {
	f, err := l.open(l.base, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			text = "\n# the line above is cut off\n" + text // by a daemon that was killed
		}
	}
	n, err := f.WriteString(text)
	return n > 0, err
}

// replace renames a new file over it, with the same content and more.
func (l *locked) replace(more string) (written bool, err error) {
	f, err := l.open(l.base, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return false, err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		more = "\n# the line above is cut off\n" + more
	}
	temporary := fmt.Sprintf(".%s.%d.tmp", l.base, os.Getpid())
	out, err := l.open(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return false, err
	}
	_, err = out.Write(append(text, more...))
	out.Close()
	dir := int(l.dir.Fd())
	if err == nil {
		err = unix.Renameat(dir, temporary, dir, l.base)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0)
	}
	return err == nil, err
}
