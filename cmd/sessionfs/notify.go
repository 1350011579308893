//go:build linux

package main

import (
	"log/slog"
	"net"
	"os"
)

// notifyEnv names the socket on which a service manager waits for what its services say of themselves (sd_notify(3)).
const notifyEnv = "NOTIFY_SOCKET"

// manager is the service manager that started this process, or nil.
type manager struct {
	conn net.Conn
	log  *slog.Logger
}

// takeManager returns the service manager that started this process. It counts in front alone: a mount that somebody
// starts in the background from within a service is not what that service's manager waits for.
func takeManager(foreground bool, log *slog.Logger) *manager {
	path := os.Getenv(notifyEnv)
	os.Unsetenv(notifyEnv) // fusermount3 must not inherit it
	if path == "" || !foreground {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // "@" is an abstract name here, too
	if err != nil {
		log.Warn("the service manager cannot be told when the mount is ready", "socket", path, "err", err)
		return nil
	}
	return &manager{conn, log}
}

// The states that are told.
const (
	stateReady    = "READY=1"
	stateStopping = "STOPPING=1"
)

// say tells a state, and a text that is shown to people.
func (m *manager) say(state, text string) {
	if m == nil {
		return
	}
	if _, err := m.conn.Write([]byte(state + "\nSTATUS=" + text + "\n")); err != nil {
		m.log.Warn("the service manager could not be told", "state", state, "err", err)
	}
}
