//go:build linux

package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// signals are those that a mount obeys.
type signals struct {
	stop   chan os.Signal // ends it
	reopen chan os.Signal // opens the log file anew
	count  chan os.Signal // writes counters to the log
}

// notifySignals subscribes to the signals. SIGHUP opens a log file anew. In the foreground, in a terminal or without a log
// file, it ends the mount: else a closed terminal would leave a mount behind that nobody sees the log of.
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
