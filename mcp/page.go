package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// page is the part of a text for one answer: a writer that takes all of the text. It skips the text before the
// cursor and refuses the text behind the part.
type page struct {
	ctx    context.Context // of the call; its end ends the writer of the text
	from   cursor
	limit  int    // of the part, in bytes
	begun  bool   // the place of the cursor is found
	offset int64  // of the part in the text once it has begun, else of the skipped text
	before []byte // the last bytes before the part, at most anchorSize
	part   []byte // at most limit+1 bytes
}

// anchorSize is how much of a text before a cursor tells its place, in bytes. A few lines are not
// enough, as texts repeat themselves.
const anchorSize = 1 << 10

// errFull ends the writer of a text: the answer has enough of it.
var errFull = errors.New("the answer is full")

// errMoved refuses a cursor for a place that is not in the text.
var errMoved = errors.New("what is found has changed since the answer with this cursor; " +
	"ask once more without it, and with the same parameters")

// cursor is a place in a text: its offset, and a hash of the bytes before it. Where the text has grown
// before the place meanwhile, as a list of hits does, the hash tells where it is now.
type cursor struct {
	offset int64
	hash   uint64
}

// String returns the cursor as an answer has it.
func (c cursor) String() string { return fmt.Sprintf("%d-%016x", c.offset, c.hash) }

// parseCursor returns the cursor of a text, the zero cursor for "".
func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	offset, hash, _ := strings.Cut(text, "-")
	c.offset, err = strconv.ParseInt(offset, 10, 64)
	if err == nil {
		c.hash, err = strconv.ParseUint(hash, 16, 64)
	}
	if err != nil || c.offset <= 0 || c.String() != text {
		return c, fmt.Errorf("cursor must be one that an answer has, not %s", excerpt([]byte(text)))
	}
	return c, nil
}

// newPage returns the page behind a cursor, of at most limit bytes.
func newPage(ctx context.Context, from cursor, limit int) *page {
	return &page{
		ctx:   ctx,
		from:  from,
		limit: limit,
		begun: from.offset == 0,
	}
}

// Write implements io.Writer. It keeps one byte more than the limit, which tells that the text goes on, and returns
// errFull for a write that has more.
func (p *page) Write(text []byte) (int, error) {
	err := p.ctx.Err()
	if err != nil {
		return 0, err
	}
	rest := text
	for len(rest) > 0 && !p.begun {
		skipped := p.skip(rest)
		rest = rest[skipped:]
	}
	room := p.limit + 1 - len(p.part)
	if len(rest) <= room {
		p.part = append(p.part, rest...)
		return len(text), nil
	}
	p.part = append(p.part, rest[:room]...)
	lost := len(rest) - room
	return len(text) - lost, errFull
}

// skip skips some of a text before the page, and returns how much: up to the offset of the cursor, and
// behind that through the end of a line. The page begins at the first of these places with the text of the
// cursor before it.
func (p *page) skip(text []byte) int {
	end := len(text)
	left := p.from.offset - p.offset
	lineEnd := bytes.IndexByte(text, '\n') + 1
	switch {
	case left > 0:
		end = int(min(int64(end), left))
	case lineEnd > 0:
		end = lineEnd
	}
	p.offset += int64(end)
	p.before = lastOf(append(p.before, text[:end]...), anchorSize)
	isOffset := p.offset == p.from.offset
	isLaterLine := p.offset > p.from.offset && text[end-1] == '\n'
	if isOffset || isLaterLine {
		size := min(p.from.offset, anchorSize)
		anchor := lastOf(p.before, int(size))
		p.begun = xxhash.Sum64(anchor) == p.from.hash
	}
	return end
}

// lastOf returns the last bytes of a text, at most as many as most says.
func lastOf(text []byte, most int) []byte { return text[max(0, len(text)-most):] }

// end returns the part and the cursor behind it, "" at the end of the text. The part ends with
// a line, unless the line does not fit. The error is errMoved if the text has no place for the cursor.
func (p *page) end() (part, next string, err error) {
	if !p.begun {
		return "", "", errMoved
	}
	if len(p.part) <= p.limit {
		return string(p.part), "", nil
	}
	part = cutText(string(p.part), p.limit)
	lineEnd := strings.LastIndexByte(part, '\n') + 1
	if lineEnd > 0 {
		part = part[:lineEnd]
	}
	before := lastOf(append(p.before, part...), anchorSize)
	end := cursor{
		offset: p.offset + int64(len(part)),
		hash:   xxhash.Sum64(before),
	}
	return part, end.String(), nil
}
