package jsonl

import "sessionfs/sessioncore/internal/rawjson"

// notes holds the members of the records of a chunk. They refer to its buffer.
type notes struct {
	key            string // the member with the members for inner, in quotes
	members, inner []rawjson.Member
}

// empty returns notes without members, in the same memory.
func (n notes) empty() notes { return notes{members: n.members[:0], inner: n.inner[:0]} }

// forget removes the members, so that the memory for other ones keeps no text.
func (n notes) forget() {
	clear(n.members[:cap(n.members)])
	clear(n.inner[:cap(n.inner)])
}

// scanLine validates the value at text[start], and returns the offset after it. It sets the members of an entry in out; for
// a record (n is not nil) it adds the members to n, and sets their ranges in out.
func scanLine(s *rawjson.Scanner, text []byte, start int, n *notes, out *LineInfo) (end int, st rawjson.ScanStatus) {
	switch {
	case n == nil:
		return scanText(s, text, start, out)
	case text[start] != '{':
		return s.SkipValue(text, start)
	}
	skip := func(_ []byte, i int) (int, rawjson.ScanStatus) {
		return s.SkipValue(text, i)
	}
	scanMember := func(key []byte, i int) (end int, st rawjson.ScanStatus) {
		if string(key) != n.key {
			return s.SkipValue(text, i)
		}
		out.inner = textRange{} // of a repeated member the last one counts
		if text[i] != '{' {
			return s.SkipValue(text, i)
		}
		out.inner, end, st = scanRecord(s, text, i, &n.inner, skip)
		return end, st
	}
	out.members, end, st = scanRecord(s, text, start, &n.members, scanMember)
	return end, st
}

// scanRecord validates the object at text[start], and appends its members to list. scan scans the
// value of a member. members is their range in list.
func scanRecord(
	s *rawjson.Scanner, text []byte, start int, list *[]rawjson.Member, scan func(key []byte, i int) (int, rawjson.ScanStatus),
) (members textRange, end int, st rawjson.ScanStatus) {
	from := len(*list)
	end, st = s.ScanMembers(text, start, func(key []byte, i int) (int, rawjson.ScanStatus) {
		end, st := scan(key, i)
		if st == rawjson.OK {
			*list = append(*list, rawjson.Member{Key: key, Value: text[i:end]})
		}
		return end, st
	})
	members = textRange{Start: uint32(from), End: uint32(len(*list))}
	return members, end, st
}
