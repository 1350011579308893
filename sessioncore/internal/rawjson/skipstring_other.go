//go:build !amd64

package rawjson

func skipVectors(*byte, int) (skipped int, high bool) { panic("there are no vectors") }
