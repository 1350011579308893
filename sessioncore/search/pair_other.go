//go:build !amd64

package search

func nextAVX2(*byte, int, *pair) int { panic("there are no vectors") }

func skipAVX512(*byte, int, *pair) int { panic("there are no vectors") }
