//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/storage"
)

// serve checks the arguments, mounts, and serves the mount until it is unmounted or a signal ends
// it. In the background, ready is the pipe to the waiting process; until it is ready, stderr is the
// user's, for warnings.
func serve(c mountopts.Command, ready *os.File, stderr io.Writer) error {
	a := &attendant{signals: notifySignals(ready != nil, c.Options.LogFile != ""), manager: takeManager(ready == nil)}
	at := place{Options: c.Options}
	defer at.remove()
	err := at.resolve(stderr)
	if err != nil {
		return err
	}
	o := at.Options
	if o.Mountpoint, err = checkMountpoint(o); err != nil {
		return err
	}
	if err := a.openLog(o, ready != nil); err != nil {
		return err
	}
	if c.Fake {
		return nil
	}
	a.options = o
	if ready != nil {
		// Do not keep the file system of the working directory busy.
		if err := os.Chdir("/"); err != nil {
			return fmt.Errorf("chdir: %w", err)
		}
	}
	if a.server, err = fs.Mount(o, a.log); err != nil {
		return diagnose(err, o)
	}
	if e, ok := mountAt(o.Mountpoint); ok { // else it is unmounted already
		a.minor = e.minor
		defer a.serveStatus()()
	}
	a.log.Info("mounted", "source", o.Source, "mountpoint", o.Mountpoint, "version", version())
	if ready != nil {
		select {
		case s := <-a.signals.stop:
			err = fmt.Errorf("%s before the mount was ready", s)
		default:
			err = sayReady(ready)
		}
		if err != nil {
			_ = a.server.Unmount()
			return err
		}
	}
	a.tellManager("READY=1", "mounted at "+o.Mountpoint)
	a.waitOrStop()
	return nil
}

// openLog opens the log.
func (a *attendant) openLog(o mountopts.Options, background bool) (err error) {
	var out io.Writer
	if o.LogFile != "" {
		if a.file, err = openLog(o.LogFile, o); err != nil {
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
	minor   uint32 // of the mount, in the mount table
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
			a.stop(s, done)
			return
		case <-a.signals.reopen:
			if err := a.file.reopen(); err != nil {
				a.log.Error("the log file could not be opened anew", "err", err)
			} else {
				a.log.Info("the log file was opened anew", "mountpoint", a.options.Mountpoint)
			}
		case <-a.signals.count:
			a.logCounters()
		case <-idle:
			idle = time.After(a.whenIdle())
		}
	}
}

// stop unmounts, or detaches a mount that is in use.
func (a *attendant) stop(s os.Signal, done <-chan struct{}) {
	a.log.Info("signal, unmounting", "signal", s.String(), "mountpoint", a.options.Mountpoint)
	a.tellManager("STOPPING=1", "unmounting")
	err := unmount(a.options.Mountpoint, false)
	if err == nil {
		<-done
		a.log.Info("unmounted", "mountpoint", a.options.Mountpoint)
		return
	}
	e, ok := mountAt(a.options.Mountpoint)
	if !ok || !e.ours() {
		a.log.Info("already unmounted", "mountpoint", a.options.Mountpoint) // Wait is about to return
		return
	}
	a.log.Warn("the mount is in use, detaching it", "mountpoint", a.options.Mountpoint, "err", err)
	if err := detach(e, true); err != nil {
		a.log.Error("detaching failed", "mountpoint", a.options.Mountpoint, "err", err)
	}
}

// whenIdle unmounts if the mount has been idle for long enough, and returns the time until the next
// check. The kernel refuses to unmount a mount in use, also by a working directory, which makes no
// requests.
func (a *attendant) whenIdle() time.Duration {
	since := a.server.Idle()
	if since < a.options.Idle {
		return a.options.Idle - since
	}
	// Another mount on top of it, or in its place, is not ours to unmount.
	if e, ok := mountAt(a.options.Mountpoint); !ok || e.minor != a.minor {
		return a.options.Idle
	}
	a.log.Info("idle, unmounting", "mountpoint", a.options.Mountpoint, "for", since.Round(time.Second))
	if err := unmount(a.options.Mountpoint, false); err != nil {
		a.log.Info("idle, but in use: still mounted", "mountpoint", a.options.Mountpoint, "err", err)
	}
	return a.options.Idle
}

// logCounters writes the counters of the mount to the log, at any log level: the user asked for
// them.
func (a *attendant) logCounters() {
	c := a.server.Counters()
	a.log.Log(context.Background(), max(slog.LevelInfo, a.options.Level()), "counters", "mountpoint",
		a.options.Mountpoint, "up", time.Since(c.Since).Round(time.Second).String(),
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
// behind that nobody sees the log of.
func notifySignals(background, toFile bool) signals {
	// The mount must survive when the reader of its log exits.
	signal.Ignore(unix.SIGPIPE)
	s := signals{make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)}
	signal.Notify(s.stop, os.Interrupt, unix.SIGTERM)
	signal.Notify(s.count, unix.SIGUSR1)
	switch {
	case toFile && (background || !hasTerminal()):
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

// notifyEnv names the socket on which a service manager waits for the states of its services
// (sd_notify(3)).
const notifyEnv = "NOTIFY_SOCKET"

// takeManager returns the socket of the service manager that started this process, "" if there is
// none. It counts in the foreground alone: a manager does not wait for a mount that its service
// starts in the background.
func takeManager(foreground bool) (socket string) {
	socket = os.Getenv(notifyEnv)
	os.Unsetenv(notifyEnv) // fusermount3 must not inherit it
	if !foreground {
		return ""
	}
	return socket
}

// tellManager tells the service manager a state (READY=1, STOPPING=1), and a text that is shown to
// people.
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

const (
	// maxRequest is how long a request may be.
	maxRequest = 64
	// acceptPause is how long nobody is listened to when there are no descriptors.
	acceptPause = 100 * time.Millisecond
)

// serveStatus answers clients of a mount's socket, until the returned function is called. Another
// daemon, whose mount is gone and had the same number, may still have such a socket.
func (a *attendant) serveStatus() (stop func()) {
	name := fmt.Sprintf("%s/%016x", socketName(os.Geteuid(), a.minor), time.Now().UnixNano())
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		a.log.Warn("'sessionfs status' cannot tell what this mount does", "err", err)
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	go storage.Guarded(func() { a.answerStatus(ctx, listener) })()
	return stop
}

func (a *attendant) answerStatus(ctx context.Context, listener *net.UnixListener) {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		default:
			go storage.Guarded(func() {
				defer conn.Close()
				a.tell(conn)
			})()
		}
	}
}

// tell answers the user of the mount, and root.
func (a *attendant) tell(conn *net.UnixConn) {
	peer, err := peerOf(conn)
	if err != nil || int(peer.Uid) != os.Geteuid() && peer.Uid != 0 {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(socketLimit))
	// Read a line, which earlier versions take for a request. Unread bytes would end the connection
	// before the answer.
	_, _ = bufio.NewReader(io.LimitReader(conn, maxRequest)).ReadString('\n')
	// it lives; the answer may take its time
	_, _ = io.WriteString(conn, "\n")
	// the client may be gone
	_ = json.NewEncoder(conn).Encode(told{Version: version(), Options: a.options, Counters: a.server.Counters()})
}
