package rawjson

import "bytes"

// shortEscape is the set of bytes that form an escape of two bytes with a backslash before them.
var shortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// EscapeLen returns the length of the escape sequence at the start of b.
func EscapeLen(b []byte) (int, Status) {
	if len(b) < 2 {
		return 0, Short
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, OK
	case 'u':
		for k := 2; k < 6; k++ {
			if k >= len(b) {
				return 0, Short
			}
			if HexDigit(b[k]) < 0 {
				return 0, Bad
			}
		}
		return 6, OK
	}
	return 0, Bad
}

// IsEscaped reports whether what follows a part of a string's body is escaped by its last byte.
func IsEscaped(body []byte) bool {
	return (len(body)-len(bytes.TrimRight(body, `\`)))%2 == 1
}

// CutPoint returns the largest offset up to at at which the body of a string can be cut: not within a character or an
// escape, nor between the halves of a surrogate pair.
func CutPoint(body []byte, at int) int {
	const longest = len(`\uXXXX`)
	if at >= len(body) {
		return len(body)
	}
	for start := at - 1; start >= 0 && start > at-longest; start-- {
		if body[start] == '\\' && !IsEscaped(body[:start]) {
			if n, _ := EscapeLen(body[start:]); start+n > at {
				at = start
			}
			break
		}
	}
	for back := 0; back < 3 && at > 0 && body[at]&0xC0 == 0x80; back++ {
		at--
	}
	if before := at - longest; before >= 0 && !IsEscaped(body[:before]) && isHalf(body[before:], IsHighSurrogate) && isHalf(body[at:], IsLowSurrogate) {
		return before
	}
	return at
}

// isHalf reports whether text begins with an escape of such a half of a surrogate pair.
func isHalf(text []byte, half func(rune) bool) bool {
	n, status := EscapeLen(text)
	return status == OK && n == 6 && text[0] == '\\' && half(Hex4(text[2:]))
}

// HexDigit returns the value of a hexadecimal digit, or -1.
func HexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// BlobPrefix is the prefix of a reference to a blob (docs/format.md, Context: "blob:sha256:<hash>").
const BlobPrefix = "blob:sha256:"

// noteString sets HasBlob if the string content at the start of b has the blob prefix. Any character of the prefix
// may be escaped.
func (s *Scanner) noteString(b []byte) {
	if len(b) == 0 || b[0] != 'b' && b[0] != '\\' {
		return
	}
	for k := 0; k < len(BlobPrefix); k++ {
		if len(b) == 0 {
			return
		}
		c, n := b[0], 1
		if c == '\\' {
			if len(b) < 6 || b[1] != 'u' || b[2] != '0' || b[3] != '0' {
				return
			}
			hi, lo := HexDigit(b[4]), HexDigit(b[5])
			if hi < 0 || lo < 0 {
				return
			}
			c, n = byte(hi<<4|lo), 6
		}
		if c != BlobPrefix[k] {
			return
		}
		b = b[n:]
	}
	s.Flags |= HasBlob
}
