package jsonl

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// chunk is a sequence of whole lines.
type chunk struct {
	off      int64 // offset of buf in the file
	buf      []byte
	newlines int64
	open     bool // the last line has no newline: the file ends in it
	tooLong  bool // the chunk is one line that is too long, and buf is empty
	skipped  int64
	lines    []LineInfo
	notes    notes // of its records
	done     chan error
	free     func() // gives back the room of a long line; nil for other chunks
}

// chunks holds chunks for the next load, so that reading many files allocates no buffers. A few of them outlive a collection
// of garbage: a pass over all files collects garbage more often than a pool keeps anything.
var (
	chunks     = sync.Pool{New: func() any { return &chunk{done: make(chan error, 1)} }}
	keptChunks = make(chan *chunk, 4)
)

// keepLines is the number of lines of the largest chunk that is reused. Files of tiny lines have more.
const keepLines = 4096

// keepMembers is the number of members of the records of the largest chunk that is reused.
const keepMembers = 16 << 10

func newChunk() *chunk {
	select {
	case c := <-keptChunks:
		return c
	default:
		return chunks.Get().(*chunk)
	}
}

// recycle makes the chunk, which nothing refers to, available to the next load.
func (c *chunk) recycle() {
	c.release()
	if cap(c.buf) > KeepBuffer || cap(c.lines) > keepLines || cap(c.notes.members)+cap(c.notes.inner) > keepMembers {
		return
	}
	select {
	case keptChunks <- c:
	default:
		chunks.Put(c)
	}
}

// release gives back the memory of a long line.
func (c *chunk) release() {
	if c.free != nil {
		c.buf = nil
		c.free()
		c.free = nil
	}
}

// chunkReader reads a file as chunks.
type chunkReader struct {
	obj   io.ReaderAt
	next  int64
	size  int64
	chunk int64 // size of the next read; doubles up to ChunkSize
	most  int64 // the longest line that is read
}

// fill reads the next chunk. At the end of the file it returns io.EOF. If the file has become shorter, the error
// wraps ErrStale.
func (r *chunkReader) fill(ctx context.Context, c *chunk) error {
	if r.next >= r.size {
		return io.EOF
	}
	*c = chunk{off: r.next, buf: c.buf[:0], lines: c.lines[:0], notes: c.notes.empty(), done: c.done}
	want := r.chunk
	r.chunk = min(2*r.chunk, ChunkSize)
	for {
		have := len(c.buf)
		n := min(want, r.size-r.next) - int64(have)
		c.buf = slices.Grow(c.buf, int(n))[:have+int(n)]
		if err := storage.ReadFull(r.obj, c.buf[have:], r.next+int64(have)); err != nil {
			return err
		}
		if end := lastNewline(c.buf[have:]); end >= 0 {
			c.buf = c.buf[:have+end+1]
			break
		}
		if r.next+int64(len(c.buf)) == r.size {
			c.open = true
			break
		}
		if want *= 2; want > KeepBuffer {
			return r.fillLong(ctx, c)
		}
	}
	r.next += int64(len(c.buf))
	return nil
}

// fillLong is fill for a chunk that begins with a long line, of which c.buf has the beginning. The line is measured
// first: so its buffer has the right size, and no smaller ones wait for the garbage collector.
func (r *chunkReader) fillLong(ctx context.Context, c *chunk) error {
	size, open, err := lineSize(ctx, r.obj, r.next, r.next+int64(len(c.buf)), r.size)
	if err != nil {
		return err
	}
	if size > r.most && (open || size > r.most+1) { // the newline is not a part of the line
		c.tooLong, c.skipped, c.open, c.buf = true, size, open, c.buf[:0]
		if !open {
			c.newlines = 1
		}
		r.next += size
		return nil
	}
	long, free, err := longLine(ctx, size)
	if err != nil {
		return err
	}
	c.free = free
	have := copy(long, c.buf)
	c.buf, c.open = long, open
	if err = storage.ReadFull(r.obj, long[have:], r.next+int64(have)); err == nil && !open && long[size-1] != '\n' {
		err = errLineChanged
	}
	if err != nil {
		c.release()
		return err
	}
	r.next += size
	return nil
}

// lineSize returns the size of the line at an offset in a file of end bytes, with its newline, which is searched for from
// another offset on. open reports that the file ends in the line.
func lineSize(ctx context.Context, obj io.ReaderAt, start, from, end int64) (size int64, open bool, err error) {
	buf := make([]byte, ChunkSize)
	for at := from; at < end; at += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		buf = buf[:min(ChunkSize, end-at)]
		if err := storage.ReadFull(obj, buf, at); err != nil {
			return 0, false, err
		}
		if n := bytes.IndexByte(buf, '\n'); n >= 0 {
			return at + int64(n) + 1 - start, false, nil
		}
	}
	return end - start, true, nil
}

// newlinePiece is the number of bytes that lastNewline searches with one call.
const newlinePiece = 1 << 10

// lastNewline is bytes.LastIndexByte, which checks one byte at a time, made faster with bytes.IndexByte: the last
// line of a chunk may be most of it.
func lastNewline(b []byte) int {
	for end := len(b); end > 0; end -= newlinePiece {
		start := max(0, end-newlinePiece)
		if bytes.IndexByte(b[start:end], '\n') >= 0 {
			return start + bytes.LastIndexByte(b[start:end], '\n')
		}
	}
	return -1
}

// classify classifies each line of the chunk. Blank lines are only counted. With inner, which is as in loader,
// records are noted.
func (c *chunk) classify(s *rawjson.Scanner, inner string) {
	notes := &c.notes
	if notes.key = inner; inner == "" {
		notes = nil
	}
	if c.tooLong {
		c.lines = append(c.lines, LineInfo{class: lineTooLong})
		return
	}
	for at := 0; at < len(c.buf); {
		info := LineInfo{start: uint32(at), number: uint32(c.newlines)}
		rest := c.buf[at:]
		if !classifyValue(s, rest, notes, &info) {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			info = LineInfo{start: info.start, number: info.number, length: uint32(end)}
			classify(s, rest[:end], notes, &info)
		}
		if info.class != lineBlank {
			c.lines = append(c.lines, info)
		}
		if at += int(info.length) + 1; at <= len(c.buf) {
			c.newlines++
		}
	}
}

// Reading a file takes memory for a moment, and a program can ask for many files at once. So there are limits for the
// process. Those who wait for room hold nothing that others need to go on: a file's chunks are given back in the order
// in which they were read, whatever is read behind them.

const (
	// maxReading is how many files of more than ChunkSize are read at once. Each takes some MiB, and as many
	// processors as there are.
	maxReading = 8
	// longRoom is how many bytes the chunks with long lines may have in all. A longer line is read alone.
	longRoom = 32 << 20
)

var (
	reading   = semaphore.NewWeighted(maxReading)
	longLines = semaphore.NewWeighted(longRoom)
	// longLoose is held by the one that reads a long value that spans lines.
	longLoose = semaphore.NewWeighted(1)
)

// startReading waits until the file may be read, and returns the function that must be called at the end.
func startReading(ctx context.Context) (done func(), err error) {
	if err := reading.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	long.start()
	return func() {
		long.end()
		reading.Release(1)
	}, nil
}

// longLine waits for room for a line of n bytes, and returns a buffer of that size and the function that gives it back.
func longLine(ctx context.Context, n int64) (buf []byte, free func(), err error) {
	weight := min(n, longRoom)
	if err := longLines.Acquire(ctx, weight); err != nil {
		return nil, nil, err
	}
	buf = long.take(int(n))
	return buf, func() {
		long.give(buf)
		longLines.Release(weight)
	}, nil
}

// buffers are those of long lines and long values. What was given back is used again as long as files are read: the
// garbage collector is not fast enough for the next one.
type buffers struct {
	mu      sync.Mutex // guards the fields below
	readers int
	inUse   int64 // bytes
	peak    int64 // the most that there were at once since the last takePeak, with those that are spare
	spare   [][]byte
}

var long buffers

const (
	// maxSpare is how many buffers are kept: for a chunk and for a value.
	maxSpare = 2
	// longStep divides the sizes of buffers, so that one fits for the next line too.
	longStep = 4 << 20
)

func (b *buffers) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers++
}

// end is called when a file has been read. After the last one nothing is kept.
func (b *buffers) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.readers--; b.readers == 0 {
		b.spare = nil
	}
}

// take returns a buffer of n bytes.
func (b *buffers) take(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.count()
	for i, buf := range b.spare {
		if cap(buf) >= n {
			b.spare = slices.Delete(b.spare, i, i+1)
			b.inUse += int64(cap(buf))
			return buf[:n]
		}
	}
	b.spare = nil // none of them is large enough, so they are garbage all the sooner
	buf := make([]byte, n, (n+longStep-1)/longStep*longStep)
	b.inUse += int64(cap(buf))
	return buf
}

// give gives back a buffer that take has returned.
func (b *buffers) give(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inUse -= int64(cap(buf))
	if b.readers > 0 && len(b.spare) < maxSpare {
		b.spare = append(b.spare, buf)
	}
}

// count notes how much there is. Callers must hold b.mu.
func (b *buffers) count() {
	n := b.inUse
	for _, buf := range b.spare {
		n += int64(cap(buf))
	}
	b.peak = max(b.peak, n)
}

func (b *buffers) takePeak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = 0
	b.count()
	return peak
}

// TakePeak returns the most bytes that long lines took at once since the last call. All of them are given back soon.
func TakePeak() int64 { return long.takePeak() }
