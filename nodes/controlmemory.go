package nodes

import "context"

// What an open control file holds in memory, the beginning of a line and answers, is a part of the budget
// (docs/design.md section 7, Memory).

// answerRoom is the room for an answer that a line must find before it takes effect: it cannot be refused afterwards.
// Ids that the writer chose may be longer.
const answerRoom = 128

// makeRoom makes room for n more bytes of the line.
func (h *controlHandle) makeRoom(n int) error {
	need := len(h.pending) + n
	switch {
	case need > maxControlLine:
		return errLineTooLong
	case need <= cap(h.pending):
		return nil
	}
	room := min(max(need, 2*cap(h.pending)), maxControlLine)
	err := h.reserve(room)
	if err != nil {
		room = min(max(need, cap(h.pending)/4*5), room)
		err = h.reserve(room)
	}
	if err != nil {
		return err
	}
	h.pending = append(make([]byte, 0, room), h.pending...)
	return nil
}

// reserve finds the memory for a line that grows to room bytes, and for what it is copied from.
func (h *controlHandle) reserve(room int) error {
	return h.hold.Resize(int64(room + cap(h.pending) + h.results.held()))
}

// keep keeps the beginning of a line. If there is no memory for it, or it is too long, it is dropped.
func (h *controlHandle) keep(rest []byte) error {
	if len(rest) == 0 {
		return nil
	}
	if err := h.makeRoom(len(rest)); err != nil {
		h.pending = nil
		return err
	}
	h.pending = append(h.pending, rest...)
	return nil
}

// account tells the budget what is held now.
func (h *controlHandle) account() { h.hold.Set(int64(cap(h.pending) + h.results.held())) }

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
	return h.memory.Work(ctx, int64(size))
}
