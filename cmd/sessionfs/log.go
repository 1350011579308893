//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"log/syslog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/storage"
)

// maxSyslogMessage is the longest message, in bytes; the rest is cut. Messages are datagrams, and
// one that is too long (the stack of a panic) would be lost as a whole.
const maxSyslogMessage = 8 << 10

// newLogger returns a logger to out if that is not nil, else to stderr in the foreground, and to
// syslog, which journald reads too, in the background.
func newLogger(o mountopts.Options, background bool, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.Level()}
	if out == nil && !background {
		out = os.Stderr
	}
	if out != nil {
		return slog.New(slog.NewTextHandler(out, options))
	}
	w, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_INFO, "sessionfs")
	if err != nil {
		return slog.New(slog.DiscardHandler) // no syslog; the mount works without a log
	}
	return slog.New(newSyslogHandler(w, options))
}

// syslogWriter is the part of syslog.Writer that is used: one method for each severity.
type syslogWriter interface {
	Debug(string) error
	Info(string) error
	Warning(string) error
	Err(string) error
}

// syslogLines sends each line with the severity of its level, which is the first word, and without
// that.
type syslogLines struct{ w syslogWriter }

// newSyslogHandler returns a handler that writes text without the time, which syslog adds.
func newSyslogHandler(w syslogWriter, options *slog.HandlerOptions) slog.Handler {
	options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.NewTextHandler(syslogLines{w}, options)
}

// Write implements io.Writer. It sends a line with its level as the priority.
func (s syslogLines) Write(line []byte) (int, error) {
	level, text, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	text = text[:min(len(text), maxSyslogMessage)]
	send := s.w.Debug
	switch level {
	case "level=ERROR":
		send = s.w.Err
	case "level=WARN":
		send = s.w.Warning
	case "level=INFO":
		send = s.w.Info
	}
	return len(line), send(text)
}

// logFile is the log of --log-file. Each line is appended in one write, so that other programs may
// write too.
type logFile struct {
	// dir is the directory of the file, open: it is found again without a look-up of its path,
	// which may lead into the mount that this process serves and would wait for itself.
	dir  *os.File
	name string

	mu   sync.Mutex // guards file
	file *os.File
}

// openLog opens the log file of a mount. It refuses a file that the mount serves: a session would
// be damaged.
func openLog(path string, o mountopts.Options) (*logFile, error) {
	l := &logFile{name: filepath.Base(path)}
	place, err := fs.ResolveMountpoint(filepath.Dir(path))
	if err == nil {
		l.dir, err = storage.OpenDir(place)
	}
	if err == nil {
		if dir, served := fs.ServedAt(o, place); served {
			return nil, refuse(exitUsage, "the log file %s lies in %s; choose another place", path, dir)
		}
		err = l.reopen()
	}
	if err != nil {
		return nil, refuse(exitUsage, "the log file %s cannot be opened: %s", path, err)
	}
	return l, nil
}

// checkOpened refuses a descriptor of a file that is no log file of this user.
func (l *logFile) checkOpened(fd int) error {
	var st, dir unix.Stat_t
	err := errors.Join(unix.Fstat(fd, &st), unix.Fstat(int(l.dir.Fd()), &dir))
	if err != nil {
		return err
	}
	kind := st.Mode & unix.S_IFMT
	isRegular := kind == unix.S_IFREG
	if !isRegular && kind != unix.S_IFCHR {
		return fmt.Errorf("%s is no regular file", l.name)
	}
	// In such a directory any user can prepare a file for another one to write to.
	isDirForAll := dir.Mode&unix.S_ISVTX != 0
	isOwn := int(st.Uid) == os.Geteuid()
	if isRegular && isDirForAll && !isOwn {
		return fmt.Errorf("%s belongs to user %d, and its directory is for all users", l.name, st.Uid)
	}
	return nil
}

// reopen opens the file by its name, where another file may be by now. If it cannot be opened, the
// old one stays.
func (l *logFile) reopen() error {
	// Not through a link, which may lead into the mount, and without waiting for the reader of a
	// pipe.
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := unix.Openat(int(l.dir.Fd()), l.name, flags, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), l.name)
	err = l.checkOpened(fd)
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
