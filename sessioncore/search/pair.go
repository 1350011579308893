package search

import "encoding/binary"

// pair is two neighbouring bytes of which only some bits count, or another pair of which all do.
type pair struct {
	firstWant, firstMask, secondWant, secondMask byte
	otherFirst, otherSecond                      byte
	vectors                                      *vectors
}

// vectors has each byte of a pair in all places of a vector, in the order in which pair_amd64.s reads them.
type vectors [6][32]byte

func newPair(first, firstMask, second, secondMask, otherFirst, otherSecond byte) pair {
	p := pair{first & firstMask, firstMask, second & secondMask, secondMask, otherFirst, otherSecond, &vectors{}}
	for i, c := range [...]byte{p.firstMask, p.firstWant, p.secondMask, p.secondWant, otherFirst, otherSecond} {
		for k := range p.vectors[i] {
			p.vectors[i][k] = c
		}
	}
	return p
}

// at reports whether one of the pairs may be at an offset of b. At the last byte only half of it is known.
func (p *pair) at(b []byte, i int) bool {
	if i+1 == len(b) {
		return b[i]&p.firstMask == p.firstWant || b[i] == p.otherFirst
	}
	return b[i]&p.firstMask == p.firstWant && b[i+1]&p.secondMask == p.secondWant ||
		b[i] == p.otherFirst && b[i+1] == p.otherSecond
}

// next returns the first offset of b from i on at which one of the pairs may be, len(b) if there is none.
func (p *pair) next(b []byte, i int) int {
	i = p.nextInBlocks(b, i)
	for ; i < len(b) && !p.at(b, i); i++ {
	}
	return i
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// nextInWords is next for all but the last bytes of b: it returns an offset before which there is no pair. It looks at
// eight offsets at once.
func (p *pair) nextInWords(b []byte, i int) int {
	firstMask, firstWant := lows*uint64(p.firstMask), lows*uint64(p.firstWant)
	secondMask, secondWant := lows*uint64(p.secondMask), lows*uint64(p.secondWant)
	otherFirst, otherSecond := lows*uint64(p.otherFirst), lows*uint64(p.otherSecond)
	for ; i+9 <= len(b); i += 8 {
		x, y := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+1:])
		d := (x&firstMask ^ firstWant) | (y&secondMask ^ secondWant)
		e := (x ^ otherFirst) | (y ^ otherSecond)
		if ((d-lows)&^d|(e-lows)&^e)&highs != 0 { // a byte of d or e is 0
			break
		}
	}
	return i
}
