//go:build linux

package fs

import (
	"encoding/binary"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A process that is killed while it waits for an answer does not end before it gets one. Its request may be in the
// middle of long work, or in a system call on a SOURCE that hangs, which nothing can interrupt. So the answer does not
// depend on the work: calls answers requests whose callers are gone, over the head of the FUSE library, and the kernel
// drops what the library answers later. This costs the other requests next to nothing, as none needs a goroutine of
// its own.

const (
	// lookEvery is how often requests are looked at whose callers got a signal. A request is first told that its caller
	// is gone, which ends most, and answered at the next look.
	lookEvery = 20 * time.Millisecond
	// maxOrphans is how many requests may go on without a caller: each may hold a thread in a system call that does not
	// return. Beyond it new requests are refused with EBUSY.
	maxOrphans = 256
)

// calls are the requests under way.
type calls struct {
	log    *slog.Logger
	wake   chan struct{}
	device int // of the connection, or -1
	counts counts

	mu      sync.Mutex // guards the fields below, and those of each call but gone
	waiting []*call
	orphans int
	asleep  bool // the next request wakes watch
	refused bool // the log says that there are too many orphans
}

// call is a request under way.
type call struct {
	index       int // in calls.waiting
	unique      uint64
	caller      caller
	interrupted <-chan struct{} // closed when the caller has got a signal
	gone        chan struct{}   // closed when the caller is gone; the context of the request
	told        bool            // gone is closed
	answered    bool            // the kernel has its answer
}

func newCalls(log *slog.Logger) *calls {
	return &calls{log: log, wake: make(chan struct{}, 1), device: -1, asleep: true}
}

// spareCalls are calls whose channel was not closed.
var spareCalls = sync.Pool{New: func() any { return &call{gone: make(chan struct{})} }}

// begin adds a request. It returns nil if there are too many without a caller.
func (c *calls) begin(interrupted <-chan struct{}, header *fuse.InHeader, changes bool) *call {
	c.counts.begin()
	r := spareCalls.Get().(*call)
	r.unique, r.interrupted, r.caller = header.Unique, interrupted, caller{header.Pid, changes}
	c.mu.Lock()
	if c.orphans >= maxOrphans {
		first := !c.refused
		c.refused = true
		c.mu.Unlock()
		if first {
			c.log.Error("SOURCE does not answer: new requests are refused with EBUSY", "without a caller", maxOrphans)
		}
		spareCalls.Put(r)
		return nil
	}
	r.index = len(c.waiting)
	c.waiting = append(c.waiting, r)
	wake := c.asleep
	c.asleep = false
	c.mu.Unlock()
	if wake {
		c.wake <- struct{}{} // does not block: watch sleeps
	}
	return r
}

// end removes a request. It reports whether the kernel has its answer already: then nobody will release what the
// request acquired.
func (c *calls) end(r *call) (answered bool) {
	c.mu.Lock()
	last := len(c.waiting) - 1
	c.waiting[r.index] = c.waiting[last]
	c.waiting[r.index].index = r.index
	c.waiting[last] = nil
	c.waiting = c.waiting[:last]
	answered = r.answered
	if answered {
		c.orphans--
		c.refused = c.refused && c.orphans > maxOrphans/2
	}
	told := r.told
	c.mu.Unlock()
	if !told {
		spareCalls.Put(r)
	}
	return answered
}

// running is how many requests are under way.
func (c *calls) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// close gives the descriptor back.
func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.device >= 0 {
		_ = unix.Close(c.device)
		c.device = -1
	}
}

// watch looks after the requests until stop is closed. It sleeps while there are none.
func (c *calls) watch(stop <-chan struct{}) {
	for {
		select {
		case <-c.wake:
		case <-stop:
			return
		}
		for c.look() {
			time.Sleep(lookEvery)
		}
	}
}

// look frees the callers that are gone. It returns false if there are no requests.
func (c *calls) look() bool {
	c.mu.Lock()
	if len(c.waiting) == 0 {
		c.asleep = true
		c.mu.Unlock()
		return false
	}
	type suspect struct {
		call   *call
		unique uint64
		caller caller
	}
	var suspects []suspect
	for _, r := range c.waiting {
		select {
		case <-r.interrupted:
		default:
			continue
		}
		switch {
		case r.answered:
		case r.told:
			c.answer(r)
		default:
			suspects = append(suspects, suspect{r, r.unique, r.caller})
		}
	}
	c.mu.Unlock()
	for _, s := range suspects {
		if s.caller.gone() {
			c.tell(s.call, s.unique)
		}
	}
	return true
}

// tell tells a request that its caller is gone, if it is still under way.
func (c *calls) tell(r *call, unique uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.index < len(c.waiting) && c.waiting[r.index] == r && r.unique == unique {
		r.told = true
		close(r.gone)
	}
}

// answer answers a request with EINTR. Callers must hold c.mu, so that it is not under way any more only after end has
// seen that.
func (c *calls) answer(r *call) {
	if c.device < 0 {
		return
	}
	const size = 16 // of struct fuse_out_header
	var reply [size]byte
	binary.NativeEndian.PutUint32(reply[0:], size)
	errno := int32(-int32(syscall.EINTR))
	binary.NativeEndian.PutUint32(reply[4:], uint32(errno))
	binary.NativeEndian.PutUint64(reply[8:], r.unique)
	// An error means that the connection is gone, and with it the caller.
	_, _ = unix.Write(c.device, reply[:])
	r.answered = true
	c.orphans++
}
