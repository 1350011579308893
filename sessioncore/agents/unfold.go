package agents

import (
	"bytes"
	"fmt"
	"io"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxUnfolded bounds the size of a document.
const maxUnfolded = 64 << 20

// unfold emits the records of a document, a file of one JSON object over many lines that is written
// anew at each change: the object without the member list, and that list's elements, each with the
// number of its first line. It returns false for a document that is not complete.
func unfold(obj io.ReaderAt, size int64, list string, emit func(*jsonl.Unit) error) (isOne bool, err error) {
	if size > maxUnfolded {
		const why = "the session is one JSON object of %d MiB, and may have %d"
		return false, fmt.Errorf(why, size>>20, maxUnfolded>>20)
	}
	text := make([]byte, size)
	if err := storage.ReadFull(obj, text, 0); err != nil {
		return false, err
	}
	v := ObjectIn(text)
	if v == nil {
		return false, nil
	}
	u := jsonl.Unit{
		Kind:  jsonl.ObjectUnit,
		Line:  1,
		Text:  v,
		Loose: true,
	}
	if v.Member(list).IsArray() {
		u.Text = without(v, list)
	}
	err = emit(&u)
	at := 0 // the byte in u.Line
	v.Member(list).EachElement(func(element rawjson.Value, _ int) bool {
		begin := element.OffsetIn(text)
		u.Line += int64(bytes.Count(text[at:begin], []byte{'\n'}))
		at = begin
		u.Text = element
		if err == nil && element.IsObject() {
			err = emit(&u)
		}
		return err == nil
	})
	return true, err
}

// without returns an object without the members of a name.
func without(v rawjson.Value, name string) rawjson.Value {
	out := rawjson.Value{'{'}
	for m := range v.EachMember {
		if !m.KeyIs(name) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, m.Key...)
			out = append(out, ':')
			out = append(out, m.Value...)
		}
	}
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
	firstLines := bytes.TrimSpace(oneLine(h.text[:h.first]))
	begin := completeMembers(firstLines)
	end := rawjson.Value("{}")
	const listEnd = "\n  ],"
	at := bytes.LastIndex(tail, []byte(listEnd))
	if at >= 0 {
		lastLines := bytes.TrimSpace(oneLine(tail[at+len(listEnd):]))
		end = append(rawjson.Value{'{'}, lastLines...)
	}
	switch {
	case len(begin) == 0:
		begin = rawjson.Value("{}")
	case rawjson.IsValidObject(end) && len(begin) > len("{}") && len(end) > len("{}"):
		begin = append(begin[:len(begin)-1], ',')
		begin = append(begin, end[1:]...)
	}
	h.members = begin
	return begin, nil
}
