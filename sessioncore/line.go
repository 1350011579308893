package sessioncore

import "hash/crc32"

// part is a piece of a text, from start up to end; the zero part stands for nothing.
type part struct{ start, end uint32 }

func (p part) of(text []byte) value {
	if p.end == 0 {
		return nil
	}
	return value(text[p.start:p.end])
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
	flags   scanFlags
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
func (s *scanner) classify(line []byte, out *lineInfo) {
	start := skipSpace(line, 0)
	if start == len(line) {
		out.class = lineBlank
		return
	}
	s.flags = 0
	end, st := s.scanText(line, start, out)
	if st != scanOK || skipSpace(line, end) != len(line) {
		out.class = lineLoose
		return
	}
	out.value = part{uint32(start), uint32(end)}
	out.flags = s.flags
	out.class = lineOther
	if line[start] == '{' {
		out.class = lineObject
		out.crc = checksum(line[start:end])
		out.rebase(uint32(start))
	}
}

// scanText validates the value at text[start] and notes an object's members. It returns where the
// value ends.
func (s *scanner) scanText(text []byte, start int, out *lineInfo) (int, scanStatus) {
	if text[start] != '{' {
		return s.skipValue(text, start)
	}
	return s.scanMembers(text, start, func(key []byte, i int) (int, scanStatus) {
		if string(key) == `"message"` {
			return s.scanMessage(text, i, out)
		}
		end, st := s.skipValue(text, i)
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
func (s *scanner) scanMessage(text []byte, start int, out *lineInfo) (end int, st scanStatus) {
	out.role, out.tool, out.payload = part{}, part{}, false // of repeated keys the last counts
	if text[start] == '{' {
		end, st = s.scanMembers(text, start, func(key []byte, i int) (int, scanStatus) {
			end, st := s.skipValue(text, i)
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
		end, st = s.skipValue(text, start)
	}
	out.message = part{uint32(start), uint32(end)}
	return end, st
}

// scanMembers validates the object at text[i]. For each member it calls visit with the key (with its
// quotes, escapes decoded) and the offset of the value, which visit scans.
func (s *scanner) scanMembers(text []byte, i int, visit func(key []byte, i int) (int, scanStatus)) (int, scanStatus) {
	if i = skipSpace(text, i+1); i >= len(text) {
		return i, scanShort
	}
	if text[i] == '}' {
		return i + 1, scanOK
	}
	for {
		key := i
		valueAt, st := s.skipKey(text, i)
		if st != scanOK {
			return valueAt, st
		}
		if i = skipSpace(text, valueAt); i >= len(text) {
			return i, scanShort
		}
		if i, st = visit(plainKey(text[key:]), i); st != scanOK {
			return i, st
		}
		if i = skipSpace(text, i); i >= len(text) {
			return i, scanShort
		}
		if text[i] == '}' {
			return i + 1, scanOK
		}
		if text[i] != ',' {
			return i, scanBad
		}
		if i = skipSpace(text, i+1); i >= len(text) {
			return i, scanShort
		}
	}
}

// plainKey returns the string that text begins with, with its quotes: as it is, or decoded where it
// has escapes.
func plainKey(text []byte) []byte {
	n := 1
	for text[n] != '"' {
		if text[n] == '\\' {
			var s scanner
			end, _ := s.skipString(text, 1)
			return append(decodeString([]byte{'"'}, text[1:end-1]), '"')
		}
		n++
	}
	return text[:n+1]
}

// spelling is how keys of more than one word are written.
type spelling uint8

// The spellings, as places in lineInfo.parents.
const (
	camelCase spelling = iota
	snakeCase
	spellings
)
