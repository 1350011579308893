package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// This file finds the end of a string. Nearly all bytes of a session are in strings. Most strings are
// short keys and ids: those end within the first words. Most bytes are in long texts, where an escape
// comes every 16 bytes: those are read in blocks, because a branch for each word would be mispredicted
// at each escape.
//
// There are two ways to skip blocks, which find the same: skipVectors in assembly for processors with AVX2, several times
// as fast and without a branch for each escape; and skipBlocksInWords for all others. The ends of texts, which are
// less than a block, are read in words by both, and so are escapes of more than two bytes and whatever is wrong.

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080

	wordSize  = 8
	blockSize = 64
	// shortWords is the number of words of a string that are checked one by one before blocks are used.
	shortWords = 4
	// inside extends the exported results of a scan: the string continues.
	inside = Short + 1
)

// block is the unit of skipBlocksInWords, with the byte after it, which may belong to an escape at its end.
type block [blockSize + 1]byte

// SkipString validates the string whose opening quote is at b[i-1] and returns the offset after its closing quote.
// If the status is Bad or Short, it returns the offset where it stopped.
func (s *Scanner) SkipString(b []byte, i int) (int, Status) {
	for n := 0; n < shortWords && i+wordSize <= len(b); n++ {
		if special := firstSpecial(binary.LittleEndian.Uint64(b[i:])); special != 0 {
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
func (s *Scanner) skipLong(b []byte, i int) (int, Status) {
	st := Status(inside)
	for st == inside {
		if i, st = s.skipBlocks(b, i); st == inside {
			i, st = s.skipSpecial(b, i)
		}
		for st == inside && i < len(b) && b[i] == '\\' { // where texts are escaped, \u follows \u
			i, st = skipSpecialByte(b, i)
		}
	}
	return i, st
}

// skipBlocksInWords skips block after block. It stops inside the string if less than a block is left, and before the first
// block with bytes above 0x7f, which skipSpecial records.
func (s *Scanner) skipBlocksInWords(b []byte, i int) (int, Status) {
blocks:
	for i+blockSize < len(b) {
		p := (*block)(b[i:])
		special, high := p.specials()
		if high && s.Flags&HasHighBytes == 0 {
			break
		}
		if special == 0 {
			if i += blockSize; !high {
				i = skipPlain(b, i)
			}
			continue
		}
		next := i + blockSize
		for special != 0 {
			at := bits.TrailingZeros64(special)
			if p[at] == '\\' && shortEscape[p[at+1]] {
				special &^= 3 << at // the escaped byte may be a quote or a backslash
				next = max(next, i+at+2)
				continue
			}
			st := Status(inside)
			if i, st = skipSpecialByte(b, i+at); st != inside {
				return i, st
			}
			continue blocks
		}
		i = next
	}
	return i, inside
}

// skipSpecial skips to the next byte that is not plain ASCII, and over it.
func (s *Scanner) skipSpecial(b []byte, i int) (int, Status) {
	for i+wordSize <= len(b) {
		if special := firstSpecial(binary.LittleEndian.Uint64(b[i:])); special != 0 {
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

// skipSpecialByte skips the character at b[i], which is below 0x80: an escape, the closing quote, or any other.
func skipSpecialByte(b []byte, i int) (int, Status) {
	switch c := b[i]; {
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

// skipPlain skips blocks of plain characters. It is faster than skipBlocksInWords if there are many in a row.
func skipPlain(b []byte, i int) int {
	for rest := b[i:]; len(rest) >= blockSize; rest = rest[blockSize:] {
		p := (*[blockSize]byte)(rest)
		special := firstSpecial(binary.LittleEndian.Uint64(p[0:])) |
			firstSpecial(binary.LittleEndian.Uint64(p[8:])) |
			firstSpecial(binary.LittleEndian.Uint64(p[16:])) |
			firstSpecial(binary.LittleEndian.Uint64(p[24:])) |
			firstSpecial(binary.LittleEndian.Uint64(p[32:])) |
			firstSpecial(binary.LittleEndian.Uint64(p[40:])) |
			firstSpecial(binary.LittleEndian.Uint64(p[48:])) |
			firstSpecial(binary.LittleEndian.Uint64(p[56:]))
		if special != 0 {
			break
		}
		i += blockSize
	}
	return i
}

// firstSpecial returns 0 if no byte of w is a quote, a backslash, a control character or above 0x7f. Otherwise the
// lowest set bit of the result is the top bit of the first such byte. The bits of later bytes may be wrong, because
// the subtractions borrow from them.
func firstSpecial(w uint64) uint64 {
	// XOR with 2 maps control characters and the quote to the bytes below 0x21. Each byte above 0x7f sets the top
	// bit of at least one of the differences.
	control := (w ^ lowBits*2) - lowBits*0x21
	slash := (w ^ lowBits*'\\') - lowBits
	return (control | slash) & highBits
}

// specials returns a bit for each byte of p but the last: 1 if the byte is a quote, a backslash or a control
// character. high reports whether there are bytes above 0x7f.
func (p *block) specials() (special uint64, high bool) {
	w0 := binary.LittleEndian.Uint64(p[0:])
	w1 := binary.LittleEndian.Uint64(p[8:])
	w2 := binary.LittleEndian.Uint64(p[16:])
	w3 := binary.LittleEndian.Uint64(p[24:])
	w4 := binary.LittleEndian.Uint64(p[32:])
	w5 := binary.LittleEndian.Uint64(p[40:])
	w6 := binary.LittleEndian.Uint64(p[48:])
	w7 := binary.LittleEndian.Uint64(p[56:])
	plain := plainBytes(w0) | plainBytes(w1)<<8 | plainBytes(w2)<<16 | plainBytes(w3)<<24 |
		plainBytes(w4)<<32 | plainBytes(w5)<<40 | plainBytes(w6)<<48 | plainBytes(w7)<<56
	return ^plain, (w0|w1|w2|w3|w4|w5|w6|w7)&highBits != 0
}

// plainBytes returns a bit for each byte of w: 0 if it is a quote, a backslash or a control character.
func plainBytes(w uint64) uint64 {
	// Sums of seven bits do not carry into the next byte, so all top bits are right, not only the first.
	ascii := w &^ highBits
	control := (ascii ^ lowBits*2) + lowBits*(0x80-0x21)
	slash := (ascii ^ lowBits*'\\') + lowBits*0x7f
	// The product has the top bits of all bytes in its highest byte.
	return ((control&slash | w) & highBits) * 0x0002040810204081 >> 56
}
