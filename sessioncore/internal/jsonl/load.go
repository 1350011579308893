package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file splits a session file into units (docs/format.md, Loading). It classifies chunks of
// whole lines, on several goroutines if the file is large, and emits them in file order. loose.go
// scans the lines that are not a value by themselves once more.

const (
	// ChunkSize is the size of a read in bytes: several chunks fit into a processor's cache.
	ChunkSize = 256 << 10
	// inlineSize is the most that one goroutine reads, in a few milliseconds. Several take a sixth
	// more processor time, and as long to start as they save.
	inlineSize = 16 * ChunkSize
	// MaxLine is the longest line that is read, in bytes. Lines over 64 MiB cannot be written
	// through the mount (docs/design.md section 2). Twice that leaves room for other writers, and
	// bounds the memory for a hostile line.
	MaxLine = 128 << 20
	// KeepBuffer is the size of the largest buffer that is reused. Larger ones are dropped.
	KeepBuffer = 1 << 20
)

// UnitKind is the kind of a unit of a session file.
type UnitKind uint8

const (
	ObjectUnit  UnitKind = iota // a JSON object
	OtherUnit                   // a JSON value that is not an object
	SkippedUnit                 // text that is not a value
)

// Unit is one value of a session file, or a piece of text that is not a value. Its slices are valid
// only during the call to emit.
type Unit struct {
	Kind   UnitKind
	Reason string // why text was skipped
	Line   int64  // number of its first line, from 1
	Off    int64  // offset of the value or the skipped text in the file
	Text   []byte // the text of the value; nil for skipped text
	Size   int64  // of the value or the skipped text, in bytes
	Info   *LineInfo
	Loose  bool // the value is not alone on its line
	// Members and Inner are set by Records for an object that is alone on its line.
	Members, Inner []rawjson.Member
	EndsLine       bool // the byte after the text is the line's newline
	// Trailing is the number of bytes after the value that were skipped on its last line.
	Trailing int64
	// Breaks is the number of newlines in a value that goes on over several lines.
	Breaks int64
}

// Position is the end of a load. The next load continues there when the file has grown.
type Position struct {
	Off   int64 // offset of the next line
	Lines int64 // lines before it
	// MidLine reports whether the text before Off is a value on a last line without a newline.
	// Growth before that newline changes the value.
	MidLine bool
	// Guessed reports whether text after Off was read as values that growth may change.
	Guessed bool
	// work is the number of bytes spent on lines that are not a value by themselves (loose.go).
	work int64
}

// loader reads one state of a file.
type loader struct {
	ctx  context.Context // of the load
	obj  io.ReaderAt
	size int64
	emit func(*Unit) error
	// chunk is the size of the first read. It doubles up to ChunkSize.
	chunk int64
	limit int64 // length of the longest line that is read
	// inner is the key, in quotes, of the member that Records collects the members of; "" for Load.
	inner string
	// skip is Records.Skip, or nil.
	skip func(line []byte) bool
	// mends says that texts may have control characters: Records.RawControls.
	mends bool

	scan rawjson.Scanner
	// resume is the start of the next load, settled at the first unit that growth could change.
	resume  Position
	settled bool
	// skipTo is the end of a value that spanned lines which are already classified.
	skipTo int64
	work   int64
	unit   Unit   // of a line; reused for the next one
	loose  []byte // buffer for loose.go
	mended []byte // another one, for values that are mended
	// ahead holds text that loose.go has read ahead, from aheadOff on.
	ahead    []byte
	aheadOff int64
}

// ErrStop is returned by an emit function that needs no more units.
var ErrStop = errors.New("stop")

// errLineChanged is returned if a line differs when it is read for the second time.
var errLineChanged = fmt.Errorf("%w: a line changed while it was read", storage.ErrStale)

// Load calls emit for the units of obj from a position up to size, in file order. It returns the
// position for the next load. Errors come from reading and of emit.
func Load(ctx context.Context, obj io.ReaderAt, from Position, size int64, emit func(*Unit) error) (Position, error) {
	l := &loader{
		ctx:   ctx,
		obj:   obj,
		size:  size,
		emit:  emit,
		limit: MaxLine,
		work:  from.work,
	}
	return l.load(ctx, from)
}

// Records describes the records of another agent's file.
type Records struct {
	// Limit is the length of the longest line that is read, in bytes; 0 for MaxLine.
	Limit int64
	// Inner is the key of the member for Unit.Inner, "" for none.
	Inner string
	// RawControls says that the agent writes control characters into texts as they are, such as a
	// newline. JSON has none there: a Unit has them escaped.
	RawControls bool
	// Skip reports whether a line is left out. It may be nil, and is called by several goroutines.
	Skip func(line []byte) bool
}

// Load is the function Load for records. Units have no Info, but their members and those of their
// member Inner.
func (r Records) Load(ctx context.Context, obj io.ReaderAt, from Position, size int64, emit func(*Unit) error) (Position, error) {
	l := &loader{
		ctx:   ctx,
		obj:   obj,
		size:  size,
		emit:  emit,
		limit: r.Limit,
		work:  from.work,
	}
	if r.Limit == 0 {
		l.limit = MaxLine
	}
	l.inner = `"` + r.Inner + `"`
	l.skip = r.Skip
	l.mends = r.RawControls
	return l.load(ctx, from)
}

// load loads the file from a position on, and returns the position for the next load. It waits until the file may be
// read, unless that is one read.
func (l *loader) load(ctx context.Context, from Position) (Position, error) {
	obj := l.obj
	size := l.size
	l.chunk = ChunkSize
	l.resume = Position{Off: from.Off, Lines: from.Lines}
	if size-from.Off > ChunkSize {
		done, err := startReading(ctx)
		if err != nil {
			return l.resume, err
		}
		defer done()
	}
	start := from.Off
	if start == 0 {
		start = bomLen(obj)
		l.resume.Off = start
	}
	var err error
	if size-start <= inlineSize || runtime.GOMAXPROCS(0) == 1 {
		err = l.inline(ctx, start, from.Lines)
	} else {
		err = l.pipeline(ctx, start, from.Lines)
	}
	if !l.settled { // else settle has set it
		l.resume.work = l.work
	}
	return l.resume, err
}

// LoadFirst is Load for the beginning of a file: it stops when emit returns ErrStop, begins with a
// small read, and starts no goroutines. Errors come from reading and of emit.
func LoadFirst(ctx context.Context, obj io.ReaderAt, size int64, emit func(*Unit) error) error {
	return Records{}.LoadFirst(ctx, obj, size, emit)
}

// LoadFirst is the function LoadFirst for records. Units have Info, and no members.
func (r Records) LoadFirst(ctx context.Context, obj io.ReaderAt, size int64, emit func(*Unit) error) error {
	l := &loader{
		ctx:   ctx,
		obj:   obj,
		size:  size,
		emit:  emit,
		chunk: probeChunk,
		limit: MaxLine,
		mends: r.RawControls,
	}
	err := l.inline(ctx, bomLen(obj), 0)
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// bomLen returns the length of a byte order mark at the file's start (docs/format.md, Loading).
func bomLen(obj io.ReaderAt) int64 {
	var b [3]byte
	n, _ := obj.ReadAt(b[:], 0)
	hasMark := n == len(b) && b == [3]byte{0xEF, 0xBB, 0xBF}
	if !hasMark {
		return 0
	}
	return int64(len(b))
}

// inline loads the chunks one by one in this goroutine, from an offset with lines before it.
func (l *loader) inline(ctx context.Context, off, lines int64) error {
	r := chunkReader{
		obj:   l.obj,
		next:  off,
		size:  l.size,
		chunk: l.chunk,
		limit: l.limit,
	}
	c := newChunk()
	defer c.recycle()
	for {
		err := ctx.Err()
		if err != nil {
			return err
		}
		err = r.fill(ctx, c)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		c.classify(&l.scan, l.inner, l.skip)
		err = l.merge(c, lines)
		if err != nil {
			return err
		}
		lines += c.newlines
	}
}

// pipeline is inline with one goroutine that reads, one for each chunk that classifies it, and this
// one, which merges the results in file order. Chunks go around: free, filled by the reader, ordered, merged here, and
// free again. All goroutines have ended when it returns.
func (l *loader) pipeline(ctx context.Context, off, lines int64) error {
	ctx, cancel := context.WithCancel(ctx)
	inFlight := 2 * min(runtime.GOMAXPROCS(0), 4) // more than 4 processors wait for the merging
	free := make(chan *chunk, inFlight)
	for range inFlight {
		free <- newChunk()
	}
	ordered := make(chan *chunk, inFlight)
	var readErr error
	defer func() {
		cancel()
		for c := range ordered { // after an error
			_ = <-c.done
			c.release()
		}
	}()
	go func() {
		defer close(ordered)
		defer storage.RecoverTo(&readErr)
		r := &chunkReader{
			obj:   l.obj,
			next:  off,
			size:  l.size,
			chunk: l.chunk,
			limit: l.limit,
		}
		readErr = l.readChunks(ctx, r, free, ordered)
	}()
	for c := range ordered {
		err := <-c.done
		if err == nil {
			err = l.merge(c, lines)
		} else {
			c.release()
		}
		if err != nil {
			return err
		}
		lines += c.newlines
		free <- c
	}
	for len(free) > 0 { // the reader has ended
		c := <-free
		c.recycle()
	}
	return readErr
}

// readChunks fills free chunks with the file, and sends them in order. Each one's done gets an error once it is
// classified.
func (l *loader) readChunks(ctx context.Context, r *chunkReader, free <-chan *chunk, ordered chan<- *chunk) error {
	for {
		var c *chunk
		select {
		case c = <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
		err := r.fill(ctx, c)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			c.done <- l.classifyGuarded(c)
		}()
		ordered <- c // does not block: there are no more chunks than its capacity
	}
}

// classifyGuarded classifies a chunk, and returns a panic as an error. Several goroutines call it.
func (l *loader) classifyGuarded(c *chunk) (err error) {
	defer storage.RecoverTo(&err)
	c.classify(&rawjson.Scanner{}, l.inner, l.skip)
	return nil
}

// merge emits the units of a classified chunk, with linesBefore lines before it, and releases it. It moves l.resume behind
// the chunk.
func (l *loader) merge(c *chunk, linesBefore int64) error {
	defer c.release()
	for i := range c.lines {
		info := &c.lines[i]
		off := c.off + int64(info.start)
		if off < l.skipTo { // a part of a value that was emitted
			continue
		}
		line := linesBefore + int64(info.number) + 1
		var err error
		switch info.class {
		case lineObject, lineOther:
			err = l.emitLine(c, info, line, off)
		case lineTooLong:
			err = l.emit(&Unit{
				Kind:   SkippedUnit,
				Reason: ReasonTooLong,
				Line:   line,
				Off:    off,
				Size:   c.skipped,
			})
		case lineLoose:
			err = l.emitLoose(line, off)
		}
		if err != nil {
			return err
		}
	}
	end := c.off + int64(len(c.buf)) + c.skipped
	switch {
	case l.settled:
	case c.open:
		l.settleOpenLine(c, linesBefore+c.newlines, end)
	default:
		l.resume = Position{Off: end, Lines: linesBefore + c.newlines}
	}
	return nil
}

// emitLine emits the unit of a line that is a value by itself. Behind the settled position it is a guess.
func (l *loader) emitLine(c *chunk, info *LineInfo, line, off int64) error {
	kind := OtherUnit
	if info.class == lineObject {
		kind = ObjectUnit
	}
	l.resume.Guessed = l.settled
	lineEnd := info.start + info.length
	text := c.buf[info.start:lineEnd]
	v := info.value
	hasNewline := int(lineEnd) < len(c.buf)
	l.unit = Unit{
		Members:  c.notes.members[info.members.Start:info.members.End],
		Inner:    c.notes.inner[info.inner.Start:info.inner.End],
		Kind:     kind,
		Line:     line,
		Off:      off + int64(v.Start),
		Text:     text[v.Start:v.End],
		Size:     int64(v.End - v.Start),
		Info:     info,
		EndsLine: v.End == info.length && hasNewline,
	}
	return l.emit(&l.unit)
}

// settle sets the start of the next load: the first position that growth could change.
func (l *loader) settle(p Position) {
	if !l.settled {
		l.settled = true
		l.resume = p
	}
}

// settleOpenLine settles a load at its last line, which has no newline and is not a loose line. The next
// load continues behind a value on it, else at its beginning.
func (l *loader) settleOpenLine(c *chunk, lines, end int64) {
	start := c.off + int64(bytes.LastIndexByte(c.buf, '\n')+1)
	if c.hasValueAt(start) {
		l.settle(Position{
			Off:     end,
			Lines:   lines,
			MidLine: true,
			work:    l.work,
		})
		return
	}
	l.settle(Position{
		Off:   start,
		Lines: lines,
		work:  l.work,
	})
}

// hasValueAt reports whether the chunk's last line begins at an offset of the file and is a value.
func (c *chunk) hasValueAt(start int64) bool {
	n := len(c.lines)
	if n == 0 {
		return false
	}
	last := c.lines[n-1]
	if c.off+int64(last.start) != start {
		return false
	}
	return last.class == lineObject || last.class == lineOther
}

// probeChunk is the size of the first read for a header. Header lines are short, and a list reads
// this much of each of thousands of sessions.
const probeChunk = 4 << 10

// windowSize bounds the end of a file that is read at once: the compared bytes and a client's next
// few lines. The loader reads more growth in chunks.
const windowSize = 32 << 10

// Window is an open file with one part that has already been read.
type Window struct {
	obj  io.ReaderAt
	off  int64 // of text in the file
	text []byte
}

// NewWindow returns a window on a file. It reads from offset off to end, unless that is more than windowSize: then the
// window has nothing read.
func NewWindow(obj io.ReaderAt, off, end int64) (*Window, error) {
	w := &Window{obj: obj, off: off}
	if end-off <= windowSize {
		w.text = make([]byte, end-off)
	}
	return w, storage.ReadFull(obj, w.text, off)
}

// ReadAt implements io.ReaderAt.
func (w *Window) ReadAt(p []byte, off int64) (int, error) {
	at := off - w.off
	isRead := at >= 0 && at+int64(len(p)) <= int64(len(w.text))
	if !isRead {
		return w.obj.ReadAt(p, off)
	}
	return copy(p, w.text[at:]), nil
}
