package jsonl

import (
	"fmt"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// Some agents write control characters into strings as they are (Records.RawControls). Such a value is
// read from a copy with escapes in their place.

// scan validates the value at the beginning of the lines. If it is wrong for control characters in its strings and the
// agent writes such, scan validates a mended copy, as it does for all lines that are added later. It sets info, and returns
// the offset behind the value in that copy or in the lines.
func (r *looseRun) scan(info *LineInfo) (end int, st rawjson.ScanStatus) {
	l := r.l
	l.work += int64(len(r.text))
	if r.mended == nil {
		end, st = l.scanLoose(r.text, info)
		if st != rawjson.Bad || !l.mends {
			return end, st
		}
		start := rawjson.SkipSpace(r.text, 0)
		if r.text[start] != '{' { // only objects are mended
			return end, st
		}
	}
	mended := appendMended(l.mended[:0], r.text)
	if cap(mended) <= KeepBuffer {
		l.mended = mended
	}
	isUnchanged := len(mended) == len(r.text) // something else is wrong
	if isUnchanged || int64(len(mended)) > l.limit {
		return 0, rawjson.Bad
	}
	r.mended = mended
	l.work += int64(len(mended))
	*info = LineInfo{}
	return l.scanLoose(mended, info)
}

// scanLoose validates the value at the beginning of a text, which is not blank, and sets info. It returns the offset
// behind the value.
func (l *loader) scanLoose(text []byte, info *LineInfo) (end int, st rawjson.ScanStatus) {
	l.scan.Flags = 0
	return scanText(&l.scan, text, rawjson.SkipSpace(text, 0), info)
}

// mender finds the control characters in the strings of a JSON text, byte by byte.
type mender struct{ inString, isEscaped bool }

// isControl reports whether the next byte is a control character in a string.
func (m *mender) isControl(c byte) bool {
	switch {
	case !m.inString:
		m.inString = c == '"'
	case m.isEscaped:
		m.isEscaped = false
	case c == '\\':
		m.isEscaped = true
	case c == '"':
		m.inString = false
	default:
		return c < ' '
	}
	return false
}

// appendMended appends a JSON text, with escapes for the control characters in its strings.
func appendMended(dst, text []byte) []byte {
	dst = slices.Grow(dst, len(text)+1)
	var m mender
	for _, c := range text {
		if m.isControl(c) {
			dst = appendEscape(dst, c)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendEscape appends the escape of a control character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return fmt.Appendf(dst, `\u%04x`, c)
}

// rawEnd returns the number of bytes of a text that make the first end bytes of its mended copy.
func rawEnd(text []byte, end int) int {
	var m mender
	var escape [len(`\u0000`)]byte
	size := 0
	for i, c := range text {
		if size >= end {
			return i
		}
		if m.isControl(c) {
			size += len(appendEscape(escape[:0], c))
		} else {
			size++
		}
	}
	return len(text)
}
