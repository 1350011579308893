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

// lockFile takes the lock of a session file. One whose process is gone the clients of the mounts remove.
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

// onItsOwn ends the last line of a session, which a daemon that was killed may have cut off.
func onItsOwn(old []byte) string {
	if len(old) > 0 && old[len(old)-1] != '\n' {
		return "\n# the line above is cut off\n"
	}
	return ""
}

func renamedOver(file string, text []byte) error {
	temporary := fmt.Sprintf("%s.%d.tmp", file, time.Now().UnixNano())
	return errors.Join(os.WriteFile(temporary, text, 0o600), os.Rename(temporary, file))
}

func added(file, text string) error {
	return written(file, text, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK)
}

func written(file, text string, flags int) error {
	f, err := os.OpenFile(file, flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
