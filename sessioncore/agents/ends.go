package agents

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

const (
	// HeadSize and tailSize bound a list's reads at both ends of a file. With 4 KiB to find
	// Claude Code's forks, that makes 64 KiB.
	HeadSize, tailSize = 28 << 10, 32 << 10
	// ShortSize is the size of the largest file that a list reads completely.
	ShortSize = HeadSize + tailSize
	// packedSize bounds the read of a compressed file. Reading its end requires unpacking all of it.
	packedSize = 64 << 10
	// maxHead bounds the search for a first prompt beyond the beginning.
	maxHead = 4 << 20
	// stepSize is the size of a read of that search.
	stepSize = 256 << 10
	// maxNested bounds the depth of values in a line that is cut.
	maxNested = 64
)

// HasAny reports whether a line has one of several texts.
func HasAny(line []byte, texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return bytes.Contains(line, []byte(text))
	})
}

// Word is a text to look for in many lines. It is found by one of its bytes that is rare in them, which
// takes a tenth of the time of bytes.Contains.
type Word struct {
	text string
	rare int // offset of the rare byte
}

// NewWord returns the Word of a text with a rare byte in it.
func NewWord(text string, rare byte) Word {
	return Word{text: text, rare: strings.IndexByte(text, rare)}
}

// IsIn reports whether a line has the word.
func (w Word) IsIn(line []byte) bool {
	from := w.rare // the first place where the rare byte of a word can be
	for from < len(line) {
		distance := bytes.IndexByte(line[from:], w.text[w.rare])
		if distance < 0 {
			return false
		}
		rareAt := from + distance
		begin := rareAt - w.rare
		if bytes.HasPrefix(line[begin:], []byte(w.text)) {
			return true
		}
		from = rareAt + 1
	}
	return false
}

// head is an open file with a cached beginning, for the several reads of a list.
type head struct {
	storage.Object
	text    []byte
	first   int64         // size of the beginning; the rest of text was read on
	packed  bool          // more than text requires unpacking all of it
	members rawjson.Value // of a file that is one object: those at both ends, or nil
	records jsonl.Records // how they are read
	end     []byte        // memory for the end, or nil
}

// newHead returns a file of size bytes, and has read its beginning.
func newHead(obj storage.Object, size int64) (*head, error) {
	h := &head{Object: obj, packed: storage.IsPacked(obj)}
	h.first, _ = h.endSizes(size)
	h.text = make([]byte, h.first)
	return h, storage.ReadFull(obj, h.text, 0)
}

// newHeadIn is newHead with memory for both ends of a file, which must be kept until the head and its
// values are not used any more. A compressed file has its own memory.
func newHeadIn(obj storage.Object, size int64, memory *[ShortSize]byte) (*head, error) {
	if storage.IsPacked(obj) {
		return newHead(obj, size)
	}
	h := &head{Object: obj}
	first, last := h.endSizes(size)
	h.first = first
	h.text = memory[:first:first]
	h.end = memory[first : first+last]
	return h, storage.ReadFull(obj, h.text, 0)
}

// endSizes returns the sizes of the reads at both ends of a file of size bytes. last is 0 if the first read has all, or
// if the file is compressed.
func (h *head) endSizes(size int64) (first, last int64) {
	switch {
	case h.packed:
		return min(size, packedSize), 0
	case size <= ShortSize:
		return size, 0
	}
	return HeadSize, tailSize
}

// tail reads the end of a file of size bytes, nothing where newHead read all. It may be in the memory of newHeadIn.
func (h *head) tail(size int64) ([]byte, error) {
	_, last := h.endSizes(size)
	tail := h.end
	if int64(len(tail)) != last {
		tail = make([]byte, last)
	}
	return tail, storage.ReadFull(h.Object, tail, size-last)
}

// ReadAt implements storage.Object. It reads the cached beginning from memory.
func (h *head) ReadAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	isCached := off >= 0 && end <= int64(len(h.text))
	if isCached {
		return copy(p, h.text[off:]), nil
	}
	return h.Object.ReadAt(p, off)
}

// lines returns the size of the complete lines in the beginning of a file of size bytes: 0 if the first line is longer.
func (h *head) lines(size int64) int64 {
	if h.first == size { // the last line may lack its newline
		return size
	}
	lastBreak := bytes.LastIndexByte(h.text[:h.first], '\n')
	return int64(lastBreak + 1)
}

// Ends calls f for the objects in complete lines in the first 28 and last 32 KiB of a file. It
// skips lines that want refuses. For a file that is one object, f gets the members.
func Ends(obj storage.Object, size int64, want func(line []byte) bool, f func(v rawjson.Value, isHead bool)) error {
	h, err := headOf(obj, size)
	if err != nil {
		return err
	}
	if isDocument(h.text) {
		v, err := h.document(size)
		f(v, true)
		return err
	}
	tail, err := h.tail(size)
	if err != nil {
		return err
	}
	firstLines := h.text[:h.lines(size)]
	h.eachObject(firstLines, want, func(v rawjson.Value) {
		f(v, true)
	})
	cutLine := bytes.IndexByte(tail, '\n') + 1
	lastLines := tail[cutLine:]
	h.eachObject(lastLines, want, func(v rawjson.Value) {
		f(v, false)
	})
	return nil
}

// Head calls f for the objects in complete lines at the beginning of a file. It skips lines that want refuses.
func Head(obj storage.Object, size int64, want func(line []byte) bool, f func(v rawjson.Value)) error {
	h, err := headOf(obj, size)
	if err == nil {
		h.eachObject(h.text[:h.lines(size)], want, f)
	}
	return err
}

// headOf returns the beginning of a file, which may be cached.
func headOf(obj storage.Object, size int64) (*head, error) {
	if h, ok := obj.(*head); ok {
		return h, nil
	}
	return newHead(obj, size)
}

// Beyond calls f for the objects in the lines after the lines of Head, up to 4 MiB, until f returns
// false. It skips lines that want refuses, and compressed files.
func Beyond(obj storage.Object, size int64, want func(line []byte) bool, f func(v rawjson.Value) (more bool)) error {
	h, err := headOf(obj, size)
	if err != nil || h.packed {
		return err
	}
	if isDocument(h.text) {
		return nil
	}
	at := h.lines(size)
	last := min(size, maxHead)
	more := true
	wanted := func(line []byte) bool { return more && want(line) }
	for more && int64(len(h.text)) < last {
		err := h.readOn(last)
		if err != nil {
			return err
		}
		complete := int64(bytes.LastIndexByte(h.text, '\n') + 1)
		if int64(len(h.text)) == size { // the last line may lack its newline
			complete = size
		}
		if complete <= at {
			continue // a line is longer than a step
		}
		h.eachObject(h.text[at:complete], wanted, func(v rawjson.Value) {
			more = f(v)
		})
		at = complete
	}
	return nil
}

// readOn reads a step behind the text read so far, but not beyond an offset.
func (h *head) readOn(last int64) error {
	off := int64(len(h.text))
	next := make([]byte, min(stepSize, last-off))
	err := storage.ReadFull(h.Object, next, off)
	if err != nil {
		return err
	}
	h.text = append(h.text, next...)
	return nil
}

// eachObject calls f for the objects in lines that want accepts. The first line that is no object, of an agent that
// writes control characters as they are, and all behind it are read by eachMended.
func (h *head) eachObject(lines []byte, want func(line []byte) bool, f func(v rawjson.Value)) {
	end := 0 // of the line
	for line := range bytes.Lines(lines) {
		begin := end
		end += len(line)
		if !want(line) {
			continue
		}
		v := ObjectIn(line)
		if v != nil {
			f(v)
			continue
		}
		if h.records.RawControls {
			h.eachMended(lines[begin:], want, f)
			return
		}
	}
}

// eachMended is eachObject for lines with objects that have control characters in their texts.
func (h *head) eachMended(lines []byte, want func(line []byte) bool, f func(v rawjson.Value)) {
	emit := func(u *jsonl.Unit) error {
		if u.Kind == jsonl.ObjectUnit && want(u.Text) {
			f(u.Text)
		}
		return nil
	}
	size := int64(len(lines))
	_ = h.records.LoadFirst(context.Background(), bytes.NewReader(lines), size, emit)
}

// completeMembers returns an object with the complete members at the beginning of a line, or nil. A
// value that is nested deeper than maxNested ends the line. So {"a":1,"b":[2,{"c":"x becomes {"a":1,"b":[2,{}]}.
func completeMembers(line []byte) rawjson.Value {
	var closing []byte      // the brackets that close the open values, the innermost last
	var closingAtEnd []byte // the same at end
	end := 0                // behind the last complete value, or bracket that opens one
	complete := 0           // the same at the byte that is looked at
	inText := false
	for i := 0; i < len(line) && line[i] != '\n'; i++ {
		c := line[i]
		opens := !inText && (c == '{' || c == '[')
		if opens && len(closing) == maxNested {
			break
		}
		switch {
		case inText && c == '\\':
			i++ // the next byte is escaped
		case c == '"':
			inText = !inText
		case inText:
		case opens:
			closing = append(closing, c+2) // in ASCII, } and ] are two behind { and [
			complete = i + 1
		case len(closing) == 0: // no object begins the line
			return nil
		case c == '}', c == ']':
			closing = closing[:len(closing)-1]
			complete = i + 1
		case c == ',':
			complete = i
		}
		if complete > end {
			end = complete
			closingAtEnd = append(closingAtEnd[:0], closing...)
		}
	}
	object := append(rawjson.Value{}, line[:end]...)
	for _, bracket := range slices.Backward(closingAtEnd) {
		object = append(object, bracket)
	}
	return ObjectIn(object)
}

// convert converts the beginning of a file of size bytes for a list, until it is enough: its complete lines, and more
// only for a header. A file with a longer first line has a header of the facts known about it. out is empty for a file
// that is no session.
func (h *head) convert(format Format, about About, size int64, isEnough func(out []byte) bool) (out []byte, err error) {
	if isDocument(h.text) {
		return h.convertDocument(format.Converter(about, h), size)
	}
	limits := []int64{h.lines(size)}
	if !h.packed {
		limits = append(limits, min(size, maxHead))
	}
	var c *Builder
	for _, limit := range limits {
		c = format.Converter(about, h)
		out, err = h.convertLines(c, limit, isEnough)
		if err == nil && limit == size && !isEnough(out) {
			out = c.Tail(out)
		}
		if err != nil || len(out) > 0 {
			return out, err
		}
	}
	first := completeMembers(h.text[:h.first])
	if len(first) > 0 {
		out = c.Add(nil, first, 1)
	}
	if len(out) == 0 && size > maxHead { // it may be a session, and only listed ones are found
		out = (&Header{}).AppendTo(nil, &about)
	}
	return out, nil
}

// convertDocument converts the members at both ends of a file of one object.
func (h *head) convertDocument(c *Builder, size int64) (out []byte, err error) {
	v, err := h.document(size)
	out = c.Add(nil, v, 1)
	if len(out) == 0 { // without a directory the header waits
		out = c.Tail(nil)
	}
	return out, err
}

// convertLines converts the first limit bytes of a file, or fewer if that is enough.
func (h *head) convertLines(c *Builder, limit int64, isEnough func(out []byte) bool) (out []byte, err error) {
	emit := func(u *jsonl.Unit) error {
		if u.Kind == jsonl.ObjectUnit {
			out = c.AddUnit(out, u)
		}
		if isEnough(out) {
			return jsonl.ErrStop
		}
		return nil
	}
	err = c.records().LoadFirst(context.Background(), h, limit, emit)
	return out, err
}
