package jsonl

import (
	"bytes"
	"hash/crc32"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// textRange is a range of a text, from Start up to End. The zero range stands for nothing.
type textRange struct{ Start, End uint32 }

// Of returns the range of text, nil for the zero range.
func (r textRange) Of(text []byte) rawjson.Value {
	if r.End == 0 {
		return nil
	}
	return rawjson.Value(text[r.Start:r.End])
}

// lineClass is the class of a line taken by itself.
type lineClass uint8

const (
	lineBlank   lineClass = iota // nothing but blanks
	lineObject                   // one JSON object
	lineOther                    // one JSON value that is not an object
	lineLoose                    // anything else: it may begin a value that spans lines
	lineTooLong                  // too long: not read
)

// LineInfo is the result of one pass over a line. Offsets in its parts count from the value's first
// byte, those in value from the line's.
type LineInfo struct {
	start  uint32 // of the line, in its chunk
	length uint32 // without the newline
	number uint32 // lines before it in its chunk
	CRC    uint32 // CRC-32C of the value's text
	value  textRange
	// The members of an entry that the index needs. Of repeated members, the last one counts.
	Type, ID, Time, Message, Role, Tool textRange
	// Parents are parentId and parent_id. The file's header decides which one counts.
	Parents [spellings]textRange
	// Cost spans the members of the message about its cost and model, and the text between them.
	Cost  textRange
	class lineClass
	Flags rawjson.Flags
	// IllFormed reports whether the value's text is not valid UTF-8.
	IllFormed bool
	Payload   bool // the message has a key providerPayload
	// The members of a record, as ranges of notes.
	members, inner textRange
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of a text in parts.
func Checksum(text ...[]byte) (sum uint32) {
	for _, part := range text {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// noteText sets the fields about the value's text. It is called right after the scan, while the
// text is in the processor's cache.
func (l *LineInfo) noteText(text []byte) {
	l.CRC = Checksum(text)
	l.IllFormed = l.Flags&rawjson.HasHighBytes != 0 && !utf8.Valid(text)
}

// rebase makes the offsets of the parts count from start.
func (l *LineInfo) rebase(start uint32) {
	parts := [...]*textRange{
		&l.Type, &l.ID, &l.Parents[CamelCase], &l.Parents[SnakeCase], &l.Time, &l.Message, &l.Role, &l.Tool, &l.Cost,
	}
	for _, part := range parts {
		if part.End != 0 {
			part.Start -= start
			part.End -= start
		}
	}
}

// classify scans one line, without its newline, into out, which has no facts of another line. A record's members go into n;
// with nil for n the line is an entry's.
func classify(s *rawjson.Scanner, line []byte, n *notes, out *LineInfo) {
	start := rawjson.SkipSpace(line, 0)
	if start == len(line) {
		out.class = lineBlank
		return
	}
	s.Flags = 0
	end, st := scanLine(s, line, start, n, out)
	isAlone := st == rawjson.OK && rawjson.SkipSpace(line, end) == len(line)
	if !isAlone {
		out.class = lineLoose
		return
	}
	out.value = rangeOf(start, end)
	out.Flags = s.Flags
	out.class = lineOther
	if line[start] != '{' {
		return
	}
	out.class = lineObject
	if n == nil { // records need no checksum, and their members are slices
		out.noteText(line[start:end])
		out.rebase(uint32(start))
	}
}

// scanText validates the value at text[start], sets the members of an object in out, and returns
// the offset after the value.
func scanText(s *rawjson.Scanner, text []byte, start int, out *LineInfo) (int, rawjson.ScanStatus) {
	if text[start] != '{' {
		return s.SkipValue(text, start)
	}
	return s.ScanMembers(text, start, func(key []byte, i int) (int, rawjson.ScanStatus) {
		if string(key) == `"message"` {
			return scanMessage(s, text, i, out)
		}
		end, st := s.SkipValue(text, i)
		v := rangeOf(i, end)
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

// scanMessage validates the value of an entry's key "message" and sets the fields of out about it.
func scanMessage(s *rawjson.Scanner, text []byte, start int, out *LineInfo) (end int, st rawjson.ScanStatus) {
	out.Role = textRange{}
	out.Tool = textRange{}
	out.Cost = textRange{}
	out.Payload = false // of repeated keys, the last one counts
	if text[start] != '{' {
		end, st = s.SkipValue(text, start)
		out.Message = rangeOf(start, end)
		return end, st
	}
	end, st = s.ScanMembers(text, start, func(key []byte, i int) (int, rawjson.ScanStatus) {
		end, st := s.SkipValue(text, i)
		switch string(key) {
		case `"role"`:
			out.Role = rangeOf(i, end)
		case `"toolName"`, `"tool_name"`:
			out.Tool = rangeOf(i, end)
		case `"providerPayload"`:
			out.Payload = true
		case `"provider"`, `"model"`, `"responseModel"`, `"usage"`:
			if out.Cost.End == 0 {
				out.Cost.Start = memberStart(text, start, key, i)
			}
			out.Cost.End = uint32(end)
		}
		return end, st
	})
	out.Message = rangeOf(start, end)
	return end, st
}

// rangeOf returns the range of a text from start to end.
func rangeOf(start, end int) textRange {
	return textRange{Start: uint32(start), End: uint32(end)}
}

// memberStart returns the offset of the member of the object at start with that key, in quotes, and the value at an
// offset. If the key has escapes in the text, it returns the offset of the first member.
func memberStart(text []byte, start int, key []byte, value int) uint32 {
	keyEnd := value
	for text[keyEnd-1] != '"' { // blanks and the colon
		keyEnd--
	}
	at := keyEnd - len(key)
	if at <= start || !bytes.Equal(text[at:keyEnd], key) {
		return uint32(start + 1)
	}
	return uint32(at)
}

// Spelling says how keys of more than one word are written.
type Spelling uint8

// The spellings, as indexes of LineInfo.Parents.
const (
	CamelCase Spelling = iota
	SnakeCase
	spellings
)
