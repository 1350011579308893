//go:build !amd64

package search

func (p *pair) nextInBlocks(b []byte, i int) int { return p.nextInWords(b, i) }
