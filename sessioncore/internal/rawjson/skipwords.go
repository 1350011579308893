package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// Without vectors, long texts are skipped in blocks of words: with an escape every 16 bytes, a
// branch for each word would be mispredicted. Without blocks prose is skipped a fifth slower, code
// a third, and texts outside ASCII four times.

// wordBlock is the unit of skipBlocksInWords, with one more byte for an escape at its end.
type wordBlock [blockSize + 1]byte

// skipBlocksInWords skips whole blocks. It stops before a last part of less than a block, before
// the first block with bytes above 0x7f, and before bytes for skipSpecial.
func (s *Scanner) skipBlocksInWords(b []byte, i int) int {
	for i+blockSize < len(b) {
		p := (*wordBlock)(b[i:])
		special, high := p.specials()
		if high && s.Flags&HasHighBytes == 0 {
			break
		}
		if special == 0 {
			i += blockSize
			continue
		}
		next := i + blockSize
		for special != 0 {
			at := bits.TrailingZeros64(special)
			if p[at] == '\\' && unescaped[p[at+1]] != 0 {
				special &^= 3 << at // the escaped byte may be a quote or a backslash
				next = max(next, i+at+2)
				continue
			}
			return i + at
		}
		i = next
	}
	return i
}

// specials returns a bit for each byte of p but the last: 1 for a quote, a backslash or a control
// character. high reports bytes above 0x7f.
func (p *wordBlock) specials() (special uint64, high bool) {
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

// plainBytes returns a bit for each byte of w: 0 for a quote, a backslash or a control character.
func plainBytes(w uint64) uint64 {
	// Sums of seven bits do not carry into the next byte, so all top bits are right.
	ascii := w &^ highBits
	control := (ascii ^ lowBits*2) + lowBits*(0x80-0x21)
	slash := (ascii ^ lowBits*'\\') + lowBits*0x7f
	// The product has the top bits of all bytes in its highest byte.
	return ((control&slash | w) & highBits) * 0x0002040810204081 >> 56
}
