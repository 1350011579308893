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
// meaning: a line takes effect in the write that completes it. A program that writes two lines in three
// parts to append:
//
//	write                    takes effect    pending
//	{"type":"custom",        nothing         {"type":"custom",
//	"n":1}\n{"type":         line 1          {"type":
//	"custom"}\n              line 2          nothing
//
// If line 1 is refused, the second write fails, and each later write and close, too, unless it repeats that
// line: see refusedLine.
type controlHandle struct {
	file    *ControlFile
	appends bool // O_APPEND: the offset of a write is not the program's read position
	mute    bool // write-only: no results are kept
	writes  bool // opened for writing

	// mu guards the fields below. It is held while lines are executed, to keep their order.
	mu      sync.Mutex
	pending []byte // the beginning of a line
	cut     bool   // a close was refused since pending is an incomplete line
	lines   int    // accepted newlines; empty lines have one, too
	applied int    // lines that took effect
	refused refusedLine
	results answers
	// leftOut has the lines of the file that were not written since the first write, by their first
	// fields. It is nil if other lines of the file stay.
	leftOut map[string]string
	isWhole bool        // a line was written as it was in the file, so the writer knows the file
	hold    budget.Hold // for pending, the refused line and results

	shown Handle // the content for reads; nil for results
}

// refusedLine is a refused line. After it an open file accepts only the same line: a script that
// continues after an error must not leave out a line in the middle. A program that retries after
// EBUSY continues once the line is accepted.
type refusedLine struct {
	errno syscall.Errno // 0 if none was refused
	line  []byte        // with its newline; nil if no retry is possible: it was too long, or several lines
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
		return n, 0 // the kernel has a program retry the rest
	}
	return 0, errno
}

// isRetry reports whether data repeats the refused line or a part of it. pending is its beginning, which was
// repeated already.
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
	if h.file.single && h.applied > 0 {
		return 0, h.refuse(errManyLines, nil, 0)
	}
	if h.file.single && count > 1 {
		return 0, h.refuse(errManyLines, nil, bytes.Count(data[:ends[0]], newline))
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
	applied := ends[done-1]
	h.lines += bytes.Count(data[:applied], newline)
	return applied, h.refuse(err, lines[done], 0)
}

// skipped returns the number of ignored empty lines at the beginning of data.
func (h *controlHandle) skipped(data []byte) int {
	if h.file.empty || len(h.pending) > 0 {
		return 0
	}
	return len(data) - len(bytes.TrimLeft(data, "\n"))
}

// refuse records the reason for a refused line, unless it was refused before, and returns its
// errno. line is its text, nil if no retry is possible; before is the number of lines before it in the
// current write.
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

// lineError is the error of a refused line, with its place.
type lineError struct {
	err     error
	line    int // the number of the line in the open file, from 1
	applied int // the lines that took effect before it
}

func (e *lineError) Error() string {
	return fmt.Sprintf("line %d: %v (%d applied)", e.line, e.err, e.applied)
}

func (e *lineError) Unwrap() error { return e.err }

var newline = []byte{'\n'}

// cutLines splits data, which ends in a newline, into lines; pending is the beginning of the first
// one, with room for the rest. It omits empty lines unless empty is true. ends holds the offset in
// data after each line and the empty lines that follow it: with {"a": as pending and 1}\n\nx\n as data
// the lines are {"a":1} and x, and the ends 4 and 6.
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

// run executes lines and keeps their results. It returns the number of those that took effect. Lines before
// one that is too long are executed; a line that fails ends it.
func (h *controlHandle) run(ctx context.Context, lines [][]byte) (done int, err error) {
	tooLong := slices.IndexFunc(lines, func(line []byte) bool {
		return len(line) > maxControlLine
	})
	if tooLong < 0 {
		return h.execute(ctx, lines)
	}
	done, err = h.execute(ctx, lines[:tooLong])
	if err == nil {
		err = errLineTooLong
	}
	return done, err
}

// execute is run for lines that are not too long.
func (h *controlHandle) execute(ctx context.Context, lines [][]byte) (done int, err error) {
	if len(lines) == 0 {
		return 0, nil
	}
	free, err := h.reserve(ctx, lines)
	if err != nil {
		return 0, err
	}
	defer free()
	mayReplace := h.file.shown != nil && h.mute && !h.appends
	if mayReplace && h.leftOut == nil {
		h.leftOut, err = h.file.shown(ctx)
		if err != nil {
			return 0, err
		}
	}
	results, done, err := h.file.do(uninterrupted(ctx), lines)
	h.countIn(lines[:done])
	h.applied += done
	if done > 0 {
		h.refused = refusedLine{} // it was the first of these lines, and is accepted now
	}
	if !h.mute {
		for _, r := range results {
			h.results.add(r)
		}
	}
	return done, err
}

// countIn removes written lines from leftOut, by their first field: the part up to a tab, or to a blank.
func (h *controlHandle) countIn(lines [][]byte) {
	for _, line := range lines {
		first, _, hasTab := strings.Cut(string(line), "\t")
		if !hasTab {
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

// clearLeftOut clears the lines of leftOut, if the writer has replaced the whole file: an editor that saves a
// text without a line has removed that line.
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
	if h.refused.errno != 0 {
		isRetried := len(h.pending) > 0 && h.isRetry(newline)
		if !isRetried {
			return 0 // the write has failed
		}
	}
	if len(h.pending) > 0 {
		errno := h.flushPending(ctx)
		if errno != 0 {
			return errno
		}
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

// flushPending executes pending as a line, unless it is incomplete.
func (h *controlHandle) flushPending(ctx context.Context) syscall.Errno {
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

// grow makes room for n more bytes in pending, so that a line that is too long is refused before memory
// runs out.
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
	doubled := min(2*cap(h.pending), maxControlLine)
	room := max(size, doubled)
	err = h.hold.Resize(int64(room + cap(h.results.text)))
	if err != nil {
		return err
	}
	pending := make([]byte, 0, room)
	h.pending = append(pending, h.pending...)
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
	next int   // the index in text where the next read begins
	last int   // the bytes before next that the last read returned
	at   int64 // the offset of the last read in the file
}

// add adds an answer.
func (a *answers) add(line string) {
	a.dropRead()
	a.text = append(a.text, line...)
	a.text = append(a.text, '\n')
}

// unread makes the last read unread from an offset of the file on, if it began there or before.
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
	done := a.next - a.last
	if done <= cap(a.text)/2 {
		return
	}
	a.text = slices.Clone(a.text[done:])
	a.next = a.last
}
