package jsonl

import (
	"hash/crc32"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// part is a piece of a text, from start up to end; the zero part stands for nothing.
type part struct{ Start, End uint32 }

func (p part) Of(text []byte) rawjson.Value {
	if p.End == 0 {
		return nil
	}
	return rawjson.Value(text[p.Start:p.End])
}

// lineClass says what a line is by itself.
type lineClass uint8

const (
	lineBlank   lineClass = iota // nothing but blanks
	lineObject                   // one JSON object
	lineOther                    // one JSON value that is no object
	lineLoose                    // anything else: it may begin a value that runs on
	lineTooLong                  // longer than MaxLine: not looked at
)

// LineInfo is what one pass over a line finds. Its parts count from the value's first byte, value
// itself from the line's.
type LineInfo struct {
	start  uint32 // of the line, in its chunk
	length uint32 // without the newline
	number uint32 // lines before it in its chunk
	CRC    uint32 // CRC-32C of the value's text
	value  part
	// The members of an entry that the index needs; the last of repeated ones.
	Type, ID, Time, Message, Role, Tool part
	// Parents are parentId and parent_id: which one counts is up to the file's header, which whoever
	// classifies a line does not know.
	Parents [spellings]part
	class   lineClass
	Flags   rawjson.Flags
	// IllFormed: the value's text is not UTF-8.
	IllFormed bool
	Payload   bool // message has a key providerPayload
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func Checksum(text []byte) uint32 { return crc32.Checksum(text, castagnoli) }

// noteText notes what is to be known of the value's whole text. It is called where the text was scanned just
// now, and is still in that processor's cache.
func (l *LineInfo) noteText(text []byte) {
	l.CRC = Checksum(text)
	l.IllFormed = l.Flags&rawjson.HasHighBytes != 0 && !utf8.Valid(text)
}

// rebase makes the parts count from start on.
func (l *LineInfo) rebase(start uint32) {
	for _, p := range [...]*part{&l.Type, &l.ID, &l.Parents[CamelCase], &l.Parents[SnakeCase], &l.Time, &l.Message, &l.Role, &l.Tool} {
		if p.End != 0 {
			p.Start -= start
			p.End -= start
		}
	}
}

// classify scans one line (without its newline) and fills out.
func classify(s *rawjson.Scanner, line []byte, out *LineInfo) {
	start := rawjson.SkipSpace(line, 0)
	if start == len(line) {
		out.class = lineBlank
		return
	}
	s.Flags = 0
	end, st := scanText(s, line, start, out)
	if st != rawjson.OK || rawjson.SkipSpace(line, end) != len(line) {
		out.class = lineLoose
		return
	}
	out.value = part{uint32(start), uint32(end)}
	out.Flags = s.Flags
	out.class = lineOther
	if line[start] == '{' {
		out.class = lineObject
		out.noteText(line[start:end])
		out.rebase(uint32(start))
	}
}

// scanText validates the value at text[start] and notes an object's members. It returns where the
// value ends.
func scanText(s *rawjson.Scanner, text []byte, start int, out *LineInfo) (int, rawjson.Status) {
	if text[start] != '{' {
		return s.SkipValue(text, start)
	}
	return s.ScanMembers(text, start, func(key []byte, i int) (int, rawjson.Status) {
		if string(key) == `"message"` {
			return scanMessage(s, text, i, out)
		}
		end, st := s.SkipValue(text, i)
		v := part{uint32(i), uint32(end)}
		switch string(key) {
		case `"type"`:
			out.Type = v
		case `"id"`:
			out.ID = v
		case `"parentId"`:
			out.Parents[CamelCase] = v
		case `"parent_id"`:
			out.Parents[SnakeCase] = v
		case `"timestamp"`:
			out.Time = v
		}
		return end, st
	})
}

// scanMessage validates the value of an entry's key "message" and notes what the index needs of it.
func scanMessage(s *rawjson.Scanner, text []byte, start int, out *LineInfo) (end int, st rawjson.Status) {
	out.Role, out.Tool, out.Payload = part{}, part{}, false // of repeated keys the last counts
	if text[start] == '{' {
		end, st = s.ScanMembers(text, start, func(key []byte, i int) (int, rawjson.Status) {
			end, st := s.SkipValue(text, i)
			switch string(key) {
			case `"role"`:
				out.Role = part{uint32(i), uint32(end)}
			case `"toolName"`, `"tool_name"`:
				out.Tool = part{uint32(i), uint32(end)}
			case `"providerPayload"`:
				out.Payload = true
			}
			return end, st
		})
	} else {
		end, st = s.SkipValue(text, start)
	}
	out.Message = part{uint32(start), uint32(end)}
	return end, st
}

// Spelling is how keys of more than one word are written.
type Spelling uint8

// The spellings, as places in LineInfo.parents.
const (
	CamelCase Spelling = iota
	SnakeCase
	spellings
)
