package nfs

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

const (
	maxConnections = 64
	maxRequests    = 64               // that are answered at a time
	strangerTime   = 10 * time.Second // how long a connection may show neither a handle nor the secret
	sendTime       = 30 * time.Second // how long a client may take for an answer
)

// Door answers NFS clients for one tree.
type Door struct {
	objects *table
	files   cache[*openFile]
	lists   cache[*listing]
	seed    maphash.Seed
	export  export
	replies replies
	space   func() (nodes.Space, error)
	changed atomic.Int64           // when a client changed something last, in nanoseconds since 1970
	result  atomic.Pointer[[]byte] // the answer to the lines that were written last
	uid     uint32                 // of the owner
	epoch   uint64                 // tells a client that the server was restarted
	busy    chan struct{}          // has room for maxRequests
	log     *slog.Logger
}

// New returns a door to the nodes below root. source names the tree. secret, 32 random bytes that
// are kept, makes its handles, which stay good with the next server of the same.
func New(root *nodes.RootDir, source string, secret []byte, log *slog.Logger) *Door {
	d := &Door{
		files: cache[*openFile]{limit: 64, idle: 3 * time.Second, of: map[*object]*cached[*openFile]{}},
		lists: cache[*listing]{limit: 16, idle: listingAge, of: map[*object]*cached[*listing]{}},
		seed:  maphash.MakeSeed(), space: root.Space, uid: uint32(os.Geteuid()), epoch: uint64(time.Now().UnixNano()),
		busy: make(chan struct{}, maxRequests), log: log,
	}
	d.objects = newTable(secret, source, root)
	d.replies.lru, _ = simplelru.NewLRU[replyKey, *reply](maxReplies, nil) // the size is positive
	return d
}

// Result returns the answer to the lines that were written last: the directory of a new session,
// for example.
func (d *Door) Result() []byte {
	if text := d.result.Load(); text != nil {
		return *text
	}
	return nil
}

// Serve answers the clients that connect, until ctx is done.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	context.AfterFunc(ctx, func() { l.Close() })
	all.Go(storage.Guarded(func() { d.expire(ctx) }))
	connections := make(chan struct{}, maxConnections)
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
			continue
		}
		select {
		case connections <- struct{}{}:
			all.Go(func() {
				d.serve(ctx, &connection{Conn: c})
				<-connections
			})
		default:
			c.Close()
		}
	}
}

// expire drops what clients have stopped using.
func (d *Door) expire(ctx context.Context) {
	for tick := time.Tick(time.Second); ctx.Err() == nil; {
		select {
		case <-tick:
		case <-ctx.Done():
		}
		d.files.expire(ctx.Err() != nil)
		d.lists.expire(ctx.Err() != nil)
	}
}

// connection is one of a client.
type connection struct {
	net.Conn
	sending sync.Mutex
	trusted atomic.Bool // a handle or the secret has come over it
}

// client returns the address of the client, without its port.
func (c *connection) client() (host string) {
	if c.Conn != nil {
		host, _, _ = net.SplitHostPort(c.RemoteAddr().String())
	}
	return host
}

// serve answers the calls of a connection, each as soon as it can.
func (d *Door) serve(ctx context.Context, c *connection) {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel() // which closes the connection
	context.AfterFunc(ctx, func() { c.Close() })
	stranger := time.AfterFunc(strangerTime, func() {
		if !c.trusted.Load() {
			cancel()
		}
	})
	defer stranger.Stop()
	for {
		message, err := readRecord(c)
		if err != nil {
			return
		}
		d.busy <- struct{}{}
		calls.Go(storage.Guarded(func() {
			defer func() { <-d.busy }()
			reply := d.answer(ctx, c, message)
			c.sending.Lock()
			defer c.sending.Unlock()
			_ = c.SetWriteDeadline(time.Now().Add(sendTime))
			if _, err := c.Write(reply); err != nil || reply == nil {
				cancel()
			}
		}))
	}
}

// Programs, and the version of both.
const (
	nfsProgram, mountProgram = 100003, 100005
	programVersion           = 3
)

// answer returns the reply to a message, nil if it is no call.
func (d *Door) answer(ctx context.Context, from *connection, message []byte) []byte {
	c, ok := parseCall(message)
	switch {
	case !ok:
		return nil
	case c.version != rpcVersion:
		return c.reply(nil, replyDenied, rpcMismatch, rpcVersion, rpcVersion)
	case c.program != nfsProgram && c.program != mountProgram:
		return c.accepted(noProgram)
	case c.programVersion != programVersion:
		return c.reply(nil, replyAccepted, authNone, 0, noVersion, programVersion, programVersion)
	case c.program == mountProgram:
		return d.answerMount(ctx, from, &c)
	case c.procedure == 0:
		return c.accepted(success)
	case c.procedure >= uint32(len(procedures)):
		return c.accepted(noProcedure)
	case c.flavor != authSys:
		return c.reply(nil, replyDenied, authError, authTooWeak)
	case c.uid != d.uid && c.uid != 0:
		return c.reply(nil, replyDenied, authError, authRejected)
	}
	p := procedures[c.procedure]
	r := &request{call: &c, door: d, ctx: ctx, from: from, in: &c.arguments}
	if !p.changes {
		return r.answer(p)
	}
	return d.replies.once(replyKey{from.client(), c.xid, maphash.Bytes(d.seed, message)}, func() []byte {
		defer func() { d.changed.Store(time.Now().UnixNano()) }()
		return r.answer(p)
	})
}

// replies are the last replies to calls that changed something. A client that gets no answer sends
// the call again, and it must not be carried out twice.
type replies struct {
	mu  sync.Mutex
	lru *simplelru.LRU[replyKey, *reply]
}

const maxReplies = 1024

// replyKey is the client, the number of its call, and a checksum of the call.
type replyKey struct {
	client string
	xid    uint32
	sum    uint64
}

type reply struct {
	done chan struct{} // closed when text is there
	text []byte
}

// once returns the reply to a call, which do makes unless it was made before.
func (r *replies) once(k replyKey, do func() []byte) []byte {
	r.mu.Lock()
	known, again := r.lru.Get(k)
	if !again {
		known = &reply{done: make(chan struct{})}
		r.lru.Add(k, known)
	}
	r.mu.Unlock()
	if again {
		<-known.done
		return known.text
	}
	defer close(known.done)
	known.text = do()
	return known.text
}
