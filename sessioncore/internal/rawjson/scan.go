package rawjson

import (
	"encoding/binary"
	"math/bits"

	"golang.org/x/sys/cpu"
)

// This file has the JSON scanner: one pass, no recursion, and no allocation except for very deep
// nesting. It is as strict as JSON.parse (no raw control characters in strings, no bad escapes, no
// leading zeros), because lines that the client skips must be skipped.

// ScanStatus says how a scan of one JSON value ended.
type ScanStatus uint8

// The results of a scan.
const (
	OK    ScanStatus = iota // a complete value was read
	Bad                     // a byte that is not valid at this point
	Short                   // the text ended inside a value: more text could complete it
)

// Flags are facts about a value that the scan finds in passing, to save later passes.
type Flags uint8

// The flags.
const (
	// HasBlob means that a string value begins with the blob reference prefix.
	HasBlob Flags = 1 << iota
	// HasHighBytes means that a string has bytes above 0x7f, so its UTF-8 has to be checked.
	HasHighBytes
	// HasBigNumber means that a number may overflow a double (docs/format.md, Context).
	HasBigNumber
)

// Scanner holds the state of scans. The zero value is ready. It is for one goroutine at a time.
type Scanner struct {
	Flags Flags
	// deep has a bit for each open container beyond the first 64: 1 for an object.
	deep []uint64
}

// SkipSpace returns the offset of the first byte at or after i that is not JSON white space. It is
// inlined for text without white space.
func SkipSpace(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i
	}
	return skipBlanks(b, i)
}

// skipBlanks returns the offset of the first byte from i on that is no white space.
func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// BigNumberLen is the minimum length of a number with digits that may overflow a double (1.8e308).
const BigNumberLen = 309

// SkipNumber validates the number at b[i] and returns the offset after it, or with Bad and Short the offset where it
// stopped. It sets HasBigNumber.
func (s *Scanner) SkipNumber(b []byte, i int) (int, ScanStatus) {
	start := i
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, Short
	case b[i] == '0':
		i++
	case b[i] >= '1' && b[i] <= '9':
		i = SkipDigits(b, i)
	default:
		return i, Bad
	}
	if i < len(b) && b[i] == '.' {
		j := SkipDigits(b, i+1)
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
		j := SkipDigits(b, i)
		if j == i {
			return j, badOrShort(b, j)
		}
		if j-i >= 2 { // an exponent of several digits
			s.Flags |= HasBigNumber
		}
		i = j
	}
	if i-start >= BigNumberLen {
		s.Flags |= HasBigNumber
	}
	return i, OK
}

// SkipDigits returns the offset of the first byte at or after i that is not a digit.
func SkipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// badOrShort returns Short if the text ends at offset i, and Bad otherwise.
func badOrShort(b []byte, i int) ScanStatus {
	if i < len(b) {
		return Bad
	}
	return Short
}

// skipLiteral validates true, false or null at b[i].
func skipLiteral(b []byte, i int) (int, ScanStatus) {
	word := "null"
	switch b[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	}
	for k := 0; k < len(word); k++ {
		if i+k >= len(b) {
			return i + k, Short
		}
		if b[i+k] != word[k] {
			return i + k, Bad
		}
	}
	return i + len(word), OK
}

// containers is the stack of a scan's open containers, one bit each, the top 64 in a register.
type containers struct {
	near  uint64
	depth int
	deep  []uint64
}

// push opens a container: 1 for an object, 0 for an array.
func (c *containers) push(object uint64) {
	if c.depth > 0 && c.depth&63 == 0 {
		c.deep = append(c.deep, c.near)
		c.near = 0
	}
	c.near = c.near<<1 | object
	c.depth++
}

// pop closes the innermost container.
func (c *containers) pop() {
	c.near >>= 1
	c.depth--
	if c.depth > 0 && c.depth&63 == 0 {
		c.near = c.deep[len(c.deep)-1]
		c.deep = c.deep[:len(c.deep)-1]
	}
}

func (c *containers) inObject() bool { return c.near&1 == 1 }

// SkipValue validates the JSON value at b[i], possibly after white space, and returns the offset
// after it. Only memory limits the depth, one bit per open container, so that deep nesting neither
// fails nor overflows a stack (docs/format.md, Loading).
func (s *Scanner) SkipValue(b []byte, i int) (int, ScanStatus) {
	open := containers{deep: s.deep[:0]}
	end, st := s.skipNested(b, i, &open)
	s.deep = open.deep[:0]
	noteWork(end - i)
	return end, st
}

// skipNested is SkipValue with a stack of containers, which is empty before and after. It takes turns in two states: at
// the beginning of a value, and behind a value within a container.
func (s *Scanner) skipNested(b []byte, i int, open *containers) (int, ScanStatus) {
	st := ScanStatus(inside)
	for st == inside {
		i, st = s.beginValue(b, i, open)
		if st == OK && open.depth > 0 {
			i, st = s.endValue(b, i, open)
		}
	}
	return i, st
}

// beginValue reads the value at b[i], possibly after white space, and returns the offset after it. Of an object or
// array that is not empty it reads the beginning up to the first value in it, opens the container, and returns inside.
func (s *Scanner) beginValue(b []byte, i int, open *containers) (int, ScanStatus) {
	i = SkipSpace(b, i)
	if i >= len(b) {
		return i, Short
	}
	first := b[i]
	switch {
	case first == '"':
		s.noteString(b[i+1:])
		return s.SkipString(b, i+1)
	case first == '{':
		i = SkipSpace(b, i+1)
		if i >= len(b) {
			return i, Short
		}
		if b[i] == '}' {
			return i + 1, OK
		}
		open.push(1)
		return s.skipNextKey(b, i)
	case first == '[':
		i = SkipSpace(b, i+1)
		if i >= len(b) {
			return i, Short
		}
		if b[i] == ']' {
			return i + 1, OK
		}
		open.push(0)
		return i, inside
	case first == '-' || first >= '0' && first <= '9':
		return s.SkipNumber(b, i)
	case first == 't' || first == 'f' || first == 'n':
		return skipLiteral(b, i)
	}
	return i, Bad
}

// endValue goes on behind a value in a container: it closes the containers that end there. It returns inside at the next
// value, and OK behind the outermost container.
func (s *Scanner) endValue(b []byte, i int, open *containers) (int, ScanStatus) {
	for open.depth > 0 {
		i = SkipSpace(b, i)
		if i >= len(b) {
			return i, Short
		}
		inObject := open.inObject()
		c := b[i]
		switch {
		case c == ',' && inObject:
			return s.skipNextKey(b, SkipSpace(b, i+1))
		case c == ',':
			return i + 1, inside
		case c == '}' && inObject, c == ']' && !inObject:
			open.pop()
			i++
		default:
			return i, Bad
		}
	}
	return i, OK
}

// skipNextKey is skipKey for the next member of an open object. It returns inside at the member's value.
func (s *Scanner) skipNextKey(b []byte, i int) (int, ScanStatus) {
	if i >= len(b) {
		return i, Short
	}
	i, st := s.skipKey(b, i)
	if st == OK {
		st = inside
	}
	return i, st
}

// skipKey validates a member's key and colon, beginning at the key's opening quote.
func (s *Scanner) skipKey(b []byte, i int) (int, ScanStatus) {
	if b[i] != '"' {
		return i, Bad
	}
	i, st := s.SkipString(b, i+1)
	if st != OK {
		return i, st
	}
	i = SkipSpace(b, i)
	if i >= len(b) {
		return i, Short
	}
	if b[i] != ':' {
		return i, Bad
	}
	return i + 1, OK
}

// ScanMembers validates the object at text[i] and returns the offset after it. For each member it
// calls visit with the key, quoted and with escapes decoded, and the offset of the value. visit
// must scan the value and return the offset after it.
func (s *Scanner) ScanMembers(text []byte, i int, visit func(key []byte, i int) (int, ScanStatus)) (int, ScanStatus) {
	i = SkipSpace(text, i+1)
	if i >= len(text) {
		return i, Short
	}
	if text[i] == '}' {
		return i + 1, OK
	}
	for {
		key := i
		valueAt, st := s.skipKey(text, i)
		noteWork(valueAt - key)
		if st != OK {
			return valueAt, st
		}
		i = SkipSpace(text, valueAt)
		if i >= len(text) {
			return i, Short
		}
		i, st = visit(plainKey(text[key:]), i)
		if st != OK {
			return i, st
		}
		i = SkipSpace(text, i)
		if i >= len(text) {
			return i, Short
		}
		if text[i] == '}' {
			return i + 1, OK
		}
		if text[i] != ',' {
			return i, Bad
		}
		i = SkipSpace(text, i+1)
		if i >= len(text) {
			return i, Short
		}
	}
}

// plainKey returns the string at the start of text with its quotes. Escapes are decoded.
func plainKey(text []byte) []byte {
	n := 1
	for text[n] != '"' {
		if text[n] == '\\' {
			var s Scanner
			end, _ := s.SkipString(text, 1)
			return append(AppendDecoded([]byte{'"'}, text[1:end-1]), '"')
		}
		n++
	}
	return text[:n+1]
}

// IsValidObject reports whether v, which may be any text, is exactly one JSON object.
func IsValidObject(v Value) bool {
	var s Scanner
	end, st := s.SkipValue(v, 0)
	return v.IsObject() && st == OK && end == len(v)
}

// The code below finds the end of a string. Most strings are short keys and ids, which end within
// the first words. Most bytes are in long texts with an escape every 16 bytes; skipVectors reads
// those in blocks with AVX2, several times as fast as words and without a branch for each escape.
// Words read the rest: less than a block, longer escapes, invalid text, and everything on
// processors without vectors.

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080

	wordSize  = 8
	blockSize = 64
	// shortWords is the number of words of a string that are checked before blocks are used.
	shortWords = 4
	// inside extends the exported results of a scan: the string continues.
	inside = Short + 1
)

// SkipString validates the string with the opening quote at b[i-1] and returns the offset after its
// closing quote, or with Bad and Short the offset where it stopped.
func (s *Scanner) SkipString(b []byte, i int) (int, ScanStatus) {
	for n := 0; n < shortWords && i+wordSize <= len(b); n++ {
		special := firstSpecial(binary.LittleEndian.Uint64(b[i:]))
		if special != 0 {
			i += bits.TrailingZeros64(special) >> 3
			if b[i] == '"' {
				return i + 1, OK
			}
			break
		}
		i += wordSize
	}
	return s.skipLong(b, i)
}

// skipLong continues SkipString after the first words.
func (s *Scanner) skipLong(b []byte, i int) (int, ScanStatus) {
	st := ScanStatus(inside)
	for st == inside {
		i, st = s.skipSpecial(b, s.skipBlocks(b, i))
		for st == inside && i < len(b) && b[i] == '\\' { // where texts are escaped, \u follows \u
			i, st = skipSpecialByte(b, i)
		}
	}
	return i, st
}

// useVectors reports whether this machine can run skipVectors. Tests set it to false, to compare.
var useVectors = cpu.X86.HasAVX2 && cpu.X86.HasBMI1

// skipBlocks skips blocks of a string, with vector instructions where the processor has them.
func (s *Scanner) skipBlocks(b []byte, i int) int {
	if !useVectors {
		return s.skipBlocksInWords(b, i)
	}
	n := len(b) - i
	if n >= blockSize {
		skipped, high := skipVectors(&b[i], n)
		if high {
			s.Flags |= HasHighBytes
		}
		i += skipped
	}
	return i
}

// skipSpecial skips to the next byte that is not plain ASCII, and over it.
func (s *Scanner) skipSpecial(b []byte, i int) (int, ScanStatus) {
	for i+wordSize <= len(b) {
		special := firstSpecial(binary.LittleEndian.Uint64(b[i:]))
		if special != 0 {
			i += bits.TrailingZeros64(special) >> 3
			break
		}
		i += wordSize
	}
	if i >= len(b) {
		return i, Short
	}
	if b[i] < 0x80 {
		return skipSpecialByte(b, i)
	}
	s.Flags |= HasHighBytes
	for i < len(b) && b[i] >= 0x80 {
		i++
	}
	return i, inside
}

// skipSpecialByte skips the ASCII character at b[i]: an escape, the closing quote, or any other.
func skipSpecialByte(b []byte, i int) (int, ScanStatus) {
	c := b[i]
	switch {
	case c == '"':
		return i + 1, OK
	case c == '\\':
		n, st := EscapeLen(b[i:])
		if st != OK {
			return i, st
		}
		return i + n, inside
	case c < 0x20:
		return i, Bad
	}
	return i + 1, inside
}

// firstSpecial returns 0 if no byte of w is a quote, a backslash, a control character or above
// 0x7f. Otherwise the lowest set bit of the result is the top bit of the first such byte. The bits
// of later bytes may be wrong, because the subtractions borrow from them.
func firstSpecial(w uint64) uint64 {
	// XOR with 2 maps control characters and the quote to the bytes below 0x21. A byte above 0x7f
	// sets the top bit of a difference.
	control := (w ^ lowBits*2) - lowBits*0x21
	slash := (w ^ lowBits*'\\') - lowBits
	return (control | slash) & highBits
}
