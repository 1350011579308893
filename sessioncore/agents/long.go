package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

const (
	// maxLine is the longest line that is converted unchanged, in bytes. Clients write images and
	// conversations into lines of 100 MB, which do not fit into memory.
	maxLine = 32 << 20
	// maxText is the longest text that is kept of a longer line.
	maxText = 64 << 10

	reasonTooLong   = "the line is longer than 32 MiB"
	reasonShortened = reasonTooLong + ": its long texts are left out"
)

// shortened returns a line that is too long with a note in the place of each long text. It returns
// nil for other values than objects, for a line that is still too long, and for an incomplete one.
func shortened(obj io.ReaderAt, u *jsonl.Unit) rawjson.Value {
	var end [1]byte
	_, err := obj.ReadAt(end[:], u.Off+u.Size-1)
	if err != nil || end[0] != '\n' {
		return nil
	}
	s := &textShortener{line: u.Line, start: betweenTexts}
	line := io.NewSectionReader(obj, u.Off, u.Size)
	buffer := make([]byte, jsonl.ChunkSize)
	_, err = io.CopyBuffer(s, line, buffer)
	if err != nil {
		return nil
	}
	return ObjectIn(s.out)
}

// textShortener is a writer that puts notes in the places of long texts of JSON.
type textShortener struct {
	out       []byte
	line      int64 // the number of the line, for the notes
	start     int   // the place in out of the text that is being written, or betweenTexts
	size      int   // the bytes of that text
	isEscaped bool  // a backslash is before the next byte of it
}

// betweenTexts is the start of no text.
const betweenTexts = -1

// errLong is the error for JSON that is too long without its long texts.
var errLong = errors.New(reasonTooLong)

// Write implements io.Writer. A text can begin in one write and end in another.
func (s *textShortener) Write(part []byte) (int, error) {
	for rest := part; len(rest) > 0; {
		if s.start == betweenTexts {
			rest = s.addBetween(rest)
		} else {
			rest = s.addText(rest)
		}
	}
	if len(s.out) > maxLine {
		return 0, errLong
	}
	return len(part), nil
}

// addBetween adds the JSON up to the next text and its quote, and returns the bytes behind that.
func (s *textShortener) addBetween(part []byte) (rest []byte) {
	quote := bytes.IndexByte(part, '"')
	if quote < 0 {
		s.out = append(s.out, part...)
		return nil
	}
	length := quote + 1
	s.out = append(s.out, part[:length]...)
	s.start = len(s.out)
	s.size = 0
	return part[length:]
}

// addText adds the next part of a text, and its quote if it ends there. It returns the bytes behind that.
func (s *textShortener) addText(part []byte) (rest []byte) {
	length := s.textLen(part)
	s.size += length
	isLong := s.size > maxText
	if isLong {
		s.out = s.out[:s.start]
	} else {
		s.out = append(s.out, part[:length]...)
	}
	if length == len(part) {
		return nil
	}
	if isLong {
		s.out = fmt.Appendf(s.out, "[%d bytes, in line %d of the agent's own file]", s.size, s.line)
	}
	s.out = append(s.out, '"')
	s.start = betweenTexts
	return part[length+1:]
}

// textLen returns how many bytes are before the quote that ends a text: all if none does.
func (s *textShortener) textLen(part []byte) int {
	isEscaped := s.isEscaped // in a register: the line has 100 MB
	at := 0
	for at < len(part) && (isEscaped || part[at] != '"') {
		isEscaped = !isEscaped && part[at] == '\\'
		at++
	}
	s.isEscaped = isEscaped
	return at
}
