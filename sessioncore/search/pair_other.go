//go:build !amd64

package search

func nextAVX2(*byte, int, *pair) int { panic("there are no vectors") }
