package nfs

import (
	"log/slog"
	"net"
	"time"
)

// logPause is how long refused connections are only counted after one was logged, so that nobody
// fills the log.
const logPause = time.Minute

// refusedConnections closes and logs the connections that are another user's.
type refusedConnections struct {
	log      *slog.Logger
	logged   time.Time // when the last line was logged
	unlogged int       // connections since then
}

// close closes a connection, and logs or counts it.
func (r *refusedConnections) close(c net.Conn, why error) {
	c.Close()
	if time.Since(r.logged) < logPause {
		r.unlogged++
		return
	}
	r.log.Warn("refused a connection before reading from it",
		"from", c.RemoteAddr(), "why", why, "refused_since_the_last_line", r.unlogged)
	r.logged = time.Now()
	r.unlogged = 0
}

// end logs the number of those that were only counted.
func (r *refusedConnections) end() {
	if r.unlogged > 0 {
		r.log.Warn("refused more connections before reading from them", "refused_since_the_last_line", r.unlogged)
	}
}
