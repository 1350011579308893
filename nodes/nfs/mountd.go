package nfs

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"strings"
	"sync"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
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

// use reports whether a path is the exported one, which it ends, or is below it; below is the rest of it.
func (e *export) use(path string) (below string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	path, below, _ = strings.Cut(strings.Trim(path, "/"), "/")
	if e.path == "" || time.Since(e.made) > secretTime || subtle.ConstantTimeCompare([]byte("/"+path), []byte(e.path)) == 0 {
		return "", false
	}
	e.path = ""
	return below, true
}

// mountProcedure answers a call of the MOUNT program.
func (d *Door) mountProcedure(ctx context.Context, c *call) (reply *encoder, mounted bool) {
	const null, mount, dump, unmount, unmountAll, exports = 0, 1, 2, 3, 4, 5
	reply = accepted(c.xid, success)
	switch c.no {
	case null, unmount, unmountAll:
	case mount:
		path := c.arguments.text()
		if c.arguments.bad {
			return accepted(c.xid, garbageArguments), false
		}
		o, errno := d.exported(ctx, path)
		reply.u32(uint32(statusOf(errno)))
		if errno == 0 {
			reply.opaque(d.objects.handle(o))
			reply.u32(1, authSys)
		}
		return reply, errno == 0
	case dump, exports:
		reply.bool(false) // nobody is told of paths
	default:
		return accepted(c.xid, procedureUnavailable), false
	}
	return reply, false
}

// exported returns the directory that a client mounts by a path: the root, or one below it.
func (d *Door) exported(ctx context.Context, path string) (*object, syscall.Errno) {
	below, ok := d.export.use(path)
	if !ok {
		return nil, syscall.EACCES
	}
	o := d.objects.root
	for name := range strings.FieldsFuncSeq(below, func(r rune) bool { return r == '/' }) {
		look, errno := d.look(ctx, o)
		if errno != 0 {
			return nil, errno
		}
		child, errno := look.Find(ctx, nodes.Named(name))
		look.Close()
		if errno != 0 {
			return nil, errno
		}
		o = d.objects.child(o, name, &child)
	}
	if o.kind != storage.KindDir {
		return nil, syscall.ENOTDIR
	}
	return o, 0
}
