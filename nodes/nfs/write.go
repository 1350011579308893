package nfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore"
)

const (
	// maxWrite is the most that a WRITE brings, in bytes.
	maxWrite = 64 << 10
	// gapWait is how long a WRITE waits for those before it, which a client may send later.
	gapWait = 5 * time.Second
	// settle is how long the first WRITE to this server waits for those before it.
	settle = 300 * time.Millisecond
	// lineWait is how long the beginning of a line waits for its end. A client of NFS closes nothing.
	lineWait = 10 * time.Second
	// tailSize is how many of the last bytes are kept: a client writes whole pages, of which it has the beginning already.
	tailSize = 64 << 10
)

var (
	errGap     = fmt.Errorf("%w: bytes before these are missing: append to the file, or write it anew", sessioncore.ErrInvalid)
	errDiffers = fmt.Errorf("%w: another text stands there by now: append to the file, or write it anew", sessioncore.ErrInvalid)
	errNoEnd   = fmt.Errorf("%w: by NFS a line needs a newline at its end: this one was given up after ten seconds", sessioncore.ErrInvalid)
)

// lines is the state of a file that accepts lines. To a client it is a file that grows by what is written to it.
type lines struct {
	file nodes.Control
	name string

	mu      sync.Mutex    // guards what follows; held while lines are carried out, so that they take effect in order
	more    chan struct{} // closed when size changes
	based   bool          // a request has said where it writes
	first   int64         // the lowest offset of those that came before
	size    int64         // bytes that were taken
	tail    []byte        // the last of them
	told    int64         // the size that clients were told last, of a file that is also read
	emptied time.Time     // when a client made the file empty; until it writes, that is what it sees
	handle  nodes.WriteHandle
	giveUp  *time.Timer // ends a line that has no end
}

// linesOf returns the state of the object, whose node is file.
func (o *object) linesOf(file nodes.Control) *lines {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines == nil {
		o.lines = &lines{file: file, name: o.name, more: make(chan struct{}), first: math.MaxInt64}
	}
	return o.lines
}

// tell returns the size to show clients; size is that of what is read.
func (l *lines) tell(size int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.file.Readable():
		return l.size
	case time.Since(l.emptied) < 2*fresh:
		return 0
	case l.handle != nil: // in the middle of a line
		return l.size
	}
	l.told = size
	return size
}

// readTail reads of what was written to a file that shows nothing itself.
func (l *lines) readTail(p []byte, off int64) (n int, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(p)
	if off >= l.size {
		return 0, l.size
	}
	n = int(min(int64(len(p)), l.size-off))
	if start := l.size - int64(len(l.tail)); off >= start {
		copy(p[:n], l.tail[off-start:])
	} else if start < off+int64(n) {
		copy(p[start-off:n], l.tail)
	}
	return n, l.size
}

// empty makes the file empty, as > does.
func (l *lines) empty() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	l.based, l.tail, l.emptied = true, nil, time.Now()
	l.setSize(0)
}

// end ends the open file.
func (l *lines) end() {
	if l.handle != nil {
		l.handle.Close()
		l.handle = nil
		l.giveUp.Stop()
	}
}

func (l *lines) setSize(size int64) {
	l.size = size
	close(l.more)
	l.more = make(chan struct{})
}

// write takes the bytes of data, which begin at off, that lie behind what was taken. It returns how many bytes of data are
// taken now, and what the lines that they complete have answered.
func (l *lines) write(ctx context.Context, data []byte, off int64) (n int, answer []byte, errno syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	skip, err := l.skip(ctx, data, off)
	if err != nil {
		return 0, nil, l.file.Refused(err)
	}
	if skip == len(data) {
		return skip, nil, 0
	}
	data = data[skip:]
	if l.handle == nil {
		h, errno := nodes.OpenFile(ctx, l.file, l.name, os.O_RDWR|os.O_APPEND)
		if errno != 0 {
			return 0, nil, errno
		}
		l.handle = h.(nodes.WriteHandle)
		l.giveUp = time.AfterFunc(lineWait, l.abandon)
	}
	l.giveUp.Reset(lineWait)
	n, errno = l.handle.Write(ctx, data, off+int64(skip))
	if errno != 0 {
		n = len(data) // nothing of it is taken later
	}
	l.take(data[:n])
	if !l.file.Readable() && errno == 0 {
		answer, _ = io.ReadAll(io.NewSectionReader(handleReader{ctx, l.handle}, 0, 1<<20))
	}
	if errno != 0 || n == len(data) && data[n-1] == '\n' {
		l.end()
	}
	return skip + n, answer, errno
}

// handleReader reads a handle.
type handleReader struct {
	ctx    context.Context
	handle nodes.Handle
}

func (r handleReader) ReadAt(p []byte, off int64) (n int, err error) {
	if n, err = r.handle.ReadAt(r.ctx, p, off); n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// take counts bytes that were taken.
func (l *lines) take(data []byte) {
	l.tail = append(l.tail, data...)
	if over := len(l.tail) - tailSize; over > 0 {
		l.tail = append([]byte(nil), l.tail[over:]...)
	}
	l.emptied = time.Time{}
	l.setSize(l.size + int64(len(data)))
}

// skip returns how many bytes of data were taken before. It waits for missing bytes before it.
func (l *lines) skip(ctx context.Context, data []byte, off int64) (int, error) {
	l.setBase(ctx, data, off)
	if l.file.Readable() && l.handle == nil && off != l.size && l.told >= off && l.told <= off+int64(len(data)) {
		// What the file shows is another text than what was written to it. The client goes on behind what it shows.
		return int(l.told - off), l.rebase(ctx, data[:l.told-off], off)
	}
	if err := l.await(ctx, gapWait, func() bool { return l.size >= off }); err != nil {
		return 0, err
	}
	n := min(l.size-off, int64(len(data)))
	start := l.size - int64(len(l.tail))
	if off < start || !bytes.Equal(data[:n], l.tail[off-start:][:n]) {
		if n > 0 {
			return 0, errDiffers
		}
	}
	return int(n), nil
}

// rebase sets the size to that of what the file shows. before is what the client has of its end, from off on.
func (l *lines) rebase(ctx context.Context, before []byte, off int64) error {
	h, errno := nodes.OpenFile(ctx, l.file, l.name, os.O_RDONLY)
	if errno != 0 {
		return errno
	}
	defer h.Close()
	shown := make([]byte, len(before))
	if n, err := h.ReadAt(ctx, shown, off); err != nil && err != io.EOF || !bytes.Equal(shown[:n], before) {
		return errDiffers
	}
	l.tail = nil
	l.setSize(l.told)
	return nil
}

// setBase takes the first WRITE to this server as going on from an earlier one. Of several that come at once that is the one
// with the lowest offset.
func (l *lines) setBase(ctx context.Context, data []byte, off int64) {
	if l.based {
		return
	}
	l.first = min(l.first, off)
	if off > 0 {
		_ = l.await(ctx, settle, func() bool { return l.based })
	}
	if l.based {
		return
	}
	l.based, l.tail = true, nil
	base := l.first
	if l.file.Readable() && l.told >= off && l.told <= off+int64(len(data)) {
		base = l.told
	}
	l.setSize(base)
}

// await waits for so long until there is something.
func (l *lines) await(ctx context.Context, most time.Duration, there func() bool) error {
	late := time.After(most)
	for !there() {
		more := l.more
		l.mu.Unlock()
		select {
		case <-more:
			l.mu.Lock()
			continue
		case <-late:
		case <-ctx.Done():
		}
		l.mu.Lock()
		return errGap
	}
	return nil
}

// abandon gives up a line that has no end.
func (l *lines) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handle != nil {
		l.end()
		l.file.Refused(errNoEnd)
	}
}

// writeFile answers WRITE. All that is taken is durable.
func (r *request) writeFile() status {
	o, n, st := r.object()
	off, count := r.in.u64(), r.in.u32()
	r.in.u32() // how durable it must be
	data := r.in.opaque(maxWrite)
	if st != nfsOK || r.in.bad {
		return st
	}
	file, ok := n.(nodes.Control)
	switch {
	case !ok:
		return statusOf(nodes.Deny(n, o.name, "write"))
	case uint32(len(data)) != count || off > 1<<62:
		return nfsInvalid
	}
	l, taken := o.linesOf(file), 0
	if count > 0 {
		var answer []byte
		var errno syscall.Errno
		taken, answer, errno = l.write(context.WithoutCancel(r.ctx), data, int64(off))
		if errno == 0 {
			errno = file.Sync(context.WithoutCancel(r.ctx))
		}
		if errno != 0 {
			return statusOf(errno)
		}
		if len(answer) > 0 {
			r.door.result.Store(&answer)
		}
	}
	r.wcc(o, n)
	r.out.u32(uint32(taken), fileSync)
	r.out.u64(r.door.epoch)
	return nfsOK
}

// fileSync says that what was written is durable.
const fileSync = 2

// wcc writes the attributes after a change, without those before it.
func (r *request) wcc(o *object, n nodes.Node) {
	r.out.bool(false)
	r.postAttr(o, n)
}

// setAttr answers SETATTR. A size of 0 is what > sends.
func (r *request) setAttr() status {
	o, n, st := r.object()
	var to nodes.AttrChange
	for _, field := range []**uint32{&to.Mode, &to.UID, &to.GID} {
		if r.in.bool() {
			*field = new(r.in.u32())
		}
	}
	resize, size := r.in.bool(), uint64(0)
	if resize {
		size = r.in.u64()
	}
	const clientTime = 2
	for range 2 { // the times are ignored
		if r.in.u32() == clientTime {
			r.in.u64()
		}
	}
	if guarded := r.in.bool(); guarded {
		r.in.u64()
	}
	if st != nfsOK || r.in.bad {
		return st
	}
	if _, errno := nodes.SetAttr(r.ctx, n, o.name, to); errno != 0 {
		return statusOf(errno)
	}
	if file, ok := n.(nodes.Control); ok && resize && size == 0 {
		o.linesOf(file).empty()
	}
	r.wcc(o, n)
	return nfsOK
}

// commit answers COMMIT.
func (r *request) commit() status {
	_, n, st := r.object()
	if st != nfsOK {
		return st
	}
	if file, ok := n.(nodes.Control); ok {
		if errno := file.Sync(context.WithoutCancel(r.ctx)); errno != 0 {
			return statusOf(errno)
		}
	}
	r.out.u32(0, 0) // no attributes
	r.out.u64(r.door.epoch)
	return nfsOK
}
