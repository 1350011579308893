package nfs

import (
	"crypto/rand"
	"crypto/subtle"
	"strings"
	"sync"
	"time"
)

// secretTime is how long a path that was exported is good.
const secretTime = time.Minute

// export is the secret path that a client mounts. It is good for one mount: other users of the machine see the command
// line of mount.
type export struct {
	mu   sync.Mutex
	path string
	made time.Time
}

// Export returns a new path to mount, which is good for one mount within a minute. The one before is not good any more.
func (d *Door) Export() string {
	d.export.mu.Lock()
	defer d.export.mu.Unlock()
	d.export.path, d.export.made = "/"+rand.Text(), time.Now()
	return d.export.path
}

// use reports whether a path is the exported one, which it ends.
func (e *export) use(path string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	path = "/" + strings.Trim(path, "/")
	if e.path == "" || time.Since(e.made) > secretTime || subtle.ConstantTimeCompare([]byte(path), []byte(e.path)) == 0 {
		return false
	}
	e.path = ""
	return true
}

// mountProcedure answers a call of the MOUNT program.
func (d *Door) mountProcedure(c *call) (reply *encoder, mounted bool) {
	const null, mount, dump, unmount, unmountAll, exports = 0, 1, 2, 3, 4, 5
	reply = accepted(c.xid, success)
	switch c.no {
	case null, unmount, unmountAll:
	case mount:
		path := c.arguments.text()
		switch {
		case c.arguments.bad:
			return accepted(c.xid, garbageArguments), false
		case !d.export.use(path):
			const refused = 13
			reply.u32(refused)
			return reply, false
		}
		reply.u32(0)
		reply.opaque(d.objects.handle(d.objects.root))
		reply.u32(1, authSys)
		return reply, true
	case dump, exports:
		reply.bool(false) // nobody is told of paths
	default:
		return accepted(c.xid, procedureUnavailable), false
	}
	return reply, false
}
