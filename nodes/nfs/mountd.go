package nfs

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"strings"
	"sync"
	"syscall"
	"time"

	"sessionfs/sessioncore/storage"
)

// secretTime is how long a path that was exported is good.
const secretTime = time.Minute

// export is the secret path that a client mounts. It is good for one mount: other users of the
// machine see the command line of mount.
type export struct {
	mu   sync.Mutex
	path string // "" for none
	made time.Time
}

// Export returns a new path to mount, which is good for one mount within a minute. The one before
// is not good any more.
func (d *Door) Export() string {
	d.export.mu.Lock()
	defer d.export.mu.Unlock()
	d.export.path, d.export.made = rand.Text(), time.Now()
	return "/" + d.export.path
}

// use reports whether a path is the exported one, which it ends, or below it; below is the rest of
// it.
func (e *export) use(path string) (below string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	path, below, _ = strings.Cut(strings.Trim(path, "/"), "/")
	equal := subtle.ConstantTimeCompare([]byte(path), []byte(e.path)) == 1
	if e.path == "" || !equal || time.Since(e.made) > secretTime {
		return "", false
	}
	e.path = ""
	return below, true
}

// answerMount answers a call of the MOUNT program.
func (d *Door) answerMount(ctx context.Context, from *connection, c *call) []byte {
	const null, mount, dump, unmount, unmountAll, exports = 0, 1, 2, 3, 4, 5
	switch c.procedure {
	case null, unmount, unmountAll:
		return c.accepted(success)
	case dump, exports:
		return c.accepted(success, 0, 0, 0, 0) // an empty list: nobody is told of paths
	case mount:
		path := c.arguments.text()
		if c.arguments.bad {
			return c.accepted(badArguments)
		}
		var e encoder
		dir, errno := d.exported(ctx, path)
		e.u32(uint32(statusOf(errno)))
		if errno == 0 {
			from.trusted.Store(true)
			e.opaque(d.objects.handle(dir))
			e.u32(1, authSys)
		}
		return c.accepted(success, e.b...)
	}
	return c.accepted(noProcedure)
}

// exported returns the directory that a client mounts by a path: the root, or one below it.
func (d *Door) exported(ctx context.Context, path string) (dir *object, errno syscall.Errno) {
	below, ok := d.export.use(path)
	if !ok {
		return nil, syscall.EACCES
	}
	dir = d.objects.root
	for name := range strings.FieldsFuncSeq(below, func(r rune) bool { return r == '/' }) {
		look, errno := d.look(ctx, dir)
		if errno != 0 {
			return nil, errno
		}
		dir, _, errno = d.find(ctx, &look, dir, name)
		look.Close()
		if errno != 0 {
			return nil, errno
		}
	}
	if dir.kind != storage.KindDir {
		return nil, syscall.ENOTDIR
	}
	return dir, 0
}
