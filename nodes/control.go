package nodes

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/writer"
)

// maxControlLine is the longest line that a control file accepts, in bytes (docs/design.md section 2).
const maxControlLine = writer.MaxLine

// uninterrupted returns the context for a write: when the writer is killed, the write is finished nevertheless. It waits
// for a lock only for a limited time.
func uninterrupted(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// controller is what a control file does with the lines that are written to it.
type controller interface {
	// apply carries out lines in order and returns the results, which the writer can read back. At a bad line it stops
	// and returns how many lines before it took effect, with the error.
	apply(ctx context.Context, lines [][]byte) (results []string, done int, err error)
	// unfinished reports whether a last line without a newline is incomplete: then it is not carried out when a
	// descriptor is closed, since the rest may be written through another.
	unfinished(line []byte) bool
	// sync makes durable what was written.
	sync(ctx context.Context) error
	// refused records why a write was refused, in last-error and in the log, and returns the errno.
	refused(err error) syscall.Errno
	// accepted records that a write succeeded, which clears last-error.
	accepted()
}

// controlHandle is an open control file (docs/design.md section 2). Offsets and truncation have no meaning: a line
// may be spread over several writes, and takes effect in the write that completes it.
type controlHandle struct {
	file controller
	node *node
	// empty says that an empty line has a meaning; else it is ignored.
	empty bool
	// single says that only one line is accepted; if more are written, none of them takes effect.
	single bool
	// appends says that it was opened with O_APPEND: the offset of a write does not say how far the program has read.
	appends bool
	// mute says that the handle cannot be read, so that results are not kept.
	mute   bool
	memory *budget.Budget

	// mu guards what follows. It is held while lines are carried out, so that they take effect in order.
	mu      sync.Mutex
	pending []byte // the beginning of a line
	tally   tally
	taken   bool // a line took effect
	broken  brokenLine
	results answers
	hold    budget.Hold // pending and results

	shown *documentHandle // what reads return; nil for results
}

var _ = (fusefs.FileWriter)((*controlHandle)(nil))

// Write carries out lines. A bad line fails the write that completes it. If lines of the same write took effect before
// it, the write is short instead, and the writer's retry of the rest gets the error.
func (h *controlHandle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.appends {
		off = -1
	}
	h.results.back(off)
	if errno := h.broken.writes(data); errno != 0 {
		return 0, errno
	}
	defer h.account()
	goesOn := len(h.pending) > 0
	n, errno := h.write(uninterrupted(ctx), data, goesOn)
	if errno != 0 && goesOn {
		h.broken.hidden(errno, data)
	}
	return n, errno
}

// write is Write; goesOn says that there is the beginning of a line.
func (h *controlHandle) write(ctx context.Context, data []byte, goesOn bool) (uint32, syscall.Errno) {
	end := bytes.LastIndexByte(data, '\n') + 1
	if end > 0 {
		if goesOn {
			if err := h.makeRoom(bytes.IndexByte(data, '\n')); err != nil {
				h.pending = nil
				return 0, h.refuse(err, data, 0)
			}
		}
		lines, ends := cutLines(h.pending, data[:end], h.empty)
		h.pending = nil
		if h.single && (h.taken || len(lines) > 1 || end < len(data)) {
			second := 0
			if !h.taken {
				second = ends[0]
			}
			return 0, h.refuse(errManyLines, data, second)
		}
		done, err := h.run(ctx, lines)
		switch {
		case err != nil && done > 0:
			h.tally.took(data[:ends[done-1]], done)
			return uint32(ends[done-1]), 0
		case err != nil:
			return 0, h.refuse(err, data, firstLine(data, h.empty, goesOn))
		}
		h.tally.took(data[:end], done)
	}
	rest := data[end:]
	if h.single && h.taken && len(rest) > 0 {
		return 0, h.refuse(errManyLines, rest, 0)
	}
	if err := h.keep(rest); err != nil {
		if end > 0 {
			return uint32(end), 0 // lines before it took effect: the retry of the rest gets the error
		}
		errno := h.refuse(err, rest, 0)
		h.broken.line(errno)
		return 0, errno
	}
	return uint32(len(data)), 0
}

// refuse records the reason for a refused line; see tally.refuse.
func (h *controlHandle) refuse(err error, text []byte, start int) syscall.Errno {
	return h.file.refused(h.tally.refuse(err, text, start))
}

// cutLines splits data, which ends in a newline, into lines; pending is the beginning of the first one. Empty lines
// are left out unless empty is true. ends holds the offset in data at which each line ends, including the empty lines
// after it.
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
			lines, ends = append(lines, line), append(ends, at)
		case len(ends) > 0:
			ends[len(ends)-1] = at
		}
	}
	return lines, ends
}

// run carries out lines and keeps their results.
func (h *controlHandle) run(ctx context.Context, lines [][]byte) (done int, err error) {
	for i, line := range lines {
		if len(line) > maxControlLine {
			if done, err = h.run(ctx, lines[:i]); err == nil {
				err = errLineTooLong
			}
			return done, err
		}
	}
	if len(lines) == 0 {
		return 0, nil
	}
	free, err := h.forLines(ctx, lines)
	if err != nil {
		return 0, err
	}
	defer free()
	results, done, err := h.file.apply(ctx, lines)
	if done > 0 {
		h.taken = true
		h.file.accepted()
	}
	for _, r := range results {
		if h.mute {
			break
		}
		h.results.add(r)
	}
	return done, err
}

// errManyLines means that more than one line was written to a file that accepts one.
var errManyLines error = &writer.FieldError{Want: "one line", Got: "more than one"}

// errLineTooLong means a line longer than maxControlLine.
var errLineTooLong = fmt.Errorf("%w: at most %d bytes", sessioncore.ErrTooBig, maxControlLine)

var _ = (fusefs.FileFlusher)((*controlHandle)(nil))

// Flush is called for each close(2) of a descriptor. A last line without a newline takes effect then. An incomplete
// one fails the close, but is kept: the rest may be written through another descriptor.
func (h *controlHandle) Flush(ctx context.Context) syscall.Errno {
	ctx = uninterrupted(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pending) == 0 {
		return 0
	}
	defer h.account()
	unfinished := h.file.unfinished(h.pending)
	line := h.pending
	if !unfinished {
		h.pending = nil
	}
	if unfinished {
		return h.refuse(errUnfinished, line, 0)
	}
	if _, err := h.run(ctx, [][]byte{line}); err != nil {
		return h.refuse(err, line, 0)
	}
	h.tally.took(newline, 1)
	return 0
}

// errUnfinished means that a writer closed the file in the middle of a line.
var errUnfinished = fmt.Errorf("%w: the last line has no newline and is not a whole JSON object", sessioncore.ErrInvalid)

var _ = (fusefs.FileReader)((*controlHandle)(nil))

// Read returns the results of writes through this open file, a line each, and then EOF.
func (h *controlHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if h.shown != nil {
		return h.shown.Read(ctx, dest, off)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.account()
	return readBytes(dest[:h.results.read(dest, off)]), 0
}

var _ = (fusefs.FileFsyncer)((*controlHandle)(nil))

// Fsync makes durable what was written.
func (h *controlHandle) Fsync(ctx context.Context, _ uint32) syscall.Errno {
	if err := h.file.sync(uninterrupted(ctx)); err != nil {
		return h.file.refused(err)
	}
	return 0
}

var _ = (fusefs.FileReleaser)((*controlHandle)(nil))

// Release is called after the last close. An incomplete line is refused; only last-error and the log say so.
func (h *controlHandle) Release(ctx context.Context) syscall.Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pending) > 0 {
		_ = h.refuse(errUnfinished, h.pending, 0)
	}
	h.pending, h.results = nil, answers{}
	h.hold.Close()
	if h.shown != nil {
		return h.shown.Release(ctx)
	}
	return 0
}
