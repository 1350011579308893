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
	mu       sync.Mutex
	pending  []byte // the beginning of a line
	isCut    bool   // a close was refused since pending is an incomplete line
	newlines int    // accepted newlines; empty lines have one, too
	applied  int    // lines that took effect
	refused  refusedLine
	results  answers
	leftOut  leftOutLines
	hold     budget.Hold // for pending, the refused line and results

	shown Handle // the content for reads; nil for results
}

// leftOutLines are the lines of a file that a writer has not written. An editor that saves a text without a line
// has removed that line: a close then clears it.
type leftOutLines struct {
	// byField has the lines, by their first fields. It is nil if other lines of the file stay, and before the
	// first write.
	byField map[string]string
	// isKnown reports that a line was written as it was in the file. So the writer knows the file and has
	// replaced all of it; otherwise the lines were only added.
	isKnown bool
}

// remove removes written lines, by their first field: the part up to a tab, or to a blank.
func (l *leftOutLines) remove(written [][]byte) {
	for _, line := range written {
		first, _, hasTab := strings.Cut(string(line), "\t")
		if !hasTab {
			first, _, _ = strings.Cut(first, " ")
		}
		shown, isShown := l.byField[first]
		if !isShown {
			continue
		}
		if shown == string(line) {
			l.isKnown = true
		}
		delete(l.byField, first)
	}
}

// refusedLine is a refused line. After it an open file accepts only the same line: a script that
// continues after an error must not leave out a line in the middle. A program that retries after
// EBUSY continues once the line is accepted.
type refusedLine struct {
	errno syscall.Errno // 0 if none was refused
	line  []byte        // with its newline; nil if no retry is possible: it was too long, or several lines
}

// Write executes lines. A bad line fails the write that completes it, and all later ones. If lines
// of the same write took effect before it, the write is short, and the retry of the rest fails. off is the
// offset of the write: the answers from there on become unread; see answers.
func (h *controlHandle) Write(ctx context.Context, data []byte, off int64) (int, syscall.Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.account()
	h.isCut = false
	if h.appends {
		off = noOffset
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

// isRetry reports whether data begins like the part of the refused line that a retry must write next. pending
// is the part that was repeated already.
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
	complete := data[:end]
	rest := data[end:]
	if len(complete) > 0 {
		accepted, errno := h.writeLines(ctx, complete, len(rest) > 0)
		if errno != 0 {
			return accepted, errno
		}
	}
	errno := h.keep(ctx, rest)
	if errno != 0 {
		return end, errno
	}
	return len(data), 0
}

// keep adds the beginning of a line to pending. A file that accepts one line refuses it after that line.
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
		lastPart := bytes.IndexByte(data, '\n')
		err := h.grow(ctx, lastPart)
		if err != nil {
			return 0, h.refuse(err, nil, 0)
		}
	}
	written := splitLines(h.pending, data, h.file.empty)
	before, err := h.admit(written, hasRest)
	if err != nil {
		return 0, h.refuse(err, nil, before)
	}
	done, err := h.run(ctx, written.lines)
	if err == nil {
		h.pending = nil
		h.newlines += bytes.Count(data, newline)
		return len(data), 0
	}
	if done == 0 {
		return 0, h.refuse(err, written.lines[0], written.skipped)
	}
	last := written.ends[done-1]
	h.newlines += last.newlines
	return last.offset, h.refuse(err, written.lines[done], 0)
}

// admit returns an error if the file accepts one line and would get more, complete or not. before is the number
// of newlines in the write before the line that is too many.
func (h *controlHandle) admit(written writtenLines, hasRest bool) (before int, err error) {
	if !h.file.single {
		return 0, nil
	}
	if h.applied > 0 {
		return 0, errManyLines
	}
	count := len(written.lines)
	if hasRest {
		count++
	}
	if count > 1 {
		return written.ends[0].newlines, errManyLines
	}
	return 0, nil
}

// refuse records the reason for a refused line, unless a line was refused before, and returns its errno. It
// drops pending. line is the text of the refused line, nil if no retry is possible; before is the number of
// newlines before it in the current write.
func (h *controlHandle) refuse(err error, line []byte, before int) syscall.Errno {
	h.pending = nil
	if h.refused.errno != 0 {
		h.refused.errno = Errno(h.file.staleError(err))
		return h.refused.errno
	}
	h.refused.errno = h.file.Refused(&lineError{
		err:     err,
		line:    h.newlines + before + 1,
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

// writtenLines are the lines that the data of a write completes. With {"a": as the pending beginning of a line
// and 1}\n\nx\n as data the lines are {"a":1} and x, with the ends (4, 2) and (6, 3).
type writtenLines struct {
	lines   [][]byte     // without newlines
	ends    []writtenEnd // of the lines
	skipped int          // the ignored empty lines before the first line
}

// writtenEnd is the place in written data behind a line and the ignored empty lines that follow it.
type writtenEnd struct {
	offset   int // in bytes
	newlines int // those before the offset
}

// splitLines splits data, which ends in a newline, into lines; pending is the beginning of the first
// one, with room for the rest. It ignores empty lines unless keepEmpty is set.
func splitLines(pending, data []byte, keepEmpty bool) (w writtenLines) {
	offset := 0
	for newlines := 1; offset < len(data); newlines++ {
		length := bytes.IndexByte(data[offset:], '\n')
		line := data[offset : offset+length]
		if len(pending) > 0 {
			line = append(pending, line...)
			pending = nil
		}
		offset += length + 1
		end := writtenEnd{offset: offset, newlines: newlines}
		switch {
		case len(line) > 0 || keepEmpty:
			w.lines = append(w.lines, line)
			w.ends = append(w.ends, end)
		case len(w.ends) == 0:
			w.skipped++
		default:
			w.ends[len(w.ends)-1] = end
		}
	}
	return w
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

// execute is run for lines that are not too long. Before the first of them it reads which lines of the file the
// writer may leave out.
func (h *controlHandle) execute(ctx context.Context, lines [][]byte) (done int, err error) {
	if len(lines) == 0 {
		return 0, nil
	}
	free, err := h.reserve(ctx, lines)
	if err != nil {
		return 0, err
	}
	defer free()
	mayReplace := h.file.shown != nil && h.mute && !h.appends // an editor opens write-only, without O_APPEND
	if mayReplace && h.leftOut.byField == nil {
		h.leftOut.byField, err = h.file.shown(ctx)
		if err != nil {
			return 0, err
		}
	}
	results, done, err := h.file.do(uninterrupted(ctx), lines)
	h.leftOut.remove(lines[:done])
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

// clearLeftOut clears the lines of leftOut in the file, if the writer has replaced the whole file. Those that
// are cleared leave leftOut, also before an error.
func (h *controlHandle) clearLeftOut(ctx context.Context) error {
	if !h.leftOut.isKnown {
		return nil
	}
	fields := slices.Sorted(maps.Keys(h.leftOut.byField))
	for _, first := range fields {
		withoutValue := []byte(first + "\t")
		_, _, err := h.file.do(uninterrupted(ctx), [][]byte{withoutValue})
		if err != nil {
			return err
		}
		delete(h.leftOut.byField, first)
	}
	return nil
}

// errManyLines means that more than one line was written to a file that accepts one.
var errManyLines error = &writer.FieldError{Want: "one line", Got: "more than one"}

// errLineTooLong means a line longer than maxControlLine.
var errLineTooLong = fmt.Errorf("%w: at most %d bytes", sessioncore.ErrTooBig, maxControlLine)

// Flush is called for each close(2) of a descriptor. A last line without a newline takes effect
// then. An incomplete one fails the close, but is kept for another descriptor. A close after a refused write
// succeeds, unless it repeats the refused line, and one without a refusal clears last-error.
func (h *controlHandle) Flush(ctx context.Context) syscall.Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.account()
	ctx = uninterrupted(ctx)
	if h.refused.errno != 0 {
		isRetried := len(h.pending) > 0 && h.isRetry(newline)
		if !isRetried {
			return 0 // the writer knows it: the write has failed
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
		h.file.view().clearRefusal(h.file.sessionName)
	}
	return 0
}

// flushPending executes pending as a line, unless it is incomplete.
func (h *controlHandle) flushPending(ctx context.Context) syscall.Errno {
	line := h.pending
	if h.file.isPartial != nil && h.file.isPartial(line) {
		h.isCut = true
		return h.file.Refused(&lineError{
			err:     errUnfinished,
			line:    h.newlines + 1,
			applied: h.applied,
		})
	}
	h.pending = nil
	_, err := h.run(ctx, [][]byte{line})
	if err != nil {
		return h.refuse(err, line, 0)
	}
	h.newlines++ // the one that is missing
	return 0
}

// errUnfinished means that a writer closed the file in the middle of a line.
var errUnfinished = fmt.Errorf(
	"%w: the last line has no newline and is not a whole JSON object", sessioncore.ErrInvalid)

// ReadAt reads the content of a file that shows some; otherwise it returns the results of writes through this
// open file, a line each, and then nothing.
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
	if len(h.pending) > 0 && !h.isCut {
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

// noOffset is the offset of a write or read that continues no read.
const noOffset = -1

// unread makes the last read unread from an offset of the file on, if it contains that offset. It ends the last
// read: a second call changes nothing.
func (a *answers) unread(off int64) {
	if off >= a.at && off < a.at+int64(a.last) {
		a.next -= a.last - int(off-a.at)
	}
	a.last = 0
}

// read fills dest with answers and returns the number of bytes. off is the offset of the read in the file.
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
