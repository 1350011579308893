package nodes

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/writer"
)

// controlHandle is an open control file (docs/design.md section 2). Offsets and truncation have no
// meaning: a line takes effect in the write that completes it.
type controlHandle struct {
	file *ControlFile
	// appends reports O_APPEND: then the offset of a write is not the program's read position.
	appends bool
	// mute reports that the handle is write-only, without results; writes, that it is no reader.
	mute, writes bool

	// mu guards the fields below. It is held while lines are executed, to keep their order.
	mu      sync.Mutex
	pending []byte // the beginning of a line
	cut     bool   // a close was refused since pending is an incomplete line
	lines   int    // accepted newlines, including those of empty lines
	applied int    // lines that took effect
	refused refusedLine
	results answers
	// leftOut are the lines of the file that were not written since the first write, by their first
	// fields; nil where they stay. isWhole reports that one was written unchanged.
	leftOut map[string]string
	isWhole bool
	hold    budget.Hold // pending, the refused line and results

	shown Handle // the content for reads; nil for results
}

// refusedLine is a refused line. After it an open file accepts only the same line: a script that
// continues after an error must not leave out a line in the middle. A program that retries after
// EBUSY continues once the line is accepted.
type refusedLine struct {
	errno syscall.Errno // 0 if none was refused
	line  []byte        // with its newline; nil if it cannot be retried, as it was too long or several lines
}

// Write executes lines. A bad line fails the write that completes it, and all later ones. If lines
// of the same write took effect before it, the write is short, and the retry of the rest fails.
func (h *controlHandle) Write(ctx context.Context, data []byte, off int64) (int, syscall.Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.account()
	h.cut = false
	if h.appends {
		off = -1
	}
	h.results.unread(off)
	if h.refused.errno != 0 && !h.isRetry(data) {
		h.pending = nil
		return 0, h.refused.errno
	}
	n, errno := h.write(ctx, data)
	if n > 0 {
		errno = 0
	}
	return n, errno
}

// isRetry reports whether data continues the refused line, whose rewritten beginning is pending.
func (h *controlHandle) isRetry(data []byte) bool {
	if h.refused.line == nil {
		return false
	}
	rest := h.refused.line[len(h.pending):]
	n := min(len(rest), len(data))
	return n > 0 && bytes.Equal(rest[:n], data[:n])
}

// write executes the lines that data completes, and keeps the rest. It returns the number of bytes
// that took effect or are kept, also with an error.
func (h *controlHandle) write(ctx context.Context, data []byte) (int, syscall.Errno) {
	end := bytes.LastIndexByte(data, '\n') + 1
	lines := data[:end]
	rest := data[end:]
	if len(lines) > 0 {
		taken, errno := h.writeLines(ctx, lines, len(rest) > 0)
		if errno != 0 {
			return taken, errno
		}
	}
	errno := h.keep(ctx, rest)
	if errno != 0 {
		return end, errno
	}
	return len(data), 0
}

// keep adds the beginning of a line to pending.
func (h *controlHandle) keep(ctx context.Context, beginning []byte) syscall.Errno {
	if h.file.single && h.applied > 0 && len(beginning) > 0 {
		return h.refuse(errManyLines, nil, 0)
	}
	err := h.grow(ctx, len(beginning))
	if err != nil {
		return h.refuse(err, nil, 0)
	}
	h.pending = append(h.pending, beginning...)
	return 0
}

// writeLines executes the lines of data, which ends in a newline. hasRest reports that the write has
// the beginning of another line behind them. It returns the number of bytes that took effect, also
// with an error.
func (h *controlHandle) writeLines(ctx context.Context, data []byte, hasRest bool) (int, syscall.Errno) {
	if len(h.pending) > 0 {
		err := h.grow(ctx, bytes.IndexByte(data, '\n'))
		if err != nil {
			return 0, h.refuse(err, nil, 0)
		}
	}
	lines, ends := cutLines(h.pending, data, h.file.empty)
	count := len(lines)
	if hasRest {
		count++
	}
	if h.file.single && (h.applied > 0 || count > 1) {
		before := 0 // newlines before the line that is too many
		if h.applied == 0 {
			before = bytes.Count(data[:ends[0]], newline)
		}
		return 0, h.refuse(errManyLines, nil, before)
	}
	done, err := h.run(ctx, lines)
	if err == nil {
		h.pending = nil
		h.lines += bytes.Count(data, newline)
		return len(data), 0
	}
	if done == 0 {
		return 0, h.refuse(err, lines[0], h.skipped(data))
	}
	taken := ends[done-1]
	h.lines += bytes.Count(data[:taken], newline)
	return taken, h.refuse(err, lines[done], 0)
}

// skipped returns the number of ignored empty lines at the beginning of data.
func (h *controlHandle) skipped(data []byte) int {
	if h.file.empty || len(h.pending) > 0 {
		return 0
	}
	return len(data) - len(bytes.TrimLeft(data, "\n"))
}

// refuse records the reason for a refused line, unless it was refused before, and returns its
// errno. line is its text, nil if it cannot be retried; before counts lines before it.
func (h *controlHandle) refuse(err error, line []byte, before int) syscall.Errno {
	h.pending = nil
	if h.refused.errno != 0 {
		h.refused.errno = Errno(h.file.staleError(err))
		return h.refused.errno
	}
	h.refused.errno = h.file.Refused(&lineError{
		err:     err,
		line:    h.lines + before + 1,
		applied: h.applied,
	})
	h.refused.line = nil
	if line != nil && len(line) <= maxControlLine {
		h.refused.line = append(slices.Clone(line), '\n')
	}
	return h.refused.errno
}

// lineError is the reason for which a line was refused.
type lineError struct {
	err     error
	line    int // number in the open file, from 1
	applied int // before it
}

func (e *lineError) Error() string {
	return fmt.Sprintf("line %d: %v (%d applied)", e.line, e.err, e.applied)
}

func (e *lineError) Unwrap() error { return e.err }

var newline = []byte{'\n'}

// cutLines splits data, which ends in a newline, into lines; pending is the beginning of the first
// one, with room for the rest. It omits empty lines unless empty is true. ends holds the offset in
// data after each line and the empty lines that follow it.
func cutLines(pending, data []byte, empty bool) (lines [][]byte, ends []int) {
	for at := 0; at < len(data); {
		n := at + bytes.IndexByte(data[at:], '\n')
		line := data[at:n]
		if len(pending) > 0 {
			line = append(pending, line...)
			pending = nil
		}
		at = n + 1
		switch {
		case len(line) > 0 || empty:
			lines = append(lines, line)
			ends = append(ends, at)
		case len(ends) > 0:
			ends[len(ends)-1] = at
		}
	}
	return lines, ends
}

// run executes lines and keeps their results.
func (h *controlHandle) run(ctx context.Context, lines [][]byte) (done int, err error) {
	for i, line := range lines {
		if len(line) > maxControlLine {
			done, err = h.run(ctx, lines[:i])
			if err == nil {
				err = errLineTooLong
			}
			return done, err
		}
	}
	if len(lines) == 0 {
		return 0, nil
	}
	free, err := h.reserve(ctx, lines)
	if err != nil {
		return 0, err
	}
	defer free()
	if h.file.shown != nil && h.leftOut == nil && h.mute && !h.appends {
		h.leftOut, err = h.file.shown(ctx)
		if err != nil {
			return 0, err
		}
	}
	results, done, err := h.file.do(uninterrupted(ctx), lines)
	h.countIn(lines[:done])
	h.applied += done
	if done > 0 {
		h.refused = refusedLine{} // that line was the first of these
	}
	if !h.mute {
		for _, r := range results {
			h.results.add(r)
		}
	}
	return done, err
}

// countIn notes that lines of the file were written.
func (h *controlHandle) countIn(lines [][]byte) {
	for _, line := range lines {
		first, _, found := strings.Cut(string(line), "\t")
		if !found {
			first, _, _ = strings.Cut(first, " ")
		}
		shown, isShown := h.leftOut[first]
		if !isShown {
			continue
		}
		if shown == string(line) {
			h.isWhole = true
		}
		delete(h.leftOut, first)
	}
}

// clearLeftOut clears the lines that a text lacks which replaces the file.
func (h *controlHandle) clearLeftOut(ctx context.Context) error {
	if !h.isWhole {
		return nil
	}
	for _, first := range slices.Sorted(maps.Keys(h.leftOut)) {
		_, _, err := h.file.do(uninterrupted(ctx), [][]byte{[]byte(first + "\t")})
		if err != nil {
			return err
		}
		delete(h.leftOut, first)
	}
	return nil
}

// errManyLines means that more than one line was written to a file that accepts one.
var errManyLines error = &writer.FieldError{Want: "one line", Got: "more than one"}

// errLineTooLong means a line longer than maxControlLine.
var errLineTooLong = fmt.Errorf("%w: at most %d bytes", sessioncore.ErrTooBig, maxControlLine)

// Flush is called for each close(2) of a descriptor. A last line without a newline takes effect
// then. An incomplete one fails the close, but is kept for another descriptor.
func (h *controlHandle) Flush(ctx context.Context) syscall.Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.account()
	ctx = uninterrupted(ctx)
	if h.refused.errno != 0 && (len(h.pending) == 0 || !h.isRetry(newline)) {
		return 0 // the write has failed
	}
	if len(h.pending) > 0 {
		line := h.pending
		if h.file.isPartial != nil && h.file.isPartial(line) {
			h.cut = true
			return h.file.Refused(&lineError{
				err:     errUnfinished,
				line:    h.lines + 1,
				applied: h.applied,
			})
		}
		h.pending = nil
		_, err := h.run(ctx, [][]byte{line})
		if err != nil {
			return h.refuse(err, line, 0)
		}
		h.lines++
	}
	err := h.clearLeftOut(ctx)
	if err != nil {
		return h.refuse(err, nil, 0)
	}
	if h.writes {
		h.file.view().clearRefusal(h.file.of)
	}
	return 0
}

// errUnfinished means that a writer closed the file in the middle of a line.
var errUnfinished = fmt.Errorf(
	"%w: the last line has no newline and is not a whole JSON object", sessioncore.ErrInvalid)

// ReadAt returns the results of writes through this open file, a line each, and then nothing.
func (h *controlHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if h.shown != nil {
		return h.shown.ReadAt(ctx, p, off)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.account()
	return h.results.read(p, off), nil
}

// Close is called some time after the last close. It refuses an incomplete line in last-error and
// the log, unless that close has refused it: another refusal may have followed.
func (h *controlHandle) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pending) > 0 && !h.cut {
		_ = h.refuse(errUnfinished, nil, 0)
	}
	h.pending = nil
	h.results = answers{}
	h.hold.Close()
	if h.shown != nil {
		h.shown.Close()
	}
}

// The memory of an open control file, the beginning of a line and answers, is part of the budget
// (docs/design.md section 7, Memory).

// answerRoom is the memory for an answer that a line must reserve before it takes effect, as it
// cannot be refused afterwards. Ids of the writer's own may be longer.
const answerRoom = 128

// grow makes room for n more bytes in the beginning of a line, so that a line that is too long is
// refused before memory runs out.
func (h *controlHandle) grow(ctx context.Context, n int) error {
	size := len(h.pending) + n
	if size > maxControlLine {
		return errLineTooLong
	}
	if size <= cap(h.pending) {
		return nil
	}
	done, err := h.file.view().Memory.Work(ctx, int64(len(h.pending))) // both copies are there for a moment
	if err != nil {
		return err
	}
	defer done()
	room := max(size, min(2*cap(h.pending), maxControlLine))
	err = h.hold.Resize(int64(room + cap(h.results.text)))
	if err != nil {
		return err
	}
	h.pending = append(make([]byte, 0, room), h.pending...)
	return nil
}

// account reports the current memory to the budget.
func (h *controlHandle) account() {
	h.hold.Set(int64(cap(h.pending) + cap(h.refused.line) + cap(h.results.text)))
}

// reserve reserves the memory to execute lines: for their answers and, for a moment, for a copy of
// them. The caller must call done. The lines still count as held.
func (h *controlHandle) reserve(ctx context.Context, lines [][]byte) (done func(), err error) {
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if !h.mute {
		err := h.hold.Resize(int64(size + cap(h.results.text) + answerRoom*len(lines)))
		if err != nil {
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
	a.text = append(a.text, line...)
	a.text = append(a.text, '\n')
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
	a.next += n
	a.last = n
	a.at = off
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
