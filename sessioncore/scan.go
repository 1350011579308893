package sessioncore

import (
	"encoding/binary"
	"math/bits"
)

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

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

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

// skipString validates the string whose opening quote is at b[i-1] and returns the offset behind its
// closing quote. On scanBad or scanShort the offset is where it stopped.
func (s *scanner) skipString(b []byte, i int) (int, scanStatus) {
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote := w ^ (lowBits * '"')
			slash := w ^ (lowBits * '\\')
			// A byte of special has its top bit set at the first quote, backslash, control character
			// or byte above 0x7f; later bytes may be wrong (borrow), so only the lowest counts.
			special := ((quote - lowBits) &^ quote) | ((slash - lowBits) &^ slash) | (w - lowBits*0x20) | w
			if special &= highBits; special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) >> 3
			break
		}
		if i >= len(b) {
			return i, scanShort
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, scanOK
		case c == '\\':
			n, st := escapeLen(b[i:])
			if st != scanOK {
				return i, st
			}
			i += n
		case c < 0x20:
			return i, scanBad
		case c >= 0x80:
			s.flags |= flagHighBytes
			for i < len(b) && b[i] >= 0x80 {
				i++
			}
		default:
			i++
		}
	}
}

// escapeLen returns the length of the escape sequence that begins b.
func escapeLen(b []byte) (int, scanStatus) {
	if len(b) < 2 {
		return 0, scanShort
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, scanOK
	case 'u':
		for k := 2; k < 6; k++ {
			if k >= len(b) {
				return 0, scanShort
			}
			if hexDigit(b[k]) < 0 {
				return 0, scanBad
			}
		}
		return 6, scanOK
	}
	return 0, scanBad
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
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

// blobPrefix begins a reference to a blob (seed omp-session-storage: "blob:sha256:<hash>").
const blobPrefix = "blob:sha256:"

// noteString sets flagBlob when the string's content, which b begins with, has the blob prefix. Any
// character of it may be written as an escape.
func (s *scanner) noteString(b []byte) {
	if len(b) == 0 || b[0] != 'b' && b[0] != '\\' {
		return
	}
	for k := 0; k < len(blobPrefix); k++ {
		if len(b) == 0 {
			return
		}
		c, n := b[0], 1
		if c == '\\' {
			if len(b) < 6 || b[1] != 'u' || b[2] != '0' || b[3] != '0' {
				return
			}
			hi, lo := hexDigit(b[4]), hexDigit(b[5])
			if hi < 0 || lo < 0 {
				return
			}
			c, n = byte(hi<<4|lo), 6
		}
		if c != blobPrefix[k] {
			return
		}
		b = b[n:]
	}
	s.flags |= flagBlob
}
