package jsonl

import (
	"bytes"
	"context"
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
	if cap(c.buf) > KeepBuffer {
		c.buf = nil
	}
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
		if want *= 2; want > 2*MaxLine {
			return r.skipLine(ctx, c)
		}
	}
	r.next += int64(len(c.buf))
	return nil
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

// skipLine skips a line that is longer than MaxLine.
func (r *chunkReader) skipLine(ctx context.Context, c *chunk) error {
	c.tooLong, c.skipped = true, int64(len(c.buf))
	buf := c.buf[:ChunkSize]
	c.buf = nil
	for at := r.next + c.skipped; ; at += int64(len(buf)) {
		buf = buf[:min(ChunkSize, r.size-at)]
		if len(buf) == 0 {
			c.open = true
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := storage.ReadFull(r.obj, buf, at); err != nil {
			return err
		}
		if end := bytes.IndexByte(buf, '\n'); end >= 0 {
			c.skipped += int64(end) + 1
			c.newlines = 1
			break
		}
		c.skipped += int64(len(buf))
	}
	r.next += c.skipped
	return nil
}

// classify classifies each line of the chunk. Blank lines are only counted.
func (c *chunk) classify(s *rawjson.Scanner) {
	if c.tooLong {
		c.lines = append(c.lines, LineInfo{class: lineTooLong})
		return
	}
	for at := 0; at < len(c.buf); {
		end := bytes.IndexByte(c.buf[at:], '\n')
		if end < 0 {
			end = len(c.buf) - at
		}
		info := LineInfo{start: uint32(at), length: uint32(end), number: uint32(c.newlines)}
		classify(s, c.buf[at:at+end], &info)
		if info.class != lineBlank {
			c.lines = append(c.lines, info)
		}
		if at += end + 1; at <= len(c.buf) {
			c.newlines++
		}
	}
}
