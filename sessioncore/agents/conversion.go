package agents

import (
	"context"
	"hash/maphash"
	"io"
	"slices"
	"sync"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

const (
	// checked is the number of known bytes before a file's growth that must be unchanged.
	checked = 4 << 10
	// chunk is the size of a write of converted text: all of it, if it stays in memory.
	chunk = inMemory
	// lineMemory is about the converter's memory for a line of the file.
	lineMemory = 256
	// maxProblems bounds the lines for problems before the first record.
	maxProblems = 64 << 10
)

var seed = maphash.MakeSeed()

// outBuffers recycles buffers of converted text. The collector takes those that are idle.
var outBuffers = sync.Pool{New: func() any { return new([]byte) }}

// conversion is the converted part of a file.
type conversion struct {
	about     About
	converter *Builder       // nil if it was evicted; then growth restarts the conversion
	at        jsonl.Position // in the file
	raw       storage.Token  // the converted state
	own       storage.Token  // raw without joined files, see ownState
	check     uint64         // hash of the bytes before at
	texts     *budget.Room   // of text
	text      text
	problems  []byte // lines for values before the first record that are no records
	rewrites  uint64 // counts changes of lines that were readable
}

// ownState returns the state of a session's own file. whole is the state of obj, where others may be joined to it.
func ownState(obj storage.Object, whole storage.Token) storage.Token {
	own := whole
	joined, isJoined := obj.(storage.JoinedObject)
	if isJoined {
		own.Size -= joined.Joined()
	}
	return own
}

// spread turns small numbers into ones that differ in all their bits: 2^64 divided by the golden ratio.
const spread = 0x9E3779B97F4A7C15

// token returns the state of the converted session. It remains the same object while it only grows.
func (c *conversion) token() storage.Token {
	t := c.raw
	t.Inode ^= c.rewrites * spread
	t.Size = c.text.size()
	return t
}

// toConvert returns how many bytes of a file in the state st are not converted: all if it does not begin with the
// converted part. c may be nil.
func (c *conversion) toConvert(st storage.Stat) int64 {
	if c == nil || c.converter == nil {
		return st.Size
	}
	if !c.raw.SameObject(st.Token) || st.Size < c.at.Off {
		return st.Size
	}
	return st.Size - c.at.Off
}

// extend converts the growth of a file to the state to. ok is false if the file has changed otherwise, and then c is
// as before. After an error c is useless, and must be dropped.
func (c *conversion) extend(ctx context.Context, obj storage.Object, to storage.Token) (ok bool, err error) {
	if c.converter == nil || to.Size < c.at.Off || c.at.Guessed {
		return false, nil
	}
	sum, err := sumBefore(obj, c.at.Off)
	if err != nil || sum != c.check {
		return false, err
	}
	if c.at.MidLine {
		next, isLine, err := lineEnd(obj, c.at)
		if err != nil || !isLine {
			return false, err
		}
		c.at = next
	}
	before := c.text
	before.tail.Retain()
	defer before.tail.Close()
	err = c.convert(ctx, obj, to)
	if err != nil {
		return false, err
	}
	if !c.text.continues(&before) {
		c.rewrites++
	}
	return true, nil
}

// lineEnd returns the position behind the newline at a position in a file. isLine is false if another byte is there: then
// the value before it is not alone on its line.
func lineEnd(obj io.ReaderAt, at jsonl.Position) (next jsonl.Position, isLine bool, err error) {
	var end [1]byte
	err = storage.ReadFull(obj, end[:], at.Off)
	if err != nil || end[0] != '\n' {
		return at, false, err
	}
	return jsonl.Position{Off: at.Off + 1, Lines: at.Lines + 1}, true, nil
}

// convert converts the file from c.at to its end in the state to. After an error c is useless.
func (c *conversion) convert(ctx context.Context, obj storage.Object, to storage.Token) error {
	buffer := outBuffers.Get().(*[]byte)
	const room = chunk + chunk/8 // text is written when it reaches a chunk, and so is a little longer
	length := max(0, min(to.Size-c.at.Off, room))
	run := &conversionRun{
		c:        c,
		obj:      obj,
		out:      slices.Grow((*buffer)[:0], int(length)),
		problems: newProblemLines(slices.Clone(c.problems)),
	}
	defer func() {
		if cap(run.out) <= 2*chunk { // one of a long record is not kept
			*buffer = run.out
			outBuffers.Put(buffer)
		}
	}()
	at, err := run.load(ctx, to.Size)
	if err != nil {
		return err
	}
	err = run.write()
	if err != nil {
		return err
	}
	c.at = at
	c.raw = to
	c.own = ownState(obj, to)
	isWritten := run.problems.written >= at.Off // the line of a value that may still become a record
	c.at.Guessed = at.Guessed || isWritten
	err = c.writeTail(run.problems.open())
	if err != nil {
		return err
	}
	c.check, err = sumBefore(obj, at.Off)
	return err
}

// load converts the values from c.at up to size, and returns their end.
func (r *conversionRun) load(ctx context.Context, size int64) (jsonl.Position, error) {
	at, err := r.c.load(ctx, r.obj, size, r.add)
	if err != nil {
		return at, err
	}
	r.problems.settle(at.Off)
	r.c.problems = r.problems.settled()
	if r.hasHeader() {
		r.out = append(r.out, r.c.problems...)
		r.c.problems = nil
	}
	return at, nil
}

// convertOnce converts a file of size bytes from its start, and returns its text in the memory of dst or more. c then
// has no text, and only its converter is of use.
func (c *conversion) convertOnce(ctx context.Context, obj storage.Object, size int64, dst []byte) ([]byte, error) {
	run := &conversionRun{
		c:        c,
		obj:      obj,
		out:      dst[:0],
		problems: newProblemLines(nil),
		isOnce:   true,
	}
	_, err := run.load(ctx, size)
	if err != nil {
		return nil, err
	}
	c.text.stable = int64(len(run.out))
	return c.appendTail(run.out, run.problems.open()), nil
}

// conversionRun converts the values of a part of a file.
type conversionRun struct {
	c        *conversion
	obj      storage.Object
	out      []byte // the converted text that is not written yet
	problems problemLines
	isOnce   bool // all of the text remains in out
}

// problemLines are lines for values that are no records. They wait for the next record, as the last value of the file
// may still become one when the file grows, and as a session begins with its header.
type problemLines struct {
	text     []byte
	complete int   // the bytes of text for values that cannot become records
	last     int64 // the offset in the file of the last value in text, or -1
	written  int64 // the same of the last value that is in the session's text, or -1
}

// newProblemLines returns problem lines with the text of values that cannot become records.
func newProblemLines(text []byte) problemLines {
	return problemLines{
		text:     text,
		complete: len(text),
		last:     -1,
		written:  -1,
	}
}

// add adds a line for a value. A value behind it shows that those before cannot become records. Beyond maxProblems
// lines are left out.
func (p *problemLines) add(u *jsonl.Unit, why string) {
	p.complete = len(p.text)
	if p.complete < maxProblems {
		p.text = appendProblem(p.text, u, why)
		p.last = u.Off
	}
}

// flush appends all lines to out, and forgets them.
func (p *problemLines) flush(out []byte) []byte {
	if len(p.text) == 0 {
		return out
	}
	out = append(out, p.text...)
	p.text = p.text[:0]
	p.complete = 0
	p.written = p.last
	return out
}

// settle notes the end of the converted part of the file: only a value behind it may still become a record.
func (p *problemLines) settle(end int64) {
	if p.last < end {
		p.complete = len(p.text)
	}
}

// settled returns the lines for values that cannot become records.
func (p *problemLines) settled() []byte { return p.text[:p.complete] }

// open returns the line for a value that may still become a record, or nothing.
func (p *problemLines) open() []byte { return p.text[p.complete:] }

// hasHeader reports whether the header of the session is converted.
func (r *conversionRun) hasHeader() bool { return r.c.text.stable+int64(len(r.out)) > 0 }

// write moves the converted text to the stable part of the session's text.
func (r *conversionRun) write() error {
	_, err := r.c.text.begin.Write(r.out)
	r.c.text.stable += int64(len(r.out))
	r.out = r.out[:0]
	return err
}

// add converts a value. It sets the line of u to the one in the agent's own file.
func (r *conversionRun) add(u *jsonl.Unit) error {
	shared, isShared := r.obj.(*partObject)
	if isShared {
		u.Line = shared.lineOf(u.Line)
	}
	if r.hasHeader() {
		r.out = r.problems.flush(r.out)
	}
	if u.Kind == jsonl.ObjectUnit {
		r.out = r.c.converter.AddUnit(r.out, u)
		if u.Trailing > 0 && r.hasHeader() {
			trailing := &jsonl.Unit{Line: u.Line, Size: u.Trailing}
			r.out = appendProblem(r.out, trailing, jsonl.ReasonTrailing)
		}
	} else {
		r.addProblem(u)
	}
	if len(r.out) < chunk || r.isOnce {
		return nil
	}
	return r.write()
}

// addProblem adds the line for a value that is no record. A record that is too long is converted
// without its long texts, if that is possible.
func (r *conversionRun) addProblem(u *jsonl.Unit) {
	why := u.Reason
	text := []byte(nil)
	if why == jsonl.ReasonTooLong {
		why = reasonTooLong
		text = shortened(r.obj, u)
		if text != nil {
			why = reasonShortened
		}
	}
	r.problems.add(u, why)
	if text != nil {
		r.out = r.c.converter.Add(r.out, text, u.Line)
	}
}

// writeTail replaces the tail of the session's text: the answer that is open at the end of the file, with problems
// behind it.
func (c *conversion) writeTail(problems []byte) error {
	tail := c.appendTail(nil, problems)
	c.text.tail.Close() // readers keep the tails of their versions
	c.text.tail = nil
	c.text.end = int64(len(tail))
	if len(tail) == 0 {
		return nil
	}
	c.text.tail = c.texts.New()
	_, err := c.text.tail.Write(tail)
	return err
}

// appendTail appends the answer that is open at the end of the file, and the lines behind it, with
// problems among them.
func (c *conversion) appendTail(dst, problems []byte) []byte {
	dst = c.converter.Tail(dst)
	if c.text.stable > 0 { // else no header is before them
		dst = append(dst, problems...)
	}
	return c.appendUnresumed(dst)
}

// load emits the values of a file from c.at on, and returns their end. A file of one object is emitted in parts, as
// unfold does.
func (c *conversion) load(
	ctx context.Context, obj storage.Object, size int64, emit func(*jsonl.Unit) error,
) (jsonl.Position, error) {
	b := c.converter
	records := b.records()
	mayBeDocument := b.List != "" && c.at.Off == 0
	if !mayBeDocument || !beginsAsDocument(obj, size) {
		return records.Load(ctx, obj, c.at, size, emit)
	}
	isOne, err := unfold(obj, size, b.List, emit)
	if !isOne && err == nil {
		_, err = records.Load(ctx, obj, c.at, size, emit)
	}
	return jsonl.Position{Off: size, Guessed: true}, err // the client writes all of it anew
}

// beginsAsDocument reports whether a file of size bytes begins as one object does that stands on several lines.
func beginsAsDocument(obj storage.Object, size int64) bool {
	var begin [len("{ \r\n")]byte
	length := min(size, int64(len(begin)))
	n, _ := obj.ReadAt(begin[:length], 0)
	return isDocument(begin[:n])
}

// appendUnresumed appends the line for the record that makes the agent refuse to go on with the session, if there is
// one.
func (c *conversion) appendUnresumed(tail []byte) []byte {
	isEmpty := c.text.stable+int64(len(tail)) == 0 // then there is no session
	if c.converter.Unresumed == nil || isEmpty {
		return tail
	}
	problem := c.converter.Unresumed()
	if problem == nil {
		return tail
	}
	tail = rawjson.AppendQuoted(tail, problem.String())
	return append(tail, '\n')
}

// records describes the records that the Builder takes.
func (b *Builder) records() jsonl.Records {
	records := jsonl.Records{Limit: maxLine, Inner: b.InnerKey, RawControls: b.RawControls}
	if b.Bills() {
		records.Skip = b.Chargeless
	}
	return records
}

// state returns about the converter's memory: a place for each line, the tail, and texts of records.
func (c *conversion) state() int64 {
	if c.converter == nil {
		return 0
	}
	return c.at.Lines*lineMemory + c.text.end + c.converter.held()
}

// OneLine returns the text of a value without line breaks between its parts.
func OneLine(u *jsonl.Unit) []byte {
	if !u.Loose {
		return u.Text
	}
	return oneLine(u.Text)
}

// appendProblem appends a line that is no entry, so that problems.jsonl lists a value that was left
// out.
func appendProblem(dst []byte, u *jsonl.Unit, why string) []byte {
	if why == "" {
		why = jsonl.ReasonNoObject
	}
	problem := jsonl.LineProblem{
		Line: u.Line,
		Size: u.Size,
		Why:  why,
	}
	dst = rawjson.AppendQuoted(dst, problem.String())
	return append(dst, '\n')
}

// sumBefore returns a hash of the bytes before an offset, at most so many as checked says. It holds for this process.
func sumBefore(obj io.ReaderAt, off int64) (uint64, error) {
	length := min(off, checked)
	text := make([]byte, length)
	err := storage.ReadFull(obj, text, off-length)
	return maphash.Bytes(seed, text), err
}
