package nfs

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore"
)

const (
	maxWrite = 64 << 10               // the most that a WRITE brings, in bytes
	tailSize = 64 << 10               // how many bytes before the end are kept: a client writes whole pages
	gapWait  = 5 * time.Second        // how long a WRITE waits for those before it, which a client may send later
	settle   = 300 * time.Millisecond // the same for the first WRITE to this server
	lineWait = 10 * time.Second       // how long a line waits for its end: a client of NFS closes nothing
)

var (
	errGap     = fmt.Errorf("%w: bytes before these are missing: append to the file, or write it anew", sessioncore.ErrInvalid)
	errDiffers = fmt.Errorf("%w: another text is there by now: append to the file, or write it anew", sessioncore.ErrInvalid)
	errNoEnd   = fmt.Errorf("%w: by NFS a line needs a newline at its end: it was given up after ten seconds",
		sessioncore.ErrInvalid)
)

// acceptedLines is the state of a file that accepts lines. To a client it is a file that grows by the bytes
// that are written to it.
type acceptedLines struct {
	file nodes.Control
	name string

	mu          sync.Mutex    // guards the rest; held while lines are carried out, so that they take effect in order
	sizeChanged chan struct{} // closed when size changes
	isSizeKnown bool
	firstOffset int64     // the lowest offset of a WRITE before size was known
	size        int64     // in bytes
	tail        []byte    // the last bytes, as clients have them
	emptied     time.Time // when a client made the file empty; it sees that until it writes
	handle      nodes.WriteHandle
	giveUp      *time.Timer // ends a line that has no end; set while there is a handle
}

// newLines returns the accepted lines of a control file. No client has written any.
func newLines(file nodes.Control, name string) *acceptedLines {
	return &acceptedLines{
		file:        file,
		name:        name,
		sizeChanged: make(chan struct{}),
		firstOffset: math.MaxInt64,
	}
}

// writtenSize returns the size of the file in bytes, as clients have it.
func (l *acceptedLines) writtenSize() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// show sets the size and the last bytes of a file that is also read, unless a client writes, or has just made
// it empty and is about to write.
func (l *acceptedLines) show(size int64, tail []byte) {
	const seenAsEmpty = 2 * fresh // a client asks for the size each second
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.emptied) >= seenAsEmpty && l.handle == nil {
		l.set(size, tail)
	}
}

// set sets the size and the last bytes, and wakes await. Callers must hold l.mu.
func (l *acceptedLines) set(size int64, tail []byte) {
	l.isSizeKnown = true
	l.size = size
	l.tail = tail
	close(l.sizeChanged)
	l.sizeChanged = make(chan struct{})
}

// readTail reads the bytes at off that were written to a file that shows nothing. Those that are not kept
// are zero. It returns the number of bytes read, and the size of the file.
func (l *acceptedLines) readTail(p []byte, off int64) (n int, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := max(l.size-off, 0)
	n = int(min(int64(len(p)), left))
	tailBegin := l.size - int64(len(l.tail))
	for i := range p[:n] {
		at := off + int64(i)
		if at >= tailBegin {
			p[i] = l.tail[at-tailBegin]
		}
	}
	return n, l.size
}

// empty makes the file empty, and drops a line that has no end.
func (l *acceptedLines) empty() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeHandle()
	l.emptied = time.Now()
	l.set(0, nil)
}

// closeHandle closes the open file, if there is one. Callers must hold l.mu.
func (l *acceptedLines) closeHandle() {
	if l.handle != nil {
		l.handle.Close()
		l.handle = nil
		l.giveUp.Stop()
	}
}

// write takes the bytes of data, which begin at off, that lie behind those that were taken before.
// It returns how many bytes of data are taken by now, and stores the answer to the lines that they
// complete. A refusal ends the request.
func (l *acceptedLines) write(r *request, data []byte, off int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, err := l.writtenBefore(r.ctx, data, off)
	if err != nil {
		r.check(l.file.Refused(err))
	}
	data = data[before:]
	if len(data) == 0 {
		return before
	}
	l.ensureHandle(r)
	n, errno := l.handle.Write(r.ctx, data, l.size)
	if errno != 0 {
		n = len(data) // a refused line counts: the client goes on behind it
	} else if !l.file.Readable() {
		r.readAnswer(l.handle)
	}
	l.emptied = time.Time{}
	tail := append(l.tail, data[:n]...)
	dropped := max(len(tail)-tailSize, 0)
	l.set(l.size+int64(n), bytes.Clone(tail[dropped:]))
	isComplete := n == len(data) && data[n-1] == '\n'
	if errno != 0 || isComplete {
		l.closeHandle() // as no client of NFS does
	}
	r.check(errno)
	return before + n
}

// ensureHandle opens the file unless it is open, and sets the time after which an unended line is given up.
// Callers must hold l.mu. A failure ends the request.
func (l *acceptedLines) ensureHandle(r *request) {
	if l.handle == nil {
		h, errno := nodes.OpenFile(r.ctx, l.file, l.name, os.O_RDWR|os.O_APPEND)
		r.check(errno)
		l.handle = h.(nodes.WriteHandle)
		l.giveUp = time.AfterFunc(lineWait, l.abandon)
	}
	l.giveUp.Reset(lineWait)
}

// readAnswer stores the answer to the lines that a handle has taken, if there is one, for Door.Result.
func (r *request) readAnswer(h nodes.Handle) {
	var answer []byte
	part := make([]byte, 4096)
	for {
		n, _ := h.ReadAt(r.ctx, part, int64(len(answer)))
		answer = append(answer, part[:n]...)
		if n == 0 {
			break
		}
	}
	if len(answer) > 0 {
		r.result.Store(&answer)
	}
}

// writtenBefore returns how many bytes of data, which begin at off, were taken before. It waits for
// missing bytes before off, without l.mu, which the caller must hold. The error is errGap if they do not come,
// and errDiffers if other bytes were taken there, or are not kept any more.
func (l *acceptedLines) writtenBefore(ctx context.Context, data []byte, off int64) (int, error) {
	l.firstOffset = min(l.firstOffset, off)
	if !l.isSizeKnown && off > 0 {
		l.await(ctx, settle, func() bool { return l.isSizeKnown })
	}
	if !l.isSizeKnown { // a client that goes on from an earlier server
		l.set(l.firstOffset, nil)
	}
	hasAll := l.await(ctx, gapWait, func() bool { return l.size >= off })
	if !hasAll {
		return 0, errGap
	}
	n := min(l.size-off, int64(len(data)))
	if n <= 0 {
		return 0, nil
	}
	tailBegin := l.size - int64(len(l.tail))
	if off < tailBegin {
		return 0, errDiffers
	}
	written := l.tail[off-tailBegin:]
	if !bytes.Equal(data[:n], written[:n]) {
		return 0, errDiffers
	}
	return int(n), nil
}

// await waits until isReady returns true, at most for a time, and reports whether it does. l.mu is
// held but for the wait.
func (l *acceptedLines) await(ctx context.Context, limit time.Duration, isReady func() bool) bool {
	late, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !isReady() && late.Err() == nil {
		changed := l.sizeChanged
		l.mu.Unlock()
		select {
		case <-changed:
		case <-late.Done():
		}
		l.mu.Lock()
	}
	return isReady()
}

// abandon gives up a line that has no end.
func (l *acceptedLines) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handle != nil { // otherwise the line has ended meanwhile
		l.closeHandle()
		_ = l.file.Refused(errNoEnd) // nobody waits for it
	}
}
