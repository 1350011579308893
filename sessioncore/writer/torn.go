package writer

import "sessionfs/sessioncore/internal/rawjson"

// tornMark is a line written after a torn line that could be continued by what is appended. We read line by line, but
// the client's parser would take the torn line and the new one for the beginning of one value and lose both
// (docs/format.md, Loading). This line, which cannot occur in JSON there, ends the value.
const tornMark = "# the line above is cut off\n"

// afterTorn prepends a newline to lines if the file's last line has none, and tornMark if it is needed.
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

// canContinue reports whether an object on the next line could continue the value that line begins.
func canContinue(line []byte) bool {
	if rawjson.SkipSpace(line, 0) == len(line) {
		return false
	}
	var s rawjson.Scanner
	_, st := s.SkipValue(append(line, "\n{"...), 0)
	return st == rawjson.Short
}
