package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// chunk is a sequence of whole lines.
type chunk struct {
	off      int64 // offset of buf in the file
	buf      []byte
	newlines int64
	open     bool // the last line has no newline: the file ends in it
	tooLong  bool // the chunk is one line longer than MaxLine, and buf is empty
	skipped  int64
	lines    []LineInfo
	done     chan error
	free     func() // gives back the room of a long line; nil for other chunks
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
}

// fill reads the next chunk. At the end of the file it returns io.EOF. If the file has become shorter, the error
// wraps ErrStale.
func (r *chunkReader) fill(ctx context.Context, c *chunk) error {
	if r.next >= r.size {
		return io.EOF
	}
	*c = chunk{off: r.next, buf: c.buf[:0], lines: c.lines[:0], done: c.done}
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
	if size > MaxLine && (open || size > MaxLine+1) { // the newline is not a part of the line
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
		err = fmt.Errorf("%w: a line changed while it was read", storage.ErrStale)
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

// classify classifies each line of the chunk. Blank lines are only counted.
func (c *chunk) classify(s *rawjson.Scanner) {
	if c.tooLong {
		c.lines = append(c.lines, LineInfo{class: lineTooLong})
		return
	}
	for at := 0; at < len(c.buf); {
		info := LineInfo{start: uint32(at), number: uint32(c.newlines)}
		rest := c.buf[at:]
		if !classifyValue(s, rest, &info) {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			info = LineInfo{start: info.start, number: info.number, length: uint32(end)}
			classify(s, rest[:end], &info)
		}
		if info.class != lineBlank {
			c.lines = append(c.lines, info)
		}
		if at += int(info.length) + 1; at <= len(c.buf) {
			c.newlines++
		}
	}
}
