package nfs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

const (
	maxConnections = 64
	maxRequests    = 64               // that are answered at a time
	strangerTime   = 10 * time.Second // how long a connection may show neither a handle nor the secret
	sendTime       = 30 * time.Second // how long a client may take for an answer
	exportTime     = time.Minute      // how long an exported path is good
	maxReplies     = 1024             // that are kept
	maxObjects     = 1 << 16          // that are kept; a quarter of the memory of the process is enough for it
)

// Door answers NFS clients for one tree.
type Door struct {
	root     *object                     // its own parent
	objects  *lru.Cache[handle, *object] // those that were used last
	versions *lru.Cache[*object, *version]
	replies  *lru.Cache[[sha256.Size]byte, func() []byte] // to the last calls that changed something
	secret   []byte
	space    func() (nodes.Space, error)
	changed  atomic.Int64           // when a client changed something last, in nanoseconds since 1970
	result   atomic.Pointer[[]byte] // the answer to the lines that were written last
	uid      uint32                 // of the owner
	epoch    uint64                 // tells a client that the server was restarted
	busy     chan struct{}          // has room for maxRequests
	log      *slog.Logger

	replacing sync.Mutex     // held while a version takes the place of another
	closing   sync.WaitGroup // of versions

	mu       sync.Mutex // guards the rest
	path     string
	exported time.Time // when path was exported; zero if it was used
}

// New returns a door to the nodes below root. source names the tree. secret, 32 random bytes that
// are kept, makes its handles, which stay good with the next server of the same.
func New(root *nodes.RootDir, source string, secret []byte, log *slog.Logger) *Door {
	d := &Door{
		root: &object{handle: handle{Kind: storage.KindDir}, node: root}, secret: secret,
		space: root.Space, uid: uint32(os.Geteuid()), epoch: uint64(time.Now().UnixNano()), log: log,
		busy: make(chan struct{}, maxRequests),
	}
	d.root.parent = d.root
	d.root.ID = nodeID(d.mac([]byte(source)))
	d.result.Store(new([]byte))
	d.objects, _ = lru.New[handle, *object](int(min(maxObjects, root.View().Memory.Size()>>12))) // both are positive
	d.versions, _ = lru.NewWithEvict(maxVersions, func(_ *object, v *version) {
		d.closing.Go(func() {
			v.Lock() // it has no users any more, and gets none
			v.close()
		})
	})
	d.replies, _ = lru.New[[sha256.Size]byte, func() []byte](maxReplies)
	return d
}

// Result returns the answer to the lines that were written last: the directory of a new session,
// for example.
func (d *Door) Result() []byte { return *d.result.Load() }

// Export returns a new path to mount, which is good for one mount within a minute: other users of
// the machine see the command line of mount. The path before is not good any more.
func (d *Door) Export() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.path, d.exported = rand.Text(), time.Now()
	return "/" + d.path
}

// useExport reports whether a path is the exported one, which it ends, or below it.
func (d *Door) useExport(path string) (below string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path, below, _ = strings.Cut(strings.Trim(path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(path), []byte(d.path)) == 0 || time.Since(d.exported) > exportTime {
		return "", false
	}
	d.exported = time.Time{}
	return below, true
}

// Serve answers the clients that connect, until ctx is done.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var connections errgroup.Group
	connections.SetLimit(maxConnections)
	defer func() {
		cancel()
		_ = connections.Wait() // that of a client that left
		d.versions.Purge()
		d.closing.Wait()
	}()
	context.AfterFunc(ctx, func() { l.Close() })
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // no descriptors, for example
			d.log.Warn("a client cannot connect", "err", err)
			time.Sleep(100 * time.Millisecond)
		case !connections.TryGo(func() error { return d.serve(ctx, &connection{Conn: c}) }):
			c.Close()
		}
	}
}

// connection is one of a client.
type connection struct {
	net.Conn
	sending sync.Mutex
}

// trust lets a connection stay over which a handle or the secret has come.
func (c *connection) trust() { _ = c.SetReadDeadline(time.Time{}) }

// serve answers the calls of a connection, each as soon as it can.
func (d *Door) serve(ctx context.Context, c *connection) error {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	context.AfterFunc(ctx, func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(strangerTime))
	for {
		message, err := readRecord(c)
		if err != nil {
			return err
		}
		d.busy <- struct{}{}
		calls.Go(func() {
			defer func() { <-d.busy }()
			reply := d.answer(ctx, c, message)
			c.sending.Lock()
			defer c.sending.Unlock()
			_ = c.SetWriteDeadline(time.Now().Add(sendTime))
			if _, err := c.Write(reply); err != nil || reply == nil {
				cancel()
			}
		})
	}
}
