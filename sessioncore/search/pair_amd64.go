package search

// nextAVX2 returns the first offset of one of the pairs, at most n = 32k. It reads n+1 bytes.
//
//go:noescape
func nextAVX2(b *byte, n int, p *pair) int
