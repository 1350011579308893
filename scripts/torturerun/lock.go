package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock is the real client's lock of a session file (docs/format.md, The client's lock).
type lock struct{ path, text string }

const (
	lockTries = 250 // 500 ms in all, as the client waits
	lockPoll  = 2 * time.Millisecond
)

// lockFile takes the lock of a session file, and waits for it as the client does; then the error is EBUSY. It does not
// break the lock of a dead process: the daemons of the mounts do.
func lockFile(file string) (*lock, error) {
	l := &lock{path: filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".lock")}
	for range lockTries {
		l.text = fmt.Sprintf("%d:%d\n", os.Getpid(), time.Now().UnixMilli())
		err := written(l.path, l.text, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err == nil && readText(l.path) == l.text { // else somebody took it for a stale one
			return l, nil
		}
		if err != nil && !errors.Is(err, syscall.EEXIST) {
			return nil, err
		}
		time.Sleep(lockPoll)
	}
	return nil, syscall.EBUSY
}

// release gives the lock back and reports whether it was ours until then.
func (l *lock) release() bool { return readText(l.path) == l.text && os.Remove(l.path) == nil }

// cutOffEnd returns the text to write before a line that is appended to old: the end of its last line and a mark, if a
// daemon that was killed has cut that line off, else "".
func cutOffEnd(old []byte) string {
	if len(old) > 0 && old[len(old)-1] != '\n' {
		return "\n" + cutOffMark + "\n"
	}
	return ""
}

// renamedOver replaces a file by a new one with a text.
func renamedOver(file string, text []byte) error {
	temporary := fmt.Sprintf("%s.%d.tmp", file, time.Now().UnixNano())
	return errors.Join(os.WriteFile(temporary, text, 0o600), os.Rename(temporary, file))
}

// added appends a text to a file in one write. It does not wait for the reader of a pipe.
func added(file, text string) error {
	return written(file, text, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK)
}

// written opens a file with flags of open(2) and writes a text in one write.
func written(file, text string, flags int) error {
	f, err := os.OpenFile(file, flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
