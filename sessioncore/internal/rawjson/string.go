package rawjson

import (
	"encoding/binary"
	"math/bits"
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// SkipString validates the string whose opening quote is at b[i-1] and returns the offset behind its
// closing quote. On scanBad or scanShort the offset is where it stopped.
func (s *Scanner) SkipString(b []byte, i int) (int, Status) {
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
			return i, Short
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, OK
		case c == '\\':
			if i+1 < len(b) && shortEscape[b[i+1]] {
				i += 2
				break
			}
			n, st := EscapeLen(b[i:])
			if st != OK {
				return i, st
			}
			i += n
		case c < 0x20:
			return i, Bad
		case c >= 0x80:
			s.Flags |= HasHighBytes
			for i < len(b) && b[i] >= 0x80 {
				i++
			}
		default:
			i++
		}
	}
}

// shortEscape tells the bytes that make an escape of two with a backslash before them.
var shortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// EscapeLen returns the length of the escape sequence that begins b.
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

// BlobPrefix begins a reference to a blob (docs/format.md, Context: "blob:sha256:<hash>").
const BlobPrefix = "blob:sha256:"

// noteString sets flagBlob when the string's content, which b begins with, has the blob prefix. Any
// character of it may be written as an escape.
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
