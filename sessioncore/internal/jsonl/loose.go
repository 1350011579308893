package jsonl

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// A line that is no JSON value may begin a value that continues on the next lines (docs/format.md,
// Loading), as after pretty-printing, two values on a line, or a crash.

const (
	// maxRunLines and maxRunBytes bound a value that spans lines (docs/format.md, Loading).
	maxRunLines = 2000
	maxRunBytes = 64 << 20
	// In a hostile file, many lines seem to begin a long value. The work for them is bounded by
	// looseWork plus looseWorkRatio times the offset in the file; above that, each line is read by
	// itself. Files of clients never come near that.
	looseWork      = 256 << 20
	looseWorkRatio = 8
	// lineWork is the cost of a line in addition to its bytes.
	lineWork = 64
	// lookAhead is the number of bytes of the following lines that are read at once.
	lookAhead = 64 << 10
)

// The reasons for skipping text. problems.jsonl shows them.
const (
	reasonNotJSON  = "not JSON"
	reasonTorn     = "a JSON value that is cut off"
	ReasonTooLong  = "the line is longer than 128 MiB"
	ReasonTrailing = "text after the value on its line"
	ReasonNoObject = "a JSON value that is no object"
	reasonGaveUp   = "not JSON by itself, and too much of the file is like it to look further"
)

// looseRun reads a value that begins on a loose line. It adds lines until the value is whole, or until no
// further line may belong to it:
//
//	{"a":          line 1 is no value by itself
//	 1}            lines 1 and 2 are one, and classify tells its parts
//	{"b":2}        a line that is an object by itself ends a run that has no value yet
type looseRun struct {
	l   *loader
	off int64 // offset of its first line

	text  []byte // the whole lines read so far
	lines int    // number of lines in text
	// mended is text without control characters in its strings, nil as long as text has none.
	mended []byte
	open   bool // the last line of text has no newline
	final  bool // no further line may belong to the value
	long   bool // it holds longLoose, and text is one of the buffers
	atEnd  bool // there is no further line in the file

	// The fields below are set by read.
	end    int                // the end of the value in text, or in mended
	status rawjson.ScanStatus // of the value
	gaveUp bool               // to read on would take too much work
}

// emitLoose emits the value that begins on the line at off, or else the line as skipped text.
func (l *loader) emitLoose(line, off int64) error {
	workBefore := l.work
	r := looseRun{l: l, off: off, text: l.loose[:0]}
	defer r.release()
	err := r.addLine()
	if err != nil {
		return err
	}
	firstLine := int64(len(bytes.TrimRight(r.text, "\r\n")))
	if rawjson.SkipSpace(r.text, 0) == len(r.text) { // a blank line is not loose
		return errLineChanged
	}
	var info LineInfo
	err = r.read(&info)
	if err != nil {
		return err
	}
	u := Unit{
		Kind:   SkippedUnit,
		Reason: r.reason(),
		Line:   line,
		Off:    off,
		Size:   firstLine,
	}
	if r.status == rawjson.OK {
		l.fillLoose(&u, &info, &r)
	}
	mayGoOn := r.status == rawjson.Short && r.atEnd
	if r.open || mayGoOn {
		l.settle(Position{
			Off:   off,
			Lines: line - 1,
			work:  workBefore,
		})
	}
	if u.Kind != SkippedUnit {
		l.resume.Guessed = l.settled
	}
	return l.emit(&u)
}

// read scans the value, and adds lines until it is whole, or no further line may belong to it, or that
// would take too much work.
func (r *looseRun) read(info *LineInfo) error {
	l := r.l
	r.status = rawjson.Short
	for l.work < looseWork+looseWorkRatio*r.off {
		*info = LineInfo{}
		r.end, r.status = r.scan(info)
		if r.status != rawjson.Short || r.final || r.atEnd {
			return nil
		}
		err := r.extend()
		if err != nil {
			return err
		}
	}
	r.gaveUp = true
	return nil
}

// reason returns the reason to skip the line if the run has no value.
func (r *looseRun) reason() string {
	switch {
	case r.gaveUp:
		return reasonGaveUp
	case r.status == rawjson.Short:
		return reasonTorn
	}
	return reasonNotJSON
}

// release keeps the buffer for the next value. A long one goes back to longBuffers.
func (r *looseRun) release() {
	if !r.long {
		r.l.loose = r.text
		return
	}
	longBuffers.put(r.text)
	longLoose.Release(1)
}

// grow makes room in text for size bytes in all. Above KeepBuffer it waits until no other value is that long.
func (r *looseRun) grow(size int) error {
	if size <= cap(r.text) {
		return nil
	}
	if size <= KeepBuffer {
		r.text = slices.Grow(r.text, size-len(r.text))
		return nil
	}
	old := r.text
	if !r.long {
		err := longLoose.Acquire(r.l.ctx, 1)
		if err != nil {
			return err
		}
		r.long = true
		buf := longBuffers.get(size)
		length := copy(buf, old)
		r.text = buf[:length]
		return nil
	}
	buf := longBuffers.get(max(size, 2*cap(old))) // twice, so that few lines are copied
	length := copy(buf, old)
	r.text = buf[:length]
	longBuffers.put(old)
	return nil
}

// fillLoose sets the fields of u and info for the value at the start of r's text, and notes the end of its last line, so
// that its lines are not emitted again.
func (l *loader) fillLoose(u *Unit, info *LineInfo, r *looseRun) {
	start := rawjson.SkipSpace(r.text, 0)
	end := r.end
	u.Kind = OtherUnit
	if r.text[start] == '{' {
		u.Kind = ObjectUnit
	}
	u.Off = r.off + int64(start)
	u.Loose = true
	if r.mended == nil {
		u.Text = r.text[start:end]
	} else {
		u.Text = r.mended[start:end]
		end = rawEnd(r.text, end)
	}
	u.Size = int64(end - start)
	breaks := bytes.Count(r.text[start:end], []byte{'\n'})
	u.Breaks = int64(breaks)
	info.value = rangeOf(start, start+len(u.Text))
	info.Flags = l.scan.Flags
	info.rebase(uint32(start))
	info.noteText(u.Text)
	u.Info = info
	lineEnd := len(r.text)
	n := bytes.IndexByte(r.text[end:], '\n')
	if n >= 0 {
		lineEnd = end + n
	}
	trailing := bytes.TrimSpace(r.text[end:lineEnd])
	u.Trailing = int64(len(trailing))
	l.skipTo = r.off + int64(lineEnd)
}

// extend doubles the lines, so that repeated scanning costs at most twice a full scan.
func (r *looseRun) extend() error {
	for range r.lines {
		if r.final || r.atEnd {
			return nil
		}
		err := r.addLine()
		if err != nil {
			return err
		}
	}
	return nil
}

// addLine adds one more line to text. It sets final instead, and leaves text as it is, if the line ends the
// run: it is an object by itself, or a limit is reached.
func (r *looseRun) addLine() error {
	at := r.off + int64(len(r.text))
	if at >= r.l.size || r.open {
		r.atEnd = true
		return nil
	}
	err := r.l.ctx.Err()
	if err != nil {
		return err
	}
	before := len(r.text)
	err = r.addText(at)
	if err != nil {
		return err
	}
	line := r.text[before:]
	r.open = line[len(line)-1] != '\n'
	r.l.work += int64(len(line)) + lineWork
	if r.lines == 0 {
		r.lines = 1
		return nil
	}
	isFull := r.lines >= maxRunLines || len(r.text) > maxRunBytes
	if r.isObject(line) || isFull {
		r.text = r.text[:before]
		r.final = true
		return nil
	}
	r.lines++
	return nil
}

// isObject reports whether a line of text is a JSON object by itself. A line without quotes does not count
// while the value has a string that goes on: such a line, as {}, is a part of that string.
func (r *looseRun) isObject(line []byte) bool {
	var info LineInfo
	text := bytes.TrimSuffix(line, []byte("\n"))
	classify(&r.l.scan, text, nil, &info)
	mayBeInString := r.mended != nil && bytes.IndexByte(line, '"') < 0
	return info.class == lineObject && !mayBeInString
}

// addText adds the line at an offset with its newline, up to MaxLine bytes of it. It reads short lines ahead, many at
// once.
func (r *looseRun) addText(off int64) error {
	l := r.l
	line, ok := l.aheadAt(off)
	if !ok {
		n := min(lookAhead, l.size-off)
		l.ahead = slices.Grow(l.ahead[:0], int(n))
		l.ahead = l.ahead[:n]
		l.aheadOff = off
		err := storage.ReadFull(l.obj, l.ahead, off)
		if err != nil {
			l.ahead = nil
			return err
		}
		line, ok = l.aheadAt(off)
	}
	before := len(r.text)
	if ok {
		err := r.grow(before + len(line))
		if err != nil {
			return err
		}
		r.text = append(r.text, line...)
		return nil
	}
	read := off + int64(len(l.ahead)) // up to there no newline is
	size, _, err := lineSize(l.ctx, l.obj, off, read, l.size)
	if err != nil {
		return err
	}
	end := before + int(min(size, MaxLine))
	err = r.grow(end)
	if err != nil {
		return err
	}
	r.text = r.text[:end]
	return storage.ReadFull(l.obj, r.text[before:], off)
}

// aheadAt returns the line at an offset, with its newline, if all of it was read ahead.
func (l *loader) aheadAt(off int64) (line []byte, ok bool) {
	skip := off - l.aheadOff
	if skip < 0 || skip >= int64(len(l.ahead)) {
		return nil, false
	}
	line = l.ahead[skip:]
	end := bytes.IndexByte(line, '\n')
	if end >= 0 {
		return line[:end+1], true
	}
	return line, off+int64(len(line)) == l.size
}
