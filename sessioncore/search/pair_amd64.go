package search

import "golang.org/x/sys/cpu"

// nextAVX2 returns the first offset of a pair, at most n, a multiple of 32. It reads n+1 bytes.
//
//go:noescape
func nextAVX2(b *byte, n int, p *pair) int

// nextAVX512 is nextAVX2 for a multiple of 64.
//
//go:noescape
func nextAVX512(b *byte, n int, p *pair) int

// nextInBlocks is nextInWords with the vectors of the processor. This is the hot loop.
func (p *pair) nextInBlocks(b []byte, i int) int {
	n := len(b) - i - 1
	switch {
	case n >= 64 && cpu.X86.HasAVX512BW:
		return i + nextAVX512(&b[i], n&^63, p)
	case n >= 32 && cpu.X86.HasAVX2:
		return i + nextAVX2(&b[i], n&^31, p)
	}
	return p.nextInWords(b, i)
}
