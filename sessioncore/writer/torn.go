package writer

import "sessionfs/sessioncore/internal/rawjson"

// tornMark is a line of its own behind a torn line that could go on with what is appended. We read lines
// one by one, but the client's parser would take the torn line and the new one for the beginning of one
// value, and lose both (docs/format.md, Loading); this, which no JSON can have there, ends it.
const tornMark = "# the line above is cut off\n"

// afterTorn puts what is to be appended on a line of its own where the file's last line has no end.
func (c *change) afterTorn(lines []byte) ([]byte, error) {
	if c.snap.EndsLine() || len(lines) == 0 {
		return lines, nil
	}
	last, err := c.snap.LastLine()
	if err != nil {
		return nil, err
	}
	before := "\n"
	if canContinue(last) {
		before += tornMark
	}
	return append([]byte(before), lines...), nil
}

// canContinue reports whether an object on the next line could be a part of the value that a line begins.
func canContinue(line []byte) bool {
	if rawjson.SkipSpace(line, 0) == len(line) {
		return false
	}
	var s rawjson.Scanner
	_, st := s.SkipValue(append(line, "\n{"...), 0)
	return st == rawjson.Short
}
