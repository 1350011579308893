//go:build linux

package main

import (
	"log/slog"
	"net"
	"os"
)

// notifyEnv names the socket on which a service manager waits for what its services say of themselves (sd_notify(3)).
const notifyEnv = "NOTIFY_SOCKET"

// manager is the connection to the service manager that started this process, if there is one.
type manager struct{ net.Conn }

// takeManager returns the service manager that started this process. It counts in front alone: a mount that somebody
// starts in the background from within a service is not what that service's manager waits for.
func takeManager(foreground bool) manager {
	path := os.Getenv(notifyEnv)
	os.Unsetenv(notifyEnv) // fusermount3 must not inherit it
	if path == "" || !foreground {
		return manager{}
	}
	conn, err := net.Dial("unixgram", path) // "@" is an abstract name here, too
	if err != nil {
		slog.Warn("the service manager cannot be told when the mount is ready", "socket", path, "err", err)
	}
	return manager{conn}
}

// say tells a state (READY=1, STOPPING=1), and a text that is shown to people.
func (m manager) say(state, text string) {
	if m.Conn == nil {
		return
	}
	if _, err := m.Write([]byte(state + "\nSTATUS=" + text + "\n")); err != nil {
		slog.Warn("the service manager could not be told", "state", state, "err", err)
	}
}
