//go:build !amd64

package rawjson

func eachVariant(f func(variant string)) { f("words") }
