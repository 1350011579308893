package search

import (
	"bytes"
	"context"
	"io"
	"math"
	"runtime"
)

// chunkSize is how much of a file is read at once: what fits into the cache of a core beside everything else.
const chunkSize = 256 << 10

// candidate is a range of a file, from where something was found to the end of its line.
type candidate struct{ from, to int64 }

// maxCandidates bounds what is kept of one file. Where more is found, all of it is looked at.
const maxCandidates = 1 << 20

// scanner reads files and finds needles in them. It is not safe for concurrent use.
type scanner struct {
	buf []byte
}

// everywhere is where something may be of which no more is known.
var everywhere = []candidate{{0, math.MaxInt64}}

// find returns where the needle is in the first size bytes of a file, once for each line. No needle may be everywhere.
func (s *scanner) find(ctx context.Context, file io.ReaderAt, size int64, n *Needle) (found []candidate, err error) {
	if n == nil {
		return everywhere, nil
	}
	reach := n.reach()
	if len(s.buf) < chunkSize+2*reach {
		s.buf = make([]byte, chunkSize+2*reach)
	}
	var (
		base int64 // of the buffer in the file
		have int   // bytes in the buffer
		next int   // first offset in the buffer that was not looked at
		open bool  // the line of the last candidate goes on
	)
	for base+int64(have) < size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		runtime.Gosched() // other requests go first
		want := int(min(chunkSize, size-base-int64(have)))
		got, err := file.ReadAt(s.buf[have:have+want], base+int64(have))
		if got < want {
			if err == nil || err == io.EOF {
				return everywhere, nil // it was cut meanwhile; reading it as a session tells
			}
			return nil, err
		}
		have += got
		limit := have
		if base+int64(have) < size {
			limit = max(next, have-reach)
		}
		found, next, open = n.scanBuffer(s.buf[:have], next, limit, base, found, open)
		if len(found) > maxCandidates {
			return everywhere, nil
		}
		if drop := max(0, next-reach); drop > 0 {
			have = copy(s.buf, s.buf[drop:have])
			base += int64(drop)
			next -= drop
		}
	}
	if open {
		found[len(found)-1].to = size
	}
	return found, nil
}

// scanBuffer looks at the offsets of b from next up to limit, and appends what it finds. It returns where to go on, and
// whether the line of the last candidate has not ended.
func (n *Needle) scanBuffer(b []byte, next, limit int, base int64, found []candidate, open bool) ([]candidate, int, bool) {
	for next < limit {
		if open {
			end := bytes.IndexByte(b[next:], '\n')
			if end < 0 {
				return found, len(b), true
			}
			next += end + 1
			found[len(found)-1].to = base + int64(next)
			open = false
			continue
		}
		at := n.pair.next(b, next)
		if at >= limit {
			return found, limit, false
		}
		if next = at + 1; n.isAt(b, at) {
			found = append(found, candidate{from: base + int64(at)})
			open = true
		}
	}
	return found, next, open
}
