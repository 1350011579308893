package rawjson

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
