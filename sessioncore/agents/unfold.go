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
// number of its first line. It returns false, and emits nothing, for a document that is not complete. The units are
// valid during the call of emit, whose error ends unfold.
func unfold(obj io.ReaderAt, size int64, list string, emit func(*jsonl.Unit) error) (isOne bool, err error) {
	if size > maxUnfolded {
		const why = "the session is one JSON object of %d MiB, and may have %d"
		return false, fmt.Errorf(why, size>>20, maxUnfolded>>20)
	}
	text := make([]byte, size)
	err = storage.ReadFull(obj, text, 0)
	if err != nil {
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
	if err != nil {
		return true, err
	}
	at := 0 // the byte that is in line u.Line
	for element := range v.Member(list).EachElement {
		begin := element.OffsetIn(text)
		breaks := bytes.Count(text[at:begin], []byte{'\n'})
		u.Line += int64(breaks)
		at = begin
		if !element.IsObject() {
			continue
		}
		u.Text = element
		err := emit(&u)
		if err != nil {
			return true, err
		}
	}
	return true, nil
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

// document returns an object with the complete members at both ends of a file of one object with size bytes: at its
// beginning, and after its last list. It keeps the object for the next call.
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
	const listEnd = "\n  ]," // of a list that is a member of the object, as clients indent it
	at := bytes.LastIndex(tail, []byte(listEnd))
	if at >= 0 {
		lastLines := bytes.TrimSpace(oneLine(tail[at+len(listEnd):]))
		end = append(rawjson.Value{'{'}, lastLines...)
	}
	h.members = joinObjects(begin, end)
	return h.members, nil
}

// joinObjects returns an object with the members of two, in the memory of the first one. An empty or wrong object has no
// members.
func joinObjects(first, second rawjson.Value) rawjson.Value {
	if len(first) == 0 {
		return rawjson.Value("{}")
	}
	isEmpty := len(first) <= len("{}") || len(second) <= len("{}")
	if isEmpty || !rawjson.IsValidObject(second) {
		return first
	}
	joined := append(first[:len(first)-1], ',')
	return append(joined, second[1:]...)
}
