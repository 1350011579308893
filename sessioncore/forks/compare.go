package forks

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// compareMessages returns a refusal that names the first message in which two contexts differ, or an error
// of reading. got may have more messages: a client writes the records of an answer and of its results side
// by side.
func compareMessages(want, got *document.Document) error {
	c := &contextComparison{
		want:      newMessageReader(want),
		got:       newMessageReader(got),
		wantChunk: make([]byte, chunkSize),
		gotChunk:  make([]byte, chunkSize),
	}
	for {
		same, isAll, err := c.sameBytes()
		if err != nil || isAll {
			return err
		}
		at := c.want.off + same
		isPast, err := c.goTo(at)
		if err != nil || isPast {
			return err
		}
		isPast, err = c.compareTo(at)
		if err != nil || isPast {
			return err
		}
	}
}

// contextComparison compares two contexts. Both readers stand behind the same bytes, but for the members of
// laterKeys. Equal bytes are compared in chunks, and read one by one only around a difference:
//
//	want  {"role":"assistant","content":[…],"usage":{"input":1}},{"role":"user",…
//	got   {"role":"assistant","content":[…],"usage":{"input":2}},{"role":"user",…
//
// sameBytes finds the difference at 1 and 2. goTo moves back to the comma before "usage", the last place
// before it from which next reads whole members. There compareTo compares byte by byte, and next leaves out
// the usage of both. Behind the difference sameBytes goes on.
type contextComparison struct {
	want, got           *messageReader
	wantChunk, gotChunk []byte
}

const (
	// firstChunk is the size of the first read of both contexts, and chunkSize the size of the largest.
	firstChunk = 4 << 10
	chunkSize  = 64 << 10
)

// sameBytes returns the number of bytes that both contexts have in common from here on. isAll says that
// there are no others.
func (c *contextComparison) sameBytes() (same int64, isAll bool, err error) {
	wantRest := c.want.of.Size() - c.want.off
	gotRest := c.got.of.Size() - c.got.off
	size := min(wantRest, gotRest)
	chunk := int64(firstChunk)
	for same < size {
		n := min(chunk, size-same)
		err := storage.ReadFull(c.want.of, c.wantChunk[:n], c.want.off+same)
		if err != nil {
			return same, false, err
		}
		err = storage.ReadFull(c.got.of, c.gotChunk[:n], c.got.off+same)
		if err != nil {
			return same, false, err
		}
		equal := samePrefix(c.wantChunk[:n], c.gotChunk[:n])
		same += int64(equal)
		if int64(equal) < n {
			return same, false, nil
		}
		chunk = min(2*chunk, chunkSize)
	}
	return same, wantRest == gotRest, nil
}

// samePrefix returns the number of bytes that two texts of one length have in common at their beginning. The
// comparison of whole texts is many times faster than the one of bytes, and mostly all that is needed.
func samePrefix(x, y []byte) int {
	if bytes.Equal(x, y) {
		return len(x)
	}
	n := 0
	for x[n] == y[n] {
		n++
	}
	return n
}

// goTo moves both readers to the last place from which whole members can be compared up to a difference: a
// comma between two members of a message, the difference itself if a member ends there in both contexts, or
// the current place. at is the offset of the difference in want. isPast says that the list of messages ends
// before it.
func (c *contextComparison) goTo(at int64) (isPast bool, err error) {
	gap := c.got.off - c.want.off
	start := c.want.position
	comma, err := c.want.advance(at)
	if err != nil || c.want.isPast() {
		return c.want.isPast(), err
	}
	isEnd, err := c.isMemberEnd(at, gap)
	if err != nil {
		return false, err
	}
	place := comma
	switch {
	case isEnd:
		place = c.want.position
	case comma == position{}: // there was none
		place = start
	}
	c.want.goTo(place)
	place.off += gap
	c.got.goTo(place)
	return false, nil
}

// isMemberEnd reports whether a member of a message ends before a difference in both contexts. at is its
// offset in want, where advance has moved to, and at+gap the one in got.
func (c *contextComparison) isMemberEnd(at, gap int64) (bool, error) {
	if c.want.inString || c.want.depth != listDepth+1 {
		return false, nil
	}
	isEnd, err := isEndBefore(c.want.of, at)
	if err != nil || !isEnd {
		return false, err
	}
	return isEndBefore(c.got.of, at+gap)
}

// isEndBefore reports whether the byte at an offset ends the member before it.
func isEndBefore(context *document.Document, at int64) (bool, error) {
	var next [1]byte
	n, err := context.ReadAt(next[:], at)
	if err != nil && err != io.EOF {
		return false, err
	}
	if n == 0 {
		return false, nil
	}
	return next[0] == ',' || next[0] == '}', nil
}

// compareTo compares both contexts byte by byte until want is behind an offset. isPast says that its list of
// messages ends there.
func (c *contextComparison) compareTo(at int64) (isPast bool, err error) {
	for c.want.off <= at {
		x, errWant := c.want.next()
		if errWant != nil && errWant != io.EOF {
			return false, errWant
		}
		y, errGot := c.got.next()
		if errGot != nil && errGot != io.EOF {
			return false, errGot
		}
		if errWant == io.EOF { // got may go on
			return true, nil
		}
		if errGot == io.EOF || x != y {
			number := max(1, c.want.messages)
			return false, &forkRefusal{agents.NoFork("the new session would differ in message %d of the conversation", number)}
		}
	}
	return false, nil
}

// laterKeys begin the members of a message that the client records behind an answer.
var laterKeys = [][]byte{[]byte(`"usage":`), []byte(`"stopReason":`), []byte(`"errorMessage":`)}

// messageReader reads the bytes of the list of messages in a context, without the members of laterKeys. It knows
// only strings and brackets, as a context may be larger than the memory.
type messageReader struct {
	of *document.Document
	in *bufio.Reader
	position
}

// position is a place in a context, and the state of its text there.
type position struct {
	off      int64 // of the next byte
	depth    int   // of brackets
	inString bool
	escaped  bool // the next byte of the string is escaped
	messages int  // number of messages begun
}

// listDepth is the depth of brackets in the list of messages.
const listDepth = 2

// newMessageReader returns a reader at the beginning of a context.
func newMessageReader(of *document.Document) *messageReader {
	r := &messageReader{of: of, in: bufio.NewReaderSize(nil, firstChunk)}
	r.goTo(position{})
	return r
}

// goTo moves to a place.
func (r *messageReader) goTo(place position) {
	r.position = place
	r.in.Reset(io.NewSectionReader(r.of, place.off, r.of.Size()-place.off))
}

// isPast reports whether the list of messages has ended.
func (p *position) isPast() bool { return p.messages > 0 && p.depth < listDepth }

// advance moves to an offset, or to the end of the list before it, and returns the place of the last comma
// between two members of a message, the zero position for none.
func (r *messageReader) advance(to int64) (comma position, err error) {
	for r.off < to && !r.isPast() {
		_, err := r.in.Peek(1)
		if err != nil {
			return comma, err
		}
		size := min(int64(r.in.Buffered()), to-r.off)
		chunk, _ := r.in.Peek(int(size))
		n := 0
		switch {
		case r.escaped: // read below
		case r.inString:
			n = r.skipString(chunk)
		default:
			n = r.skipBrackets(chunk, &comma)
		}
		if n == 0 { // an escape that goes on behind the chunk, or a wrong one
			_, err = r.read()
			if err != nil {
				return comma, err
			}
			continue
		}
		_, _ = r.in.Discard(n)
		r.off += int64(n)
	}
	return comma, nil
}

// skipString follows the text of a string in a chunk, and returns the number of bytes up to its end or to
// the last whole escape.
func (r *messageReader) skipString(chunk []byte) int {
	var s rawjson.Scanner
	n, status := s.SkipString(chunk, 0)
	if status == rawjson.OK {
		r.inString = false
	}
	return n
}

// skipBrackets follows the text between two strings in a chunk, and returns the number of bytes up to the
// text of a string. It sets comma to the place of the last comma between two members of a message, if there
// is one.
func (r *messageReader) skipBrackets(chunk []byte, comma *position) int {
	for i, c := range chunk {
		if c == ',' && r.depth == listDepth+1 {
			*comma = r.position
			comma.off += int64(i)
		}
		r.add(c)
		if r.inString {
			return i + 1
		}
	}
	return len(chunk)
}

// next returns the next byte, without members of laterKeys and the commas before them. The error is io.EOF
// at the end of the list of messages.
func (r *messageReader) next() (byte, error) {
	for {
		before := r.depth
		c, err := r.read()
		if err != nil {
			return c, err
		}
		isListEnd := before == listDepth && r.depth < listDepth
		if isListEnd {
			return c, io.EOF
		}
		isBetweenMembers := c == ',' && !r.inString && r.depth == listDepth+1
		if !isBetweenMembers {
			return c, nil
		}
		isSkipped, err := r.skipLater()
		if err != nil || !isSkipped {
			return c, err
		}
	}
}

// read reads a byte, and updates the position by it.
func (r *messageReader) read() (byte, error) {
	c, err := r.in.ReadByte()
	if err == nil {
		r.off++
		r.add(c)
	}
	return c, err
}

// skipLater skips a member of laterKeys up to the comma or brace behind it, and reports whether there was
// one. The reader must be between two members of a message.
func (r *messageReader) skipLater() (isSkipped bool, err error) {
	isLater := slices.ContainsFunc(laterKeys, func(key []byte) bool {
		begin, _ := r.in.Peek(len(key))
		return bytes.Equal(begin, key)
	})
	if !isLater {
		return false, nil
	}
	outside := r.depth
	for {
		end, err := r.in.Peek(1)
		if err != nil {
			return false, err
		}
		isOutside := !r.inString && r.depth == outside
		isEnd := end[0] == ',' || end[0] == '}'
		if isOutside && isEnd {
			return true, nil
		}
		_, err = r.read()
		if err != nil {
			return false, err
		}
	}
}

// add updates the state of the text by its next byte, but not the offset.
func (p *position) add(c byte) {
	switch {
	case p.escaped:
		p.escaped = false
	case p.inString && c == '\\':
		p.escaped = true
	case c == '"':
		p.inString = !p.inString
	case p.inString:
	case c == '{' || c == '[':
		if c == '{' && p.depth == listDepth {
			p.messages++
		}
		p.depth++
	case c == '}' || c == ']':
		p.depth--
	}
}
