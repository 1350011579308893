//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/storage"
	"sessionfs/source"
)

// init keeps the first thread for the goroutine that obeys signals, which only init can claim: the
// kernel gives a signal to that thread first, where it stays if the thread waits for a SOURCE that
// hangs.
func init() { runtime.LockOSThread() }

// closeLater has the descriptors that the caller left open, such as a lock file, end with this
// program: they must not stay open for the life of the mount. Without close_range (before Linux
// 5.11) they do; that is no reason to fail.
func closeLater() { _ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }

func dup(from, to *os.File) error { return unix.Dup3(int(from.Fd()), int(to.Fd()), 0) }

// serve checks the arguments, mounts, and serves the mount until it is unmounted or a signal ends
// it. In the background, ready is the pipe to the waiting process; until it is ready, stderr is the
// user's, for warnings.
func serve(c mountopts.Command, ready *os.File, stderr io.Writer) error {
	inBackground := ready != nil
	hasLogFile := c.Options.LogFile != ""
	a := &attendant{
		signals: notifySignals(inBackground, hasLogFile),
		manager: takeManager(inBackground),
	}
	at := source.Place{Options: c.Options}
	defer at.Discard()
	err := at.Prepare(stderr)
	if err != nil {
		return err
	}
	o := at.Options
	o.Mountpoint, err = fs.CheckMountpoint(o)
	if err != nil {
		return err
	}
	err = a.openLog(o, inBackground)
	if err != nil {
		return err
	}
	if c.Fake { // mount -f: all was checked
		return nil
	}
	a.options = o
	if inBackground {
		// Do not keep the file system of the working directory busy.
		err := os.Chdir("/")
		if err != nil {
			return fmt.Errorf("chdir: %w", err)
		}
	}
	a.server, err = fs.Mount(o, a.log)
	if err != nil {
		return err
	}
	defer a.server.ServeStatus(version())()
	a.log.Info("mounted", "source", o.Source, "mountpoint", o.Mountpoint, "version", version())
	if inBackground {
		err := a.reportReady(ready)
		if err != nil {
			_ = a.server.Unmount()
			return err
		}
	}
	a.tellManager("READY=1", "mounted at "+o.Mountpoint)
	a.waitOrStop()
	return nil
}

// reportReady tells the waiting process that the mount is ready, unless a signal has come that ends it, which is an
// error.
func (a *attendant) reportReady(ready *os.File) error {
	select {
	case s := <-a.signals.stop:
		return fmt.Errorf("%s before the mount was ready", s)
	default:
		return sayReady(ready)
	}
}

// openLog opens the log of a mount, which becomes the default one of this process.
func (a *attendant) openLog(o mountopts.Options, background bool) (err error) {
	var out io.Writer
	if o.LogFile != "" {
		a.file, err = openLog(o.LogFile, o)
		if err != nil {
			return err
		}
		out = a.file
	}
	a.log = newLogger(o, background, out)
	slog.SetDefault(a.log) // go-fuse logs through package log
	return nil
}

// attendant looks after a mount until it is gone.
type attendant struct {
	server  *fs.Server
	options mountopts.Options
	signals signals
	manager string   // the socket of the service manager, "" for none
	file    *logFile // nil if the log goes elsewhere
	log     *slog.Logger
}

// waitOrStop returns when the mount is gone. After a signal it unmounts; if the mount is in use, it
// detaches it, which frees the mount point, and returns: open files then get errors.
func (a *attendant) waitOrStop() {
	done := make(chan struct{})
	go storage.Guarded(func() {
		defer close(done)
		a.server.Wait()
	})()
	var idle <-chan time.Time
	if a.options.Idle > 0 {
		idle = time.After(a.options.Idle)
	}
	for {
		select {
		case <-done:
			a.tellManager("STOPPING=1", "unmounted")
			a.log.Info("unmounted", "mountpoint", a.options.Mountpoint)
			return
		case s := <-a.signals.stop:
			a.log.Info("signal, unmounting", "signal", s.String(), "mountpoint", a.options.Mountpoint)
			a.tellManager("STOPPING=1", "unmounting")
			a.server.End()
			return
		case <-a.signals.reopen:
			err := a.file.reopen()
			if err != nil {
				a.log.Error("the log file could not be opened anew", "err", err)
			} else {
				a.log.Info("the log file was opened anew", "mountpoint", a.options.Mountpoint)
			}
		case <-a.signals.count:
			a.logCounters()
		case <-idle:
			next := a.server.EndIdle(a.options.Idle) // if it has ended the mount, done is closed
			idle = time.After(next)
		}
	}
}

// logCounters writes the counters of the mount to the log, at any log level: the user asked for
// them.
func (a *attendant) logCounters() {
	c := a.server.Counters()
	level := max(slog.LevelInfo, a.options.Level()) // the log drops lower ones
	uptime := time.Since(c.Since).Round(time.Second)
	a.log.Log(context.Background(), level, "counters",
		"mountpoint", a.options.Mountpoint, "up", uptime.String(),
		"open", c.Open, "sessions", c.Sessions, "held", c.Held, "idle", c.Idle,
		"memory", c.Memory, "files", c.Files, "temporary", c.Temporary)
}

// signals are those that a mount obeys.
type signals struct {
	stop   chan os.Signal // ends it
	reopen chan os.Signal // opens the log file anew
	count  chan os.Signal // writes counters to the log
}

// notifySignals subscribes to the signals. SIGHUP opens a log file anew. In the foreground, in a
// terminal or without a log file, it ends the mount: else a closed terminal would leave a mount
// behind with a log that nobody sees. A mount in the background without a log file ignores it.
func notifySignals(background, hasLogFile bool) signals {
	// The mount must survive when the reader of its log exits.
	signal.Ignore(unix.SIGPIPE)
	s := signals{
		stop:   make(chan os.Signal, 1),
		reopen: make(chan os.Signal, 1),
		count:  make(chan os.Signal, 1),
	}
	signal.Notify(s.stop, os.Interrupt, unix.SIGTERM)
	signal.Notify(s.count, unix.SIGUSR1)
	switch {
	case hasLogFile && (background || !hasTerminal()):
		signal.Notify(s.reopen, unix.SIGHUP)
	case background:
		signal.Ignore(unix.SIGHUP)
	case !signal.Ignored(unix.SIGHUP): // ignored under nohup
		signal.Notify(s.stop, unix.SIGHUP)
	}
	return s
}

// hasTerminal reports whether this process has a terminal, which may be closed.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// notifyEnv names the socket of a service manager, which waits there for the states of its services
// (sd_notify(3)).
const notifyEnv = "NOTIFY_SOCKET"

// takeManager returns the socket of the service manager that started this process, "" if there is
// none, and removes it from the environment. It counts in the foreground alone: a manager does not wait for a mount
// that its service starts in the background.
func takeManager(background bool) (socket string) {
	socket = os.Getenv(notifyEnv)
	os.Unsetenv(notifyEnv) // fusermount3 must not inherit it
	if background {
		return ""
	}
	return socket
}

// tellManager tells the service manager a state (READY=1, STOPPING=1), and a text that is shown to
// people. A failure is logged.
func (a *attendant) tellManager(state, text string) {
	if a.manager == "" {
		return
	}
	conn, err := net.Dial("unixgram", a.manager) // "@" is an abstract name here, too
	if err == nil {
		_, err = conn.Write([]byte(state + "\nSTATUS=" + text + "\n"))
		_ = conn.Close()
	}
	if err != nil {
		slog.Warn("the service manager could not be told", "state", state, "err", err)
	}
}
