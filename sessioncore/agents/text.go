package agents

import (
	"io"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// inMemory bounds a session's text in memory. Longer ones go to a nameless file.
	inMemory = 1 << 20
	// small is the largest size of a text that is not counted, and not worth a file.
	small = 16 << 10
)

// text is a version of a session's text: a stable part, and a tail that may change. Both only grow,
// so that readers of a version need no lock.
type text struct {
	begin  *budget.Text
	stable int64
	tail   *budget.Text // nil if it is empty
	end    int64        // size of tail
}

// size returns the bytes of both parts.
func (t *text) size() int64 { return t.stable + t.end }

// retain adds a user of both parts, which must close the text.
func (t *text) retain() {
	t.begin.Retain()
	t.tail.Retain()
}

// close ends a use of both parts.
func (t *text) close() {
	t.begin.Close()
	t.tail.Close()
}

// ReadAt implements io.ReaderAt.
func (t *text) ReadAt(p []byte, off int64) (n int, err error) {
	n = boundedLen(p, t.stable-off)
	if n > 0 {
		_, err := t.begin.ReadAt(p[:n], off)
		if err != nil {
			return 0, err
		}
	}
	rest := p[n:]
	inTail := off + int64(n) - t.stable // negative if p ends within the stable part
	more := boundedLen(rest, t.end-inTail)
	if more > 0 && inTail >= 0 {
		_, err := t.tail.ReadAt(rest[:more], inTail)
		if err != nil {
			return 0, err
		}
		n += more
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// boundedLen returns how many of the bytes of p can be read where left bytes are, which may be negative.
func boundedLen(p []byte, left int64) int {
	length := min(int64(len(p)), left)
	return int(max(0, length))
}

// continues reports whether the text begins with an earlier version. It is false if that cannot be read.
func (t *text) continues(before *text) bool {
	if t.size() < before.size() {
		return false
	}
	from := before.stable // up to there no version changes
	same, err := storage.SameBytes(t, from, before, from, before.size()-from)
	return err == nil && same
}
