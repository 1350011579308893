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
	maxArrived     = 64               // connections that wait until their owners are known
	maxCalls       = 64               // of a connection that wait for their answers; one at a time of a stranger
	strangerTime   = 10 * time.Second // how long a connection may show neither a handle nor the secret
	sendTime       = 30 * time.Second // how long a client may take for an answer
	strangerSend   = time.Second      // the same for a stranger
	exportTime     = time.Minute      // how long an exported path is good
	maxReplies     = 1024             // that are kept
	maxObjects     = 1 << 16          // that are kept; a quarter of the memory of the process is enough for it
)

// Door answers NFS clients for one tree.
type Door struct {
	root     *handledNode                     // its own parent
	objects  *lru.Cache[handle, *handledNode] // those that were used last
	versions *lru.Cache[*handledNode, *fileVersion]
	replies  *lru.Cache[[sha256.Size]byte, func() []byte] // to the last calls that changed something
	secret   []byte
	space    func() (nodes.Space, error)
	changed  atomic.Int64           // when a client changed something last, in nanoseconds since 1970
	result   atomic.Pointer[[]byte] // the answer to the lines that were written last
	uid      uint32                 // of the owner
	epoch    uint64                 // tells a client that the server was restarted
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
		root:   &handledNode{handle: handle{Kind: storage.KindDir}, node: root},
		secret: secret,
		space:  root.Space,
		uid:    uint32(os.Geteuid()),
		epoch:  uint64(time.Now().UnixNano()),
		log:    log,
	}
	d.root.parent = d.root
	d.root.ID = nodeID(d.mac([]byte(source)))
	d.result.Store(new([]byte))
	const memoryOfObject = 4 << 10 // of the budget
	objects := min(maxObjects, root.View().Memory.Size()/memoryOfObject)
	d.objects, _ = lru.New[handle, *handledNode](int(objects)) // it is positive
	d.versions, _ = lru.NewWithEvict(maxVersions, func(_ *handledNode, v *fileVersion) {
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
	d.path = rand.Text()
	d.exported = time.Now()
	return "/" + d.path
}

// useExport reports whether a path is the exported one, or below it, and returns the part below. The exported
// path is not good any more then.
func (d *Door) useExport(path string) (below string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, below, _ := strings.Cut(strings.Trim(path, "/"), "/")
	isSame := subtle.ConstantTimeCompare([]byte(first), []byte(d.path)) == 1
	if !isSame || time.Since(d.exported) > exportTime {
		return "", false
	}
	d.exported = time.Time{}
	return below, true
}

// Serve answers the clients that connect, until ctx is done, which is no error, or the listener fails. It closes
// the listener. Connections of other users are closed before a byte is read, and hold no place.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	owners := openSocketOwners(l.Addr())
	refused := refusedConnections{log: d.log}
	var connections errgroup.Group
	connections.SetLimit(maxConnections)
	defer func() {
		cancel()
		_ = connections.Wait() // the error of a client that left
		owners.close()
		refused.end()
		d.versions.Purge()
		d.closing.Wait()
	}()
	context.AfterFunc(ctx, func() { l.Close() })
	arrived := make(chan net.Conn, maxArrived)
	failure := make(chan error, 1)
	go func() { failure <- d.accept(l, arrived) }()
	for first := range arrived {
		batch := withWaiting(first, arrived)
		for i, err := range owners.check(batch, d.uid) {
			c := batch[i]
			if err != nil {
				refused.close(c, err)
				continue
			}
			hasPlace := connections.TryGo(func() error {
				return d.serve(ctx, newConnection(c))
			})
			if !hasPlace {
				c.Close()
			}
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return <-failure
}

// withWaiting returns a connection and those that wait in a channel, without waiting for more: their owners are
// looked up together.
func withWaiting(first net.Conn, arrived <-chan net.Conn) []net.Conn {
	batch := []net.Conn{first}
	for range len(arrived) {
		batch = append(batch, <-arrived)
	}
	return batch
}

// accept hands on the connections of a listener until that is closed, and closes arrived then. It returns
// net.ErrClosed; other errors it logs.
func (d *Door) accept(l net.Listener, arrived chan<- net.Conn) error {
	defer close(arrived)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // no descriptors, for example
			const pause = 100 * time.Millisecond // until some are free
			d.log.Warn("a client cannot connect", "err", err)
			time.Sleep(pause)
			continue
		}
		arrived <- c
	}
}

// clientConnection is one of a client. It is a stranger's until a handle or the secret has come over it.
type clientConnection struct {
	net.Conn
	trust   func()        // ends that it is a stranger's
	trusted chan struct{} // is closed by trust
	calls   chan struct{} // has room for maxCalls
	replies chan reply    // has room for maxCalls replies
}

// reply is the answer to a call.
type reply struct {
	message []byte        // nil if it was no call
	sent    chan struct{} // is closed when the answer is sent, or cannot be
}

// newConnection returns a connection that is not trusted yet. Its trust ends the deadline for strangers.
func newConnection(c net.Conn) *clientConnection {
	trusted := make(chan struct{})
	return &clientConnection{
		Conn:    c,
		trusted: trusted,
		trust: sync.OnceFunc(func() {
			_ = c.SetReadDeadline(time.Time{})
			close(trusted)
		}),
		calls:   make(chan struct{}, maxCalls),
		replies: make(chan reply, maxCalls),
	}
}

// serve answers the calls of a connection, each as soon as it can, until the client or ctx ends it. A stranger's
// are answered one by one. A client that reads no answers keeps nobody else waiting.
func (d *Door) serve(ctx context.Context, c *clientConnection) error {
	ctx, cancel := context.WithCancel(ctx)
	var calls, sender sync.WaitGroup
	defer func() {
		cancel()
		calls.Wait()
		close(c.replies)
		sender.Wait()
	}()
	context.AfterFunc(ctx, func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(strangerTime))
	sender.Go(func() { c.send(cancel) })
	for {
		c.calls <- struct{}{} // send takes it out
		message, err := readRecord(c)
		if err != nil {
			return err
		}
		sent := make(chan struct{})
		calls.Go(func() {
			c.replies <- reply{message: d.answer(ctx, c, message), sent: sent}
		})
		select {
		case <-c.trusted:
		case <-sent:
		}
	}
}

// send sends the replies until c.replies is closed. It calls end where a client takes no reply or sends a
// message that is no call.
func (c *clientConnection) send(end func()) {
	for r := range c.replies {
		isCall := r.message != nil
		_ = c.SetWriteDeadline(time.Now().Add(c.sendLimit()))
		_, err := c.Write(r.message)
		if err != nil || !isCall {
			end()
		}
		close(r.sent)
		<-c.calls
	}
}

// sendLimit returns how long the client may take for a reply.
func (c *clientConnection) sendLimit() time.Duration {
	select {
	case <-c.trusted:
		return sendTime
	default:
		return strangerSend
	}
}
