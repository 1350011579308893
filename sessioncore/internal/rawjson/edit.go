package rawjson

import (
	"cmp"
	"encoding/base64"
	"slices"
	"unicode/utf8"
)

// TextEdit replaces text[start:end] by Text, or by a blob's content if Blob is not nil.
type TextEdit struct {
	Start, End int
	Text       string
	Blob       *Blob
}

// Edits is a set of edits of one text. An edit that lies within another has no effect.
type Edits []TextEdit

// InOrder sorts the edits, removes those within another, and returns the result. It modifies l.
func (l Edits) InOrder() Edits {
	slices.SortStableFunc(l, func(left, right TextEdit) int {
		if left.Start != right.Start {
			return cmp.Compare(left.Start, right.Start)
		}
		return cmp.Compare(right.End, left.End) // the longer one, which has the other in it
	})
	end := 0 // of the edits so far
	return slices.DeleteFunc(l, func(e TextEdit) bool {
		isInside := e.Start < end
		end = max(end, e.End)
		return isInside
	})
}

// Apply returns the edited text. The edits must not have blobs.
func (l Edits) Apply(text []byte) []byte { return l.AppendTo(nil, text) }

// AppendTo is Apply that appends the edited text to dst.
func (l Edits) AppendTo(dst, text []byte) []byte {
	size := len(text)
	for _, e := range l {
		size += len(e.Text)
	}
	dst = slices.Grow(dst, size)
	at := 0
	for _, e := range l.InOrder() {
		dst = append(dst, text[at:e.Start]...)
		dst = append(dst, e.Text...)
		at = e.End
	}
	return append(dst, text[at:]...)
}

// Object appends the edits that remove the members of an object that drop reports, and add members
// after the last one. add is JSON without a leading comma, "" for none. base is the object's offset in
// the edited text. A removed member goes with the comma before it, and the members before the first kept one with the
// comma behind them:
//
//	{"a":1,"b":2,"c":3}    without a: {"b":2,"c":3}    without b: {"a":1,"c":3}
func (l Edits) Object(object Value, base int, add string, drop func(Member) bool) Edits {
	hasKept := false
	end := 1        // of the members so far; behind the brace of an object without any
	firstDrop := -1 // start of dropped members with no kept member before them
	for m := range object.EachMember {
		switch {
		case !drop(m):
			if firstDrop >= 0 {
				l = append(l, TextEdit{Start: base + firstDrop, End: base + m.start})
				firstDrop = -1
			}
			hasKept = true
		case hasKept:
			l = append(l, TextEdit{Start: base + end, End: base + m.End})
		case firstDrop < 0:
			firstDrop = m.start
		}
		end = m.End
	}
	if firstDrop >= 0 { // no member is kept
		l = append(l, TextEdit{Start: base + firstDrop, End: base + end})
	}
	if add == "" {
		return l
	}
	if hasKept {
		add = "," + add
	}
	return append(l, TextEdit{Start: base + end, End: base + end, Text: add})
}

// Blob is the content of a blob, encoded as base64 or unchanged.
type Blob struct {
	Hash   string
	Base64 bool
	Bytes  int64 // size of the blob, not encoded
}

// Size returns the size of the content in the text, in bytes.
func (b *Blob) Size() int64 {
	if b.Base64 {
		return int64(base64.StdEncoding.EncodedLen(int(b.Bytes)))
	}
	return b.Bytes
}

// AppendListed appends an element to a comma-separated list of JSON texts. Bytes of it that are not UTF-8 become U+FFFD.
func AppendListed(list []byte, text string) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	if !utf8.ValidString(text) {
		return AppendUTF8(list, []byte(text))
	}
	return append(list, text...)
}

// Field is a member of an object with its value as JSON, "" to remove it.
type Field struct{ Key, JSON string }

// SetMembers returns an object with members set, removed, or appended. Of repeated ones it sets the
// last.
func SetMembers(object Value, fields []Field) []byte {
	var members []Member
	for m := range object.EachMember {
		members = append(members, m)
	}
	return AppendMembers(nil, object, members, fields)
}

// AppendMembers is SetMembers for an object with known members. It appends the changed object to dst.
func AppendMembers(dst []byte, object Value, members []Member, fields []Field) []byte {
	last := make([]TextEdit, len(fields)) // of the last member of each field; End is 0 for none
	for _, m := range members {
		for i := range fields {
			if m.KeyIs(fields[i].Key) {
				last[i] = TextEdit{
					Start: m.End - len(m.Value),
					End:   m.End,
					Text:  fields[i].JSON,
				}
			}
		}
	}
	var edits Edits
	var add []byte
	isRemoved := false
	for i, f := range fields {
		switch {
		case f.JSON == "":
			isRemoved = isRemoved || last[i].End > 0
		case last[i].End > 0:
			edits = append(edits, last[i])
		default:
			member := Quote(f.Key) + ":" + f.JSON
			add = AppendListed(add, member)
		}
	}
	switch {
	case isRemoved:
		drop := func(m Member) bool {
			return slices.ContainsFunc(fields, func(f Field) bool {
				return f.JSON == "" && m.KeyIs(f.Key)
			})
		}
		edits = edits.Object(object, 0, string(add), drop)
	case len(add) > 0:
		edits = append(edits, behindMembers(members, string(add)))
	}
	return edits.AppendTo(dst, object)
}

// behindMembers returns the edit that adds members, without a leading comma, behind the last one of an object.
func behindMembers(members []Member, add string) TextEdit {
	if len(members) == 0 {
		return TextEdit{Start: 1, End: 1, Text: add}
	}
	end := members[len(members)-1].End
	return TextEdit{Start: end, End: end, Text: "," + add}
}
