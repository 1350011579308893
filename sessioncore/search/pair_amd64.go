package search

// nextAVX2 returns the first offset at which one of the pairs is, at most n, which is a multiple of 32. It reads n+1
// bytes.
//
//go:noescape
func nextAVX2(b *byte, n int, p *pair) int
