//go:build !amd64

package search

func nextAVX2(*byte, int, *vectors) int { panic("there are no vectors") }
