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
	free     func() // returns the buffer of a long line; nil for other chunks
}

// chunks keeps chunks for the next load, so that reading many files allocates no buffers.
// keptChunks outlive garbage collections, which a pass over all files causes often.
var (
	chunks     = sync.Pool{New: func() any { return &chunk{done: make(chan error, 1)} }}
	keptChunks = make(chan *chunk, 4)
)

// keepLines and keepMembers bound the lines and members of records of a chunk that is reused.
const (
	keepLines   = 4096
	keepMembers = 16 << 10
)

// newChunk returns an empty chunk, one that was recycled if there is any.
func newChunk() *chunk {
	select {
	case c := <-keptChunks:
		return c
	default:
		return chunks.Get().(*chunk)
	}
}

// recycle makes the chunk available to the next load, unless it is large. Nothing may refer to it any more.
// keptChunks gets the first few, and chunks, which the garbage collector empties, the others.
func (c *chunk) recycle() {
	c.release()
	members := cap(c.notes.members) + cap(c.notes.inner)
	isLarge := cap(c.buf) > KeepBuffer || cap(c.lines) > keepLines || members > keepMembers
	if isLarge {
		return
	}
	select {
	case keptChunks <- c:
	default:
		chunks.Put(c)
	}
}

// release returns the buffer of a long line, and forgets the members of its record. It does nothing for other chunks, and
// for one that was released.
func (c *chunk) release() {
	if c.free == nil {
		return
	}
	c.buf = nil
	c.notes.forget()
	c.free()
	c.free = nil
}

// chunkReader reads a file as chunks.
type chunkReader struct {
	obj   io.ReaderAt
	next  int64
	size  int64
	chunk int64 // size of the next read; doubles up to ChunkSize
	limit int64 // length of the longest line that is read
}

// fill reads the next chunk into c, in the memory that c has: about chunk bytes, cut behind the last newline in them, or
// more if they have none. It returns io.EOF at the end of the file, and an error that wraps ErrStale if the file has
// become shorter.
func (r *chunkReader) fill(ctx context.Context, c *chunk) error {
	if r.next >= r.size {
		return io.EOF
	}
	*c = chunk{
		off:   r.next,
		buf:   c.buf[:0],
		lines: c.lines[:0],
		notes: c.notes.empty(),
		done:  c.done,
	}
	want := r.chunk
	r.chunk = min(2*r.chunk, ChunkSize)
	for {
		have := len(c.buf)
		size := int(min(want, r.size-r.next))
		c.buf = slices.Grow(c.buf, size-have)
		c.buf = c.buf[:size]
		err := storage.ReadFull(r.obj, c.buf[have:], r.next+int64(have))
		if err != nil {
			return err
		}
		end := lastNewline(c.buf[have:])
		if end >= 0 {
			c.buf = c.buf[:have+end+1]
			break
		}
		if r.next+int64(len(c.buf)) == r.size {
			c.open = true
			break
		}
		want *= 2
		if want > KeepBuffer {
			return r.fillLong(ctx, c)
		}
	}
	r.next += int64(len(c.buf))
	return nil
}

// fillLong is fill for a chunk with a long line. c.buf has its beginning. It measures the line first, so
// that no smaller buffers wait for the garbage collector.
func (r *chunkReader) fillLong(ctx context.Context, c *chunk) error {
	read := r.next + int64(len(c.buf)) // up to there no newline is
	size, open, err := lineSize(ctx, r.obj, r.next, read, r.size)
	if err != nil {
		return err
	}
	length := size
	if !open {
		length-- // the newline is not a part of the line
	}
	if length > r.limit {
		c.tooLong = true
		c.skipped = size
		c.open = open
		c.buf = c.buf[:0]
		if !open {
			c.newlines = 1
		}
		r.next += size
		return nil
	}
	weight := min(size, longRoom)
	err = longLines.Acquire(ctx, weight)
	if err != nil {
		return err
	}
	buf := longBuffers.get(int(size))
	c.free = func() {
		longBuffers.put(buf)
		longLines.Release(weight)
	}
	have := copy(buf, c.buf)
	c.buf = buf
	c.open = open
	err = storage.ReadFull(r.obj, buf[have:], r.next+int64(have))
	if err == nil && !open && buf[size-1] != '\n' {
		err = errLineChanged
	}
	if err != nil {
		c.release()
		return err
	}
	r.next += size
	return nil
}

// lineSize returns the size of the line at start, with its newline, in a file of end bytes. It
// searches for the newline from offset from on, as the bytes before have none. open reports that the line has none.
func lineSize(ctx context.Context, obj io.ReaderAt, start, from, end int64) (size int64, open bool, err error) {
	buf := make([]byte, ChunkSize)
	for at := from; at < end; at += int64(len(buf)) {
		err := ctx.Err()
		if err != nil {
			return 0, false, err
		}
		buf = buf[:min(ChunkSize, end-at)]
		err = storage.ReadFull(obj, buf, at)
		if err != nil {
			return 0, false, err
		}
		n := bytes.IndexByte(buf, '\n')
		if n >= 0 {
			return at + int64(n) + 1 - start, false, nil
		}
	}
	return end - start, true, nil
}

// newlinePiece is the number of bytes that lastNewline searches with one call.
const newlinePiece = 1 << 10

// lastNewline is a faster bytes.LastIndexByte, which checks one byte at a time, by bytes.IndexByte:
// the last line may be most of a chunk.
func lastNewline(b []byte) int {
	for end := len(b); end > 0; end -= newlinePiece {
		start := max(0, end-newlinePiece)
		piece := b[start:end]
		if bytes.IndexByte(piece, '\n') >= 0 {
			return start + bytes.LastIndexByte(piece, '\n')
		}
	}
	return -1
}

// classify classifies each line of the chunk, and drops blank ones and those to skip. With inner (see
// loader) it collects the members of records. skip may be nil.
func (c *chunk) classify(s *rawjson.Scanner, inner string, skip func(line []byte) bool) {
	notes := &c.notes
	notes.key = inner
	if inner == "" {
		notes = nil
	}
	if c.tooLong {
		c.lines = append(c.lines, LineInfo{class: lineTooLong})
		return
	}
	for at := 0; at < len(c.buf); {
		line, _, ended := bytes.Cut(c.buf[at:], []byte("\n"))
		info := LineInfo{
			start:  uint32(at),
			number: uint32(c.newlines),
			length: uint32(len(line)),
		}
		if skip == nil || !skip(line) {
			classify(s, line, notes, &info)
		}
		if info.class != lineBlank {
			c.lines = append(c.lines, info)
		}
		at += len(line) + 1
		if ended {
			c.newlines++
		}
	}
}

// The limits of this process on memory for reading. A load waits for them only while it holds
// nothing that others wait for: chunks are released in the order in which they were read.

const (
	// maxReading bounds the loads of more than ChunkSize. Each takes some MiB and all processors.
	maxReading = 8
	// longRoom bounds the bytes of all long lines. A longer line is read alone.
	longRoom = 32 << 20
)

var (
	reading   = semaphore.NewWeighted(maxReading)
	longLines = semaphore.NewWeighted(longRoom)
	// longLoose is held while a long value that spans lines is read.
	longLoose = semaphore.NewWeighted(1)
)

// startReading waits until the file may be read, and returns a function for the end of reading.
func startReading(ctx context.Context) (done func(), err error) {
	err = reading.Acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	longBuffers.addReader()
	return func() {
		longBuffers.removeReader()
		reading.Release(1)
	}, nil
}

// buffers pools the buffers of long lines and long values while any file is read, as the garbage
// collector is too slow for the next one.
type buffers struct {
	mu      sync.Mutex // guards the fields below
	readers int
	inUse   int64 // bytes
	peak    int64 // the highest sum of inUse and pooled bytes since the last TakePeak
	pooled  [][]byte
}

var longBuffers buffers

const (
	// maxPooled bounds the pooled buffers: one for a chunk and one for a value.
	maxPooled = 2
	// longStep divides the sizes of buffers, so that one fits for the next line too.
	longStep = 4 << 20
)

// addReader is called before a file is read. While there are readers, buffers are pooled.
func (b *buffers) addReader() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers++
}

// removeReader is called after a file was read. The last reader empties the pool.
func (b *buffers) removeReader() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers--
	if b.readers == 0 {
		b.pooled = nil
	}
}

// get returns a buffer of n bytes, which the caller gives back by put. Its capacity is a multiple of longStep.
func (b *buffers) get(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.count()
	for i, buf := range b.pooled {
		if cap(buf) >= n {
			b.pooled = slices.Delete(b.pooled, i, i+1)
			b.inUse += int64(cap(buf))
			return buf[:n]
		}
	}
	b.pooled = nil // all are too small
	steps := (n + longStep - 1) / longStep
	buf := make([]byte, n, steps*longStep)
	b.inUse += int64(cap(buf))
	return buf
}

// put returns a buffer of get to the pool, or drops it if the pool is full or nobody reads.
func (b *buffers) put(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inUse -= int64(cap(buf))
	if b.readers > 0 && len(b.pooled) < maxPooled {
		b.pooled = append(b.pooled, buf)
	}
}

// count updates the peak. Callers must hold b.mu.
func (b *buffers) count() {
	n := b.inUse
	for _, buf := range b.pooled {
		n += int64(cap(buf))
	}
	b.peak = max(b.peak, n)
}

// TakePeak returns the most bytes that buffers of long lines had at once since the last call.
func TakePeak() int64 {
	b := &longBuffers
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = 0
	b.count()
	return peak
}
