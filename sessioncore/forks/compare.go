package forks

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// compareMessages returns an error that names the first message in which two contexts differ. got may
// have more messages: a client writes the records of an answer and of its results side by side.
func compareMessages(want, got *document.Document) error {
	at, isSame, err := firstDifference(want, got)
	if err != nil || isSame {
		return err
	}
	a, err := readerBefore(want, at)
	if err != nil {
		return err
	}
	b := *a
	b.in = bufferedFrom(got, a.off)
	for {
		x, errA := a.next()
		y, errB := b.next()
		switch {
		case errA == io.EOF && (errB == nil || errB == io.EOF):
			return nil
		case errA != nil && errA != io.EOF:
			return errA
		case errB != nil && errB != io.EOF:
			return errB
		case x != y || errA != errB:
			return &forkRefusal{agents.NoFork("the new session would differ in message %d of the conversation", max(1, a.messages))}
		}
	}
}

// chunkSize is the size of a read of a context.
const chunkSize = 64 << 10

// firstDifference returns the offset of the first chunk in which two contexts differ.
func firstDifference(want, got *document.Document) (at int64, isSame bool, err error) {
	size := min(want.Size(), got.Size())
	x := make([]byte, chunkSize)
	y := make([]byte, chunkSize)
	for ; at < size; at += chunkSize {
		n := min(chunkSize, size-at)
		if err := storage.ReadFull(want, x[:n], at); err != nil {
			return at, false, err
		}
		if err := storage.ReadFull(got, y[:n], at); err != nil {
			return at, false, err
		}
		if !bytes.Equal(x[:n], y[:n]) {
			return at, false, nil
		}
	}
	return size, want.Size() == got.Size(), nil
}

// laterKeys begin the members of a message that the client records behind an answer.
var laterKeys = [][]byte{[]byte(`"usage":`), []byte(`"stopReason":`), []byte(`"errorMessage":`)}

// messageReader reads the bytes of the list of messages in a context, without the members of laterKeys. It knows
// only strings and brackets, as a context may be larger than the memory.
type messageReader struct {
	in       *bufio.Reader
	off      int64 // of the next byte
	depth    int   // of brackets
	inString bool
	escaped  bool // the next byte of the string is escaped
	messages int  // number of messages begun
}

// listDepth is the depth of brackets in the list of messages.
const listDepth = 2

func bufferedFrom(context *document.Document, off int64) *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(context, off, context.Size()-off), chunkSize)
}

// readerBefore returns a reader of a context from the last member of a message that begins before an
// offset.
func readerBefore(context *document.Document, at int64) (*messageReader, error) {
	r := &messageReader{in: bufferedFrom(context, 0)}
	before := *r
	for r.off < at {
		c, err := r.read()
		if err != nil {
			return nil, err
		}
		if c == ',' && !r.inString && r.depth == listDepth+1 {
			before = *r
			before.off--
		}
	}
	before.in = bufferedFrom(context, before.off)
	return &before, nil
}

// next returns the next byte. The error is io.EOF behind the list.
func (r *messageReader) next() (byte, error) {
	for {
		before := r.depth
		c, err := r.read()
		if err != nil {
			return c, err
		}
		if before == listDepth && r.depth < listDepth {
			return c, io.EOF
		}
		if c != ',' || r.inString {
			return c, nil
		}
		isSkipped, err := r.skipLater()
		if err != nil || !isSkipped {
			return c, err
		}
	}
}

// read reads a byte.
func (r *messageReader) read() (byte, error) {
	c, err := r.in.ReadByte()
	if err == nil {
		r.off++
		r.add(c)
	}
	return c, err
}

// skipLater skips a member of laterKeys, and reports whether there was one.
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
		if !r.inString && r.depth == outside && (end[0] == ',' || end[0] == '}') {
			return true, nil
		}
		if _, err := r.read(); err != nil {
			return false, err
		}
	}
}

// add follows a byte of the text.
func (r *messageReader) add(c byte) {
	switch {
	case r.escaped:
		r.escaped = false
	case r.inString && c == '\\':
		r.escaped = true
	case c == '"':
		r.inString = !r.inString
	case r.inString:
	case c == '{' || c == '[':
		if c == '{' && r.depth == listDepth {
			r.messages++
		}
		r.depth++
	case c == '}' || c == ']':
		r.depth--
	}
}
