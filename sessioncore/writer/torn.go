package writer

import (
	"bytes"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// tornMark is a line written after a torn line that could be continued by what is appended. We read line by line, but
// the client's parser would take the torn line and the new one for the beginning of one value and lose both
// (docs/format.md, Loading). This line, which cannot occur in JSON there, ends the value.
const tornMark = "# the line above is cut off\n"

// afterTorn prepends a newline to lines if the file's last line has none, and tornMark if it is needed.
func (c *change) afterTorn(lines []byte) ([]byte, error) {
	if c.snap.EndsLine() || len(lines) == 0 {
		return lines, nil
	}
	last, err := lastLine(c.snap)
	if err != nil {
		return nil, err
	}
	before := "\n"
	if canContinue(last) {
		before += tornMark
	}
	return append([]byte(before), lines...), nil
}

// lastLine returns the text after a file's last newline. If that is longer than any line that is read, it returns the end
// of it.
func lastLine(s *sessioncore.Snapshot) ([]byte, error) {
	size := s.Stat().Size
	for n := int64(jsonl.ChunkSize); ; n *= 2 {
		n = min(n, size)
		text := make([]byte, n)
		if err := storage.ReadFull(s.File(), text, size-n); err != nil {
			return nil, err
		}
		if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
			return text[at+1:], nil
		}
		if n == size || n > jsonl.MaxLine {
			return text, nil
		}
	}
}

// canContinue reports whether an object on the next line could continue the value that line begins.
func canContinue(line []byte) bool {
	if rawjson.SkipSpace(line, 0) == len(line) {
		return false
	}
	var s rawjson.Scanner
	_, st := s.SkipValue(append(line, "\n{"...), 0)
	return st == rawjson.Short
}
