package rawjson

import (
	"cmp"
	"encoding/base64"
	"slices"
	"unicode/utf8"
)

// Edit replaces text[start:end] by text, or by a blob's content where blob is set.
type Edit struct {
	Start, End int
	Text       string
	Blob       *Blob
}

// Edits is a set of edits of one text. One that lies within another goes.
type Edits []Edit

// InOrder sorts the edits and leaves out those that lie within another.
func (l Edits) InOrder() Edits {
	slices.SortStableFunc(l, func(a, b Edit) int {
		if c := cmp.Compare(a.Start, b.Start); c != 0 {
			return c
		}
		return cmp.Compare(b.End, a.End)
	})
	at := 0
	return slices.DeleteFunc(l, func(e Edit) bool {
		inside := e.Start < at
		at = max(at, e.End)
		return inside
	})
}

// Apply returns the edited text; edits with blobs are not for it.
func (l Edits) Apply(text []byte) []byte {
	out := make([]byte, 0, len(text)+128)
	at := 0
	for _, e := range l.InOrder() {
		out = append(out, text[at:e.Start]...)
		out = append(out, e.Text...)
		at = e.End
	}
	return append(out, text[at:]...)
}

// Object drops the members of an object for which drop says so and adds members (JSON text without
// the comma before it, "" for none) behind the last one. base is the object's offset in the edited
// text.
func (l Edits) Object(object Value, base int, add string, drop func(Member) bool) Edits {
	var kept, any bool
	var keptEnd int
	open := -1 // start of dropped members that no kept one stands before
	object.EachMember(func(m Member) bool {
		any = true
		switch {
		case !drop(m):
			if open >= 0 {
				l = append(l, Edit{Start: base + open, End: base + m.start})
				open = -1
			}
			kept, keptEnd = true, m.End
		case kept:
			l = append(l, Edit{Start: base + keptEnd, End: base + m.End})
			keptEnd = m.End
		case open < 0:
			open, keptEnd = m.start, m.End
		default:
			keptEnd = m.End
		}
		return true
	})
	if !any {
		keptEnd = 1
	}
	if open >= 0 {
		l = append(l, Edit{Start: base + open, End: base + keptEnd})
	}
	if add != "" {
		if kept {
			add = "," + add
		}
		l = append(l, Edit{Start: base + keptEnd, End: base + keptEnd, Text: add})
	}
	return l
}

// Blob is a blob's content: as base64, or as it is.
type Blob struct {
	Hash   string
	Base64 bool
	Bytes  int64 // size of the blob
}

// Size returns the size of what stands in the text, in bytes.
func (b *Blob) Size() int64 {
	if b.Base64 {
		return int64(base64.StdEncoding.EncodedLen(int(b.Bytes)))
	}
	return b.Bytes
}

// AppendListed appends an element of a list of JSON texts.
func AppendListed(list []byte, text string) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	if !utf8.ValidString(text) {
		return AppendUTF8(list, []byte(text))
	}
	return append(list, text...)
}
