package forks

import (
	"bufio"
	"bytes"
	"io"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
)

// compareMessages returns an error that names the first message in which two contexts differ. Usages
// are left out: the client records them behind an answer, where a fork may end.
func compareMessages(want, got *document.Document) error {
	a := newMessageReader(want)
	b := newMessageReader(got)
	for {
		x, errA := a.next()
		y, errB := b.next()
		switch {
		case errA == io.EOF && errB == io.EOF:
			return nil
		case errA != nil && errA != io.EOF:
			return errA
		case errB != nil && errB != io.EOF:
			return errB
		case x != y || errA != errB:
			return &refusal{agents.NoFork("the new session would differ in message %d of the conversation", max(1, a.messages))}
		}
	}
}

// usageKey begins the member of a message with its usage, behind a comma.
var usageKey = []byte(`"usage":{`)

// messageReader reads the bytes of the list of messages in a context, without their usages. It knows
// only strings and brackets, as a context may be larger than the memory.
type messageReader struct {
	in       *bufio.Reader
	depth    int // of brackets
	inString bool
	escaped  bool // the next byte of the string is escaped
	messages int  // number of messages begun
}

// listDepth is the depth of brackets in the list of messages.
const listDepth = 2

func newMessageReader(context *document.Document) *messageReader {
	return &messageReader{in: bufio.NewReaderSize(io.NewSectionReader(context, 0, context.Size()), 64<<10)}
}

// next returns the next byte. The error is io.EOF behind the list.
func (r *messageReader) next() (byte, error) {
	before := r.depth
	c, err := r.read()
	if err == nil && c == ',' && !r.inString {
		return r.afterUsage(c)
	}
	if err == nil && before == listDepth && r.depth < listDepth {
		err = io.EOF
	}
	return c, err
}

// read reads a byte.
func (r *messageReader) read() (byte, error) {
	c, err := r.in.ReadByte()
	if err == nil {
		r.add(c)
	}
	return c, err
}

// afterUsage skips a usage behind the comma that was read, and returns the byte behind it; without a
// usage, the comma.
func (r *messageReader) afterUsage(comma byte) (byte, error) {
	begin, _ := r.in.Peek(len(usageKey))
	if !bytes.Equal(begin, usageKey) {
		return comma, nil
	}
	outside := r.depth
	for range usageKey {
		if _, err := r.read(); err != nil {
			return 0, err
		}
	}
	for r.depth > outside {
		if _, err := r.read(); err != nil {
			return 0, err
		}
	}
	return r.next()
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
