package page

import (
	"bufio"
	"bytes"
	"io"
)

const (
	// wholeTurn is up to how many bytes a turn is rendered at once. A longer one is taken apart at blank lines.
	wholeTurn = 256 << 10
	// maxPiece is where a piece ends in any case.
	maxPiece = 1 << 20
	// maxLine is how much of a line is looked at at once.
	maxLine = 64 << 10
)

// splitter takes a transcript apart. In it each turn begins with a heading of the second level, and no other text does,
// but in a code block (package transcript).
type splitter struct {
	in    *bufio.Reader
	piece []byte
	line  []byte // read already, of the next piece
	fence []byte // that of the code block in which it is
	inner bool   // what is read next is the rest of a line
	err   error
}

func newSplitter(in io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(in, maxLine)}
}

// next returns the next piece, valid until the next call, or io.EOF.
func (s *splitter) next() ([]byte, error) {
	s.piece = append(s.piece[:0], s.line...)
	s.line = s.line[:0]
	for s.err == nil {
		var line []byte
		line, s.err = s.in.ReadSlice('\n')
		if s.err == bufio.ErrBufferFull {
			s.err = nil
		}
		ends := !s.inner && len(s.piece) > 0 && s.endsBefore(line)
		if !s.inner {
			s.look(line)
		}
		s.inner = !bytes.HasSuffix(line, []byte("\n"))
		if ends {
			s.line = append(s.line, line...)
			return s.piece, nil
		}
		s.piece = append(s.piece, line...)
		if len(s.piece) >= maxPiece {
			return s.piece, nil
		}
	}
	if s.err != io.EOF {
		return nil, s.err
	}
	if len(s.piece) == 0 {
		return nil, io.EOF
	}
	return s.piece, nil
}

// endsBefore reports whether a piece ends before a line.
func (s *splitter) endsBefore(line []byte) bool {
	if s.fence != nil {
		return false
	}
	return bytes.HasPrefix(line, []byte("## ")) || len(s.piece) > wholeTurn && len(bytes.TrimSpace(line)) == 0
}

// look notes whether a line begins or ends a code block.
func (s *splitter) look(line []byte) {
	text := bytes.TrimLeft(line, " ")
	if len(line)-len(text) > 3 || len(text) == 0 || text[0] != '`' && text[0] != '~' {
		return
	}
	rest := bytes.TrimLeft(text, string(text[0]))
	marks := text[:len(text)-len(rest)]
	switch {
	case len(marks) < 3:
	case s.fence == nil:
		if text[0] != '`' || !bytes.Contains(rest, []byte("`")) {
			s.fence = bytes.Clone(marks)
		}
	case marks[0] == s.fence[0] && len(marks) >= len(s.fence) && len(bytes.TrimSpace(rest)) == 0:
		s.fence = nil
	}
}

// maxBrackets is how many brackets and emphasis marks may open in a paragraph.
const maxBrackets = 5000

// absurd reports whether a piece has nested what no person nests. Quotes and lists in a transcript are bounded (package
// markdown).
func absurd(piece []byte) bool {
	open := 0
	for line := range bytes.Lines(piece) {
		if len(bytes.TrimSpace(line)) == 0 {
			open = 0
		}
		open += bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("*")) + bytes.Count(line, []byte("_")) + bytes.Count(line, []byte("`"))
		if open > maxBrackets {
			return true
		}
	}
	return false
}
