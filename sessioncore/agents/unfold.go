package agents

import (
	"bytes"
	"fmt"
	"sync"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxUnfolded bounds the size of a document.
const maxUnfolded = 64 << 20

// Unfold returns an object that shows a file of one JSON object over many lines as lines: the
// object without the member list, and that list's elements, each with the number of its first line.
// Other files are shown as they are.
func Unfold(obj storage.Object, list string) storage.Object {
	return &unfolded{Object: obj, list: list}
}

// unfolded is a file that is rewritten completely at each change.
type unfolded struct {
	storage.Object
	list string

	mu   sync.Mutex    // guards the fields below
	of   storage.Token // the state of text's file
	text []byte
}

// read returns the state of the file and the lines made of it.
func (d *unfolded) read() (st storage.Stat, text []byte, err error) {
	if st, err = d.Object.Stat(); err != nil {
		return st, nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text != nil && d.of == st.Token {
		return st, d.text, nil
	}
	if st.Size > maxUnfolded {
		const why = "the session is one JSON object of %d MiB, and may have %d"
		return st, nil, fmt.Errorf(why, st.Size>>20, maxUnfolded>>20)
	}
	text = make([]byte, st.Size)
	if err := storage.ReadFull(d.Object, text, 0); err != nil {
		return st, nil, err
	}
	d.text, d.of = asLines(text, d.list), st.Token
	return st, d.text, nil
}

// Joined returns the difference of the size from the file's.
func (d *unfolded) Joined() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(d.text)) - d.of.Size
}

// Stat implements storage.Object.
func (d *unfolded) Stat() (storage.Stat, error) {
	st, text, err := d.read()
	st.Size = int64(len(text))
	return st, err
}

// ReadAt implements storage.Object.
func (d *unfolded) ReadAt(p []byte, off int64) (int, error) {
	_, text, err := d.read()
	if err != nil {
		return 0, err
	}
	return bytes.NewReader(text).ReadAt(p, off)
}

// asLines returns a document as lines.
func asLines(text []byte, list string) []byte {
	v := objectIn(text)
	if v == nil {
		return text
	}
	elements := v.Member(list)
	if !elements.IsArray() {
		return append(oneLine(v), '\n')
	}
	out := append(oneLine(without(v, list)), '\n')
	line, at, written := 1, 0, 1 // the line of the byte at, and the number of lines in out
	elements.EachElement(func(element rawjson.Value, _ int) bool {
		begin := element.OffsetIn(text)
		line, at = line+bytes.Count(text[at:begin], []byte{'\n'}), begin
		for ; written < line-1; written++ {
			out = append(out, '\n')
		}
		out = append(append(out, oneLine(element)...), '\n')
		written++
		return true
	})
	return out
}

// without returns an object without the members of a name.
func without(v rawjson.Value, name string) rawjson.Value {
	out := rawjson.Value{'{'}
	v.EachMember(func(m rawjson.Member) bool {
		if !m.KeyIs(name) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, m.Key...), ':'), m.Value...)
		}
		return true
	})
	return append(out, '}')
}

// oneLine returns a copy of a value without line breaks between its parts.
func oneLine(v []byte) []byte { return bytes.ReplaceAll(v, []byte{'\n'}, []byte{' '}) }

// isDocument reports whether a file begins an object over many lines.
func isDocument(text []byte) bool {
	first, _, more := bytes.Cut(text, []byte{'\n'})
	return more && string(bytes.TrimSpace(first)) == "{"
}

// document returns an object with the complete members at both ends of a file of one object: at its
// beginning, and after its last list.
func (h *head) document(size int64) (rawjson.Value, error) {
	if h.members != nil {
		return h.members, nil
	}
	tail, err := h.tail(size)
	if err != nil {
		return nil, err
	}
	begin := completeMembers(bytes.TrimSpace(oneLine(h.text[:h.first])))
	end := rawjson.Value("{}")
	if at := bytes.LastIndex(tail, []byte("\n  ],")); at >= 0 {
		end = append(rawjson.Value{'{'}, bytes.TrimSpace(oneLine(tail[at+len("\n  ],"):]))...)
	}
	switch {
	case len(begin) == 0:
		begin = rawjson.Value("{}")
	case rawjson.IsValidObject(end) && len(begin) > len("{}") && len(end) > len("{}"):
		begin = append(append(begin[:len(begin)-1], ','), end[1:]...)
	}
	h.members = begin
	return begin, nil
}
