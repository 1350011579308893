package search

// nextAVX2 returns the first offset of a pair, at most n, a multiple of 32. It reads n+1 bytes.
//
//go:noescape
func nextAVX2(b *byte, n int, p *pair) int
