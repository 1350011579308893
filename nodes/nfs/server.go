package nfs

import (
	"context"
	"encoding/binary"
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
)

const (
	maxConnections = 64
	maxRequests    = 64               // that are answered at a time
	strangerTime   = 10 * time.Second // how long a connection may show neither a handle nor the secret
	sendTime       = 30 * time.Second // how long a client may not take an answer
	maxReplies     = 1024             // to changing calls, which are kept
)

// Programs.
const (
	nfsProgram, mountProgram = 100003, 100005
	programVersion           = 3
)

// Door answers NFS clients for one tree.
type Door struct {
	objects *table
	files   openFiles
	lists   listings
	export  export
	replies replies
	space   func() (nodes.Space, error)
	result  atomic.Pointer[[]byte] // what the last lines have answered
	uid     uint32                 // of the owner
	epoch   uint64                 // tells a client that the server was restarted
	busy    chan struct{}          // a place for each request
	log     *slog.Logger
}

// nodeShare is how much of the memory of the process there must be for each object of the table.
const nodeShare = 4 << 10

// New returns a door to the nodes below root. source names the tree, and secret, 32 random bytes that are kept, makes its
// handles: they stay good with the next server of the same.
func New(root *nodes.RootDir, source string, secret []byte, log *slog.Logger) *Door {
	d := &Door{space: root.Space, uid: uint32(os.Geteuid()), epoch: uint64(time.Now().UnixNano()), log: log}
	d.objects = newTable(secret, source, int(min(maxObjects, root.View().Memory.Size()/nodeShare)))
	d.objects.root.node = root
	d.files.of = map[*object]*openFile{}
	d.lists = listings{seed: maphash.MakeSeed(), of: map[*object]*listing{}}
	d.replies.seed = maphash.MakeSeed()
	d.replies.lru, _ = simplelru.NewLRU[replyKey, *reply](maxReplies, nil) // the size is positive
	d.busy = make(chan struct{}, maxRequests)
	return d
}

// Result returns what the lines have answered that were written last: the directory of a new session, for example.
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
	all.Go(func() { d.expire(ctx) })
	var connections atomic.Int32
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
		if connections.Add(1) > maxConnections {
			connections.Add(-1)
			c.Close()
			continue
		}
		all.Go(func() {
			defer connections.Add(-1)
			d.serve(ctx, c)
		})
	}
}

// expire drops what clients have stopped using.
func (d *Door) expire(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			d.files.expire(false)
			d.lists.expire(false)
		case <-ctx.Done():
		}
	}
	d.files.expire(true)
	d.lists.expire(true)
}

// connection is one of a client.
type connection struct {
	net.Conn
	from    string
	sending sync.Mutex
	trusted atomic.Bool // a handle or the secret has come over it
}

// serve answers the calls of a connection, each as soon as it can.
func (d *Door) serve(ctx context.Context, socket net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	c := &connection{Conn: socket}
	c.from, _, _ = net.SplitHostPort(socket.RemoteAddr().String())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer c.Close()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	stranger := time.AfterFunc(strangerTime, func() {
		if !c.trusted.Load() {
			c.Close()
		}
	})
	defer stranger.Stop()
	for {
		message, err := readRecord(c)
		if err != nil {
			return
		}
		select {
		case d.busy <- struct{}{}:
		case <-ctx.Done():
			return
		}
		calls.Go(func() {
			defer func() { <-d.busy }()
			reply := d.answer(ctx, c, message)
			if reply == nil {
				c.Close()
				return
			}
			c.sending.Lock()
			defer c.sending.Unlock()
			_ = c.SetWriteDeadline(time.Now().Add(sendTime))
			if _, err := c.Write(reply); err != nil {
				c.Close()
			}
		})
	}
}

// answer returns the reply to a message, nil if it is no call.
func (d *Door) answer(ctx context.Context, from *connection, message []byte) []byte {
	c, ok := parseCall(message)
	if !ok {
		return nil
	}
	switch {
	case c.version != rpcVersion:
		e := newReply(c.xid)
		e.u32(replyDenied, rpcMismatch, rpcVersion, rpcVersion)
		return e.record()
	case c.program != nfsProgram && c.program != mountProgram:
		return accepted(c.xid, programUnavailable).record()
	case c.programVersion != programVersion:
		e := accepted(c.xid, programMismatch)
		e.u32(programVersion, programVersion)
		return e.record()
	case c.program == mountProgram:
		e, mounted := d.mountProcedure(ctx, &c)
		if mounted {
			from.trusted.Store(true)
		}
		return e.record()
	case c.no == 0:
		return accepted(c.xid, success).record()
	case c.no >= uint32(len(procedures)):
		return accepted(c.xid, procedureUnavailable).record()
	case c.flavor != authSys:
		return denied(c.xid, authTooWeak).record()
	case c.uid != d.uid && c.uid != 0:
		return denied(c.xid, authRejected).record()
	}
	if !procedures[c.no].changes {
		return d.answerNFS(ctx, from, &c)
	}
	return d.replies.once(replyKey{from.from, c.xid, maphash.Bytes(d.replies.seed, message)}, func() []byte {
		defer d.files.change()
		return d.answerNFS(ctx, from, &c)
	})
}

// answerNFS answers a call of the NFS program.
func (d *Door) answerNFS(ctx context.Context, from *connection, c *call) []byte {
	r := &request{call: c, door: d, ctx: ctx, in: &c.arguments, trust: func() { from.trusted.Store(true) }}
	r.out.u32(uint32(nfsOK))
	e := accepted(c.xid, r.answer(procedures[c.no]))
	if binary.BigEndian.Uint32(e.b[len(e.b)-4:]) == success {
		e.b = append(e.b, r.out.b...)
	}
	return e.record()
}

// replies are the replies to calls that changed something. A client that gets no answer sends the call again, and it must
// not be carried out twice.
type replies struct {
	seed maphash.Seed
	mu   sync.Mutex
	lru  *simplelru.LRU[replyKey, *reply]
}

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
