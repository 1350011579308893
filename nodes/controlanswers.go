package nodes

import (
	"context"
	"slices"
)

// The memory of an open control file, the beginning of a line and answers, is part of the budget
// (docs/design.md section 7, Memory).

// answerRoom is the memory for an answer that a line must reserve before it takes effect, as it
// cannot be refused afterwards. Ids of the writer's own may be longer.
const answerRoom = 128

// maxPiece is the largest piece, in bytes, that is allocated before it is filled.
const maxPiece = 1 << 20

// appendPending adds to the beginning of a line. That grows by pieces without a copy, so that a
// line that is too long is refused before memory runs out.
func (h *controlHandle) appendPending(data []byte) error {
	size := sizeOf(h.pending)
	if size+len(data) > maxControlLine {
		return errLineTooLong
	}
	for len(data) > 0 {
		last := len(h.pending) - 1
		if last < 0 || len(h.pending[last]) == cap(h.pending[last]) {
			room := max(len(data), min(size, maxPiece))
			if err := h.hold.Resize(int64(size + room + h.results.held())); err != nil {
				return err
			}
			h.pending, last = append(h.pending, make([]byte, 0, room)), last+1
		}
		piece := h.pending[last]
		n := min(cap(piece)-len(piece), len(data))
		h.pending[last], data, size = append(piece, data[:n]...), data[n:], size+n
	}
	return nil
}

// join joins the pieces of the beginning of a line, with room for n more bytes.
func (h *controlHandle) join(ctx context.Context, n int) error {
	size := sizeOf(h.pending) + n
	if size > maxControlLine {
		return errLineTooLong
	}
	if first := h.pending[0]; len(h.pending) == 1 && size <= cap(first) {
		return nil
	}
	done, err := h.file.view().Memory.Work(ctx, int64(size))
	if err != nil {
		return err
	}
	defer done()
	line := make([]byte, 0, size)
	for _, piece := range h.pending {
		line = append(line, piece...)
	}
	h.pending = [][]byte{line}
	return nil
}

// sizeOf returns the length of a text in pieces.
func sizeOf(pieces [][]byte) (n int) {
	for _, piece := range pieces {
		n += len(piece)
	}
	return n
}

// account reports the current memory to the budget.
func (h *controlHandle) account() {
	room := 0
	for _, piece := range h.pending {
		room += cap(piece)
	}
	h.hold.Set(int64(room + cap(h.refused.line) + h.results.held()))
}

// reserve reserves the memory to execute lines: for their answers and, for a moment, for a copy of
// them. The caller must call done. The lines still count as held.
func (h *controlHandle) reserve(ctx context.Context, lines [][]byte) (done func(), err error) {
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if !h.mute {
		if err := h.hold.Resize(int64(size + h.results.held() + answerRoom*len(lines))); err != nil {
			return nil, err
		}
	}
	return h.file.view().Memory.Work(ctx, int64(size))
}

// answers are the unread results of writes to a control file. Reads return them in order, at any
// offset. Programs that read more than they need (the shells' read, head) seek back: if the next
// read or write begins within the last read, the rest of that becomes unread.
type answers struct {
	text []byte
	next int   // start of the next read in text
	last int   // bytes before that in the last read
	at   int64 // offset of the last read
}

// add adds an answer.
func (a *answers) add(line string) {
	a.dropRead()
	a.text = append(append(a.text, line...), '\n')
}

// unread makes the last read unread from an offset on.
func (a *answers) unread(off int64) {
	if off >= a.at && off < a.at+int64(a.last) {
		a.next -= a.last - int(off-a.at)
	}
	a.last = 0
}

// read fills dest and returns the number of bytes.
func (a *answers) read(dest []byte, off int64) int {
	a.unread(off)
	n := copy(dest, a.text[a.next:])
	a.next, a.last, a.at = a.next+n, n, off
	a.dropRead()
	return n
}

// dropRead releases the memory of the text that cannot be read any more, once that is most of it.
func (a *answers) dropRead() {
	if done := a.next - a.last; done > cap(a.text)/2 {
		a.text = slices.Clone(a.text[done:])
		a.next = a.last
	}
}

// held returns the memory of the answers in bytes.
func (a *answers) held() int { return cap(a.text) }
