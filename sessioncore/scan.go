package sessioncore

// This file holds the JSON scanner: one pass, no recursion, no allocation but for very deep nesting.
// It is strict (RFC 8259 as JSON.parse reads it: no raw control characters in strings, no bad
// escapes, no leading zeros), because a line that the client skips must be skipped here too.

// scanStatus says how a scan of one JSON value ended.
type scanStatus uint8

const (
	scanOK    scanStatus = iota // a whole value was read
	scanBad                     // a byte that no JSON value can have here
	scanShort                   // the text ended inside a value: more text could complete it
)

// scanFlags are facts about a value that the scan sees in passing and that spare later passes.
type scanFlags uint8

const (
	// flagBlob: a string value begins with the blob reference prefix.
	flagBlob scanFlags = 1 << iota
	// flagHighBytes: a string has bytes above 0x7f, so its UTF-8 is still to be checked.
	flagHighBytes
	// flagBigNumber: a number that may overflow a double (format.md: it reads as null in a context).
	flagBigNumber
)

// scanner carries what a scan needs across calls. The zero value is ready to use. Not for concurrent
// use.
type scanner struct {
	flags scanFlags
	// deep holds a bit for each open container beyond the first 64: 1 for an object.
	deep []uint64
}

// skipSpace returns the offset of the first byte at or after i that is no JSON white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// bigNumberLen is the length from which a number's digits alone may overflow a double (about 1.8e308).
const bigNumberLen = 309

// skipNumber validates the number at b[i] and returns the offset behind it.
func (s *scanner) skipNumber(b []byte, i int) (int, scanStatus) {
	start := i
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, scanShort
	case b[i] == '0':
		i++
	case b[i] >= '1' && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return i, scanBad
	}
	if i < len(b) && b[i] == '.' {
		j := skipDigits(b, i+1)
		if j == i+1 {
			return j, badOrShort(b, j)
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := skipDigits(b, i)
		if j == i {
			return j, badOrShort(b, j)
		}
		if j-i >= 2 {
			s.flags |= flagBigNumber
		}
		i = j
	}
	if i-start >= bigNumberLen {
		s.flags |= flagBigNumber
	}
	return i, scanOK
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// badOrShort: what is missing at offset i is missing because of another byte, or because the text ends.
func badOrShort(b []byte, i int) scanStatus {
	if i < len(b) {
		return scanBad
	}
	return scanShort
}

// skipLiteral validates true, false or null at b[i].
func skipLiteral(b []byte, i int) (int, scanStatus) {
	word := "null"
	switch b[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	}
	for k := 0; k < len(word); k++ {
		if i+k >= len(b) {
			return i + k, scanShort
		}
		if b[i+k] != word[k] {
			return i + k, scanBad
		}
	}
	return i + len(word), scanOK
}

// containers is the stack of open containers of one scan: a bit each, the first 64 in a register.
type containers struct {
	near  uint64
	depth int
	deep  []uint64
}

func (c *containers) push(object uint64) {
	if c.depth > 0 && c.depth&63 == 0 {
		c.deep = append(c.deep, c.near)
		c.near = 0
	}
	c.near = c.near<<1 | object
	c.depth++
}

func (c *containers) pop() {
	c.near >>= 1
	c.depth--
	if c.depth > 0 && c.depth&63 == 0 {
		c.near = c.deep[len(c.deep)-1]
		c.deep = c.deep[:len(c.deep)-1]
	}
}

func (c *containers) inObject() bool { return c.near&1 == 1 }

// skipValue validates the JSON value at b[i] (white space before it allowed) and returns the offset
// behind it. Depth is limited by memory alone, a bit for each open container, so that content nested
// thousands of levels deep neither fails nor overflows a stack (format.md, loading).
func (s *scanner) skipValue(b []byte, i int) (int, scanStatus) {
	open := containers{deep: s.deep[:0]}
	i, st := s.skipNested(b, i, &open)
	s.deep = open.deep[:0]
	return i, st
}

func (s *scanner) skipNested(b []byte, i int, open *containers) (int, scanStatus) {
	var st scanStatus
	for {
		if i = skipSpace(b, i); i >= len(b) {
			return i, scanShort
		}
		// A value begins here.
		switch c := b[i]; {
		case c == '"':
			s.noteString(b[i+1:])
			i, st = s.skipString(b, i+1)
		case c == '{':
			if i = skipSpace(b, i+1); i >= len(b) {
				return i, scanShort
			}
			if b[i] == '}' {
				i++
				break
			}
			open.push(1)
			if i, st = s.skipKey(b, i); st != scanOK {
				return i, st
			}
			continue
		case c == '[':
			if i = skipSpace(b, i+1); i >= len(b) {
				return i, scanShort
			}
			if b[i] == ']' {
				i++
				break
			}
			open.push(0)
			continue
		case c == '-' || c >= '0' && c <= '9':
			i, st = s.skipNumber(b, i)
		case c == 't' || c == 'f' || c == 'n':
			i, st = skipLiteral(b, i)
		default:
			return i, scanBad
		}
		if st != scanOK {
			return i, st
		}
		// A value ended here: go on in its container, closing what closes.
		for {
			if open.depth == 0 {
				return i, scanOK
			}
			if i = skipSpace(b, i); i >= len(b) {
				return i, scanShort
			}
			c := b[i]
			i++
			if c == ',' {
				if !open.inObject() {
					break
				}
				if i = skipSpace(b, i); i >= len(b) {
					return i, scanShort
				}
				if i, st = s.skipKey(b, i); st != scanOK {
					return i, st
				}
				break
			}
			if c == '}' && open.inObject() || c == ']' && !open.inObject() {
				open.pop()
				continue
			}
			return i - 1, scanBad
		}
	}
}

// skipKey validates a member's key and colon, beginning at the key's opening quote.
func (s *scanner) skipKey(b []byte, i int) (int, scanStatus) {
	if b[i] != '"' {
		return i, scanBad
	}
	i, st := s.skipString(b, i+1)
	if st != scanOK {
		return i, st
	}
	if i = skipSpace(b, i); i >= len(b) {
		return i, scanShort
	}
	if b[i] != ':' {
		return i, scanBad
	}
	return i + 1, scanOK
}
