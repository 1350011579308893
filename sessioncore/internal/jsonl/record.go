package jsonl

import "sessionfs/sessioncore/internal/rawjson"

// notes holds the members of the records of a chunk. They refer to its buffer.
type notes struct {
	key            string // the member whose members are noted in inner, in quotes
	members, inner []rawjson.Member
}

// empty returns notes without members, in the same memory.
func (n notes) empty() notes { return notes{members: n.members[:0], inner: n.inner[:0]} }

// scanLine validates the value at text[start] and sets out, or, for a record, n.
func scanLine(s *rawjson.Scanner, text []byte, start int, n *notes, out *LineInfo) (int, rawjson.Status) {
	switch {
	case n == nil:
		return scanText(s, text, start, out)
	case text[start] != '{':
		return s.SkipValue(text, start)
	}
	return n.scan(s, text, start, out)
}

// scan validates the object at text[start] and notes its members.
func (n *notes) scan(s *rawjson.Scanner, text []byte, start int, out *LineInfo) (int, rawjson.Status) {
	from := len(n.members)
	end, st := s.ScanMembers(text, start, func(key []byte, i int) (end int, st rawjson.Status) {
		switch {
		case string(key) != n.key:
			end, st = s.SkipValue(text, i)
		case text[i] != '{':
			out.inner = part{} // of a repeated member the last one counts
			end, st = s.SkipValue(text, i)
		default:
			end, st = n.scanInner(s, text, i, out)
		}
		if st == rawjson.OK {
			n.members = append(n.members, rawjson.Member{Key: key, Value: text[i:end]})
		}
		return end, st
	})
	out.members = part{uint32(from), uint32(len(n.members))}
	return end, st
}

// scanInner is scan for the member whose members are noted too.
func (n *notes) scanInner(s *rawjson.Scanner, text []byte, start int, out *LineInfo) (int, rawjson.Status) {
	from := len(n.inner)
	end, st := s.ScanMembers(text, start, func(key []byte, i int) (int, rawjson.Status) {
		end, st := s.SkipValue(text, i)
		if st == rawjson.OK {
			n.inner = append(n.inner, rawjson.Member{Key: key, Value: text[i:end]})
		}
		return end, st
	})
	out.inner = part{uint32(from), uint32(len(n.inner))}
	return end, st
}
