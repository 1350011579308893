package search

// nextAVX2 returns the first offset of a pair, at most n, a multiple of 32. It reads n+1 bytes.
//
//go:noescape
func nextAVX2(b *byte, n int, p *pair) int

// skipAVX512 is nextAVX2 for a multiple of 128, and returns one at or before a pair.
//
//go:noescape
func skipAVX512(b *byte, n int, p *pair) int
