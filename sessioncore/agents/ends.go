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
		if bytes.HasPrefix(line[rareAt-w.rare:], []byte(w.text)) {
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

// newHead reads the beginning of a file of size bytes.
func newHead(obj storage.Object, size int64) (*head, error) {
	h := &head{Object: obj, packed: storage.IsPacked(obj)}
	h.first, _ = h.parts(size)
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
	first, last := h.parts(size)
	h.first = first
	h.text = memory[:first:first]
	h.end = memory[first : first+last]
	return h, storage.ReadFull(obj, h.text, 0)
}

// parts returns the sizes of the reads at both ends of a file.
func (h *head) parts(size int64) (first, last int64) {
	switch {
	case h.packed:
		return min(size, packedSize), 0
	case size <= ShortSize:
		return size, 0
	}
	return HeadSize, tailSize
}

// tail reads the end of a file.
func (h *head) tail(size int64) ([]byte, error) {
	_, last := h.parts(size)
	tail := h.end
	if int64(len(tail)) != last {
		tail = make([]byte, last)
	}
	return tail, storage.ReadFull(h.Object, tail, size-last)
}

// ReadAt implements storage.Object.
func (h *head) ReadAt(p []byte, off int64) (int, error) {
	if off >= 0 && off+int64(len(p)) <= int64(len(h.text)) {
		return copy(p, h.text[off:]), nil
	}
	return h.Object.ReadAt(p, off)
}

// lines returns the size of the complete lines in the beginning of a file.
func (h *head) lines(size int64) int64 {
	if h.first == size {
		return size
	}
	return int64(bytes.LastIndexByte(h.text[:h.first], '\n') + 1)
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
	h.eachObject(h.text[:h.lines(size)], want, func(v rawjson.Value) {
		f(v, true)
	})
	h.eachObject(tail[bytes.IndexByte(tail, '\n')+1:], want, func(v rawjson.Value) {
		f(v, false)
	})
	return nil
}

// Head calls f for the objects in complete lines at the beginning of a file.
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
	for more := true; more && int64(len(h.text)) < last; {
		off := int64(len(h.text))
		next := make([]byte, min(stepSize, last-off))
		err := storage.ReadFull(h.Object, next, off)
		if err != nil {
			return err
		}
		h.text = append(h.text, next...)
		complete := int64(bytes.LastIndexByte(h.text, '\n') + 1)
		if int64(len(h.text)) == size {
			complete = size
		}
		if complete > at {
			wanted := func(line []byte) bool { return more && want(line) }
			h.eachObject(h.text[at:complete], wanted, func(v rawjson.Value) {
				more = f(v)
			})
			at = complete
		}
	}
	return nil
}

// eachObject calls f for the objects in lines.
func (h *head) eachObject(lines []byte, want func(line []byte) bool, f func(v rawjson.Value)) {
	at := 0
	for line := range bytes.Lines(lines) {
		if want(line) {
			v := ObjectIn(line)
			if v == nil && h.records.RawControls {
				h.eachMended(lines[at:], want, f)
				return
			}
			if v != nil {
				f(v)
			}
		}
		at += len(line)
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
// value that is nested deeper than maxNested ends the line.
func completeMembers(line []byte) rawjson.Value {
	var open, then []byte // brackets that close the open values: now, and after the last complete member
	end := 0
	inText := false
	for i := 0; i < len(line) && line[i] != '\n'; i++ {
		c := line[i]
		opens := !inText && (c == '{' || c == '[')
		if opens && len(open) == maxNested {
			break
		}
		switch {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case opens:
			open = append(open, c+2) // the bracket that closes it
			end = i + 1
			then = bytes.Clone(open)
		case len(open) == 0:
			return nil
		case c == '}', c == ']':
			open = open[:len(open)-1]
			end = i + 1
			then = bytes.Clone(open)
		case c == ',':
			end = i
			then = bytes.Clone(open)
		}
	}
	object := append(rawjson.Value{}, line[:end]...)
	for _, bracket := range slices.Backward(then) {
		object = append(object, bracket)
	}
	return ObjectIn(object)
}

// convert converts the beginning of a file for a list, until it is enough: its complete lines, and more
// only for a header. A file with a longer first line has a header of the facts known about it.
func (h *head) convert(format Format, about About, size int64, isEnough func(out []byte) bool) (out []byte, err error) {
	if isDocument(h.text) {
		v, err := h.document(size)
		c := format.Converter(about, h)
		out = c.Add(nil, v, 1)
		if len(out) == 0 {
			out = c.Tail(nil)
		}
		return out, err
	}
	limits := []int64{h.lines(size)}
	if !h.packed {
		limits = append(limits, min(size, maxHead))
	}
	var c *Builder
	for _, limit := range limits {
		c = format.Converter(about, h)
		err = c.records().LoadFirst(context.Background(), h, limit, func(u *jsonl.Unit) error {
			if u.Kind == jsonl.ObjectUnit {
				out = c.AddUnit(out, u)
			}
			if isEnough(out) {
				return jsonl.ErrStop
			}
			return nil
		})
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
