package nodes

import (
	"context"
	"slices"
)

// What an open control file holds in memory, the beginning of a line and answers, is a part of the budget
// (docs/design.md section 7, Memory).

// answerRoom is the room for an answer that a line must find before it takes effect: it cannot be refused afterwards.
// Ids that the writer chose may be longer.
const answerRoom = 128

// maxPiece is the largest piece of the beginning of a line, in bytes, that is made before it is filled.
const maxPiece = 1 << 20

// keep adds to the beginning of a line. That grows by pieces and is not copied: so a line that is too long is found to be
// before there is no memory for it.
func (h *controlHandle) keep(data []byte) error {
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

// join makes one piece of the beginning of a line, with room for n more bytes.
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

// sizeOf returns how long a text in pieces is.
func sizeOf(pieces [][]byte) (n int) {
	for _, piece := range pieces {
		n += len(piece)
	}
	return n
}

// account tells the budget what is held now.
func (h *controlHandle) account() {
	room := 0
	for _, piece := range h.pending {
		room += cap(piece)
	}
	h.hold.Set(int64(room + cap(h.refused.line) + h.results.held()))
}

// forLines finds the memory that it takes to carry out lines: for their answers and, for a moment, for a copy of them.
// The caller must call done. The lines still count as held.
func (h *controlHandle) forLines(ctx context.Context, lines [][]byte) (done func(), err error) {
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

// answers are the results of writes to a control file that have not been read yet. Reads return them in order, whatever
// the offset. Programs that read more than they need (the shells' read, head) seek back: if the next read or write
// begins within what was read last, the rest of that is unread again.
type answers struct {
	text []byte
	next int   // where in text the next read begins
	last int   // how many bytes before that were read last
	at   int64 // the offset at which they were read
}

// add adds an answer.
func (a *answers) add(line string) {
	a.dropRead()
	a.text = append(append(a.text, line...), '\n')
}

// back makes unread what was read last, from an offset on.
func (a *answers) back(off int64) {
	if off >= a.at && off < a.at+int64(a.last) {
		a.next -= a.last - int(off-a.at)
	}
	a.last = 0
}

// read fills dest and returns how many bytes there were.
func (a *answers) read(dest []byte, off int64) int {
	a.back(off)
	n := copy(dest, a.text[a.next:])
	a.next, a.last, a.at = a.next+n, n, off
	a.dropRead()
	return n
}

// dropRead gives back the memory of what cannot be read any more, once that is most of it.
func (a *answers) dropRead() {
	if gone := a.next - a.last; gone > cap(a.text)/2 {
		a.text = slices.Clone(a.text[gone:])
		a.next = a.last
	}
}

// held returns how many bytes of memory the answers take.
func (a *answers) held() int { return cap(a.text) }
