package sessioncore

import (
	"cmp"
	"slices"
)

// edit replaces text[start:end] by text, or by a blob's content where blob is set.
type edit struct {
	start, end int
	text       string
	blob       *blobPiece
}

// editList is a set of edits of one text. One that lies within another goes.
type editList []edit

// inOrder sorts the edits and leaves out those that lie within another.
func (l editList) inOrder() editList {
	slices.SortStableFunc(l, func(a, b edit) int {
		if c := cmp.Compare(a.start, b.start); c != 0 {
			return c
		}
		return cmp.Compare(b.end, a.end)
	})
	at := 0
	return slices.DeleteFunc(l, func(e edit) bool {
		inside := e.start < at
		at = max(at, e.end)
		return inside
	})
}

// apply returns the edited text; edits with blobs are not for it.
func (l editList) apply(text []byte) []byte {
	out := make([]byte, 0, len(text)+128)
	at := 0
	for _, e := range l.inOrder() {
		out = append(out, text[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, text[at:]...)
}

// editObject drops the members of an object for which drop says so and adds members (JSON text without
// the comma before it, "" for none) behind the last one. base is the object's offset in the edited
// text.
func (l editList) editObject(object value, base int, add string, drop func(member) bool) editList {
	var kept, any bool
	var keptEnd int
	open := -1 // start of dropped members that no kept one stands before
	object.eachMember(func(m member) bool {
		any = true
		switch {
		case !drop(m):
			if open >= 0 {
				l = append(l, edit{start: base + open, end: base + m.start})
				open = -1
			}
			kept, keptEnd = true, m.end
		case kept:
			l = append(l, edit{start: base + keptEnd, end: base + m.end})
			keptEnd = m.end
		case open < 0:
			open, keptEnd = m.start, m.end
		default:
			keptEnd = m.end
		}
		return true
	})
	if !any {
		keptEnd = 1
	}
	if open >= 0 {
		l = append(l, edit{start: base + open, end: base + keptEnd})
	}
	if add != "" {
		if kept {
			add = "," + add
		}
		l = append(l, edit{start: base + keptEnd, end: base + keptEnd, text: add})
	}
	return l
}
