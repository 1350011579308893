package sessioncore

import (
	"hash/crc32"

	"sessionfs/sessioncore/internal/rawjson"
)

// part is a piece of a text, from start up to end; the zero part stands for nothing.
type part struct{ start, end uint32 }

func (p part) of(text []byte) rawjson.Value {
	if p.end == 0 {
		return nil
	}
	return rawjson.Value(text[p.start:p.end])
}

// lineClass says what a line is by itself.
type lineClass uint8

const (
	lineBlank   lineClass = iota // nothing but blanks
	lineObject                   // one JSON object
	lineOther                    // one JSON value that is no object
	lineLoose                    // anything else: it may begin a value that runs on
	lineTooLong                  // longer than maxLine: not looked at
)

// lineInfo is what one pass over a line finds. Its parts count from the value's first byte, value
// itself from the line's.
type lineInfo struct {
	start  uint32 // of the line, in its chunk
	length uint32 // without the newline
	number uint32 // lines before it in its chunk
	crc    uint32 // CRC-32C of the value's text
	value  part
	// The members of an entry that the index needs; the last of repeated ones.
	typ, id, time, message, role, tool part
	// parents are parentId and parent_id: which one counts is up to the file's header, which whoever
	// classifies a line does not know.
	parents [spellings]part
	class   lineClass
	flags   rawjson.Flags
	payload bool // message has a key providerPayload
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(text []byte) uint32 { return crc32.Checksum(text, castagnoli) }

// rebase makes the parts count from start on.
func (l *lineInfo) rebase(start uint32) {
	for _, p := range [...]*part{&l.typ, &l.id, &l.parents[camelCase], &l.parents[snakeCase], &l.time, &l.message, &l.role, &l.tool} {
		if p.end != 0 {
			p.start -= start
			p.end -= start
		}
	}
}

// classify scans one line (without its newline) and fills out.
func classify(s *rawjson.Scanner, line []byte, out *lineInfo) {
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
	out.flags = s.Flags
	out.class = lineOther
	if line[start] == '{' {
		out.class = lineObject
		out.crc = checksum(line[start:end])
		out.rebase(uint32(start))
	}
}

// scanText validates the value at text[start] and notes an object's members. It returns where the
// value ends.
func scanText(s *rawjson.Scanner, text []byte, start int, out *lineInfo) (int, rawjson.Status) {
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
			out.typ = v
		case `"id"`:
			out.id = v
		case `"parentId"`:
			out.parents[camelCase] = v
		case `"parent_id"`:
			out.parents[snakeCase] = v
		case `"timestamp"`:
			out.time = v
		}
		return end, st
	})
}

// scanMessage validates the value of an entry's key "message" and notes what the index needs of it.
func scanMessage(s *rawjson.Scanner, text []byte, start int, out *lineInfo) (end int, st rawjson.Status) {
	out.role, out.tool, out.payload = part{}, part{}, false // of repeated keys the last counts
	if text[start] == '{' {
		end, st = s.ScanMembers(text, start, func(key []byte, i int) (int, rawjson.Status) {
			end, st := s.SkipValue(text, i)
			switch string(key) {
			case `"role"`:
				out.role = part{uint32(i), uint32(end)}
			case `"toolName"`, `"tool_name"`:
				out.tool = part{uint32(i), uint32(end)}
			case `"providerPayload"`:
				out.payload = true
			}
			return end, st
		})
	} else {
		end, st = s.SkipValue(text, start)
	}
	out.message = part{uint32(start), uint32(end)}
	return end, st
}

// spelling is how keys of more than one word are written.
type spelling uint8

// The spellings, as places in lineInfo.parents.
const (
	camelCase spelling = iota
	snakeCase
	spellings
)
