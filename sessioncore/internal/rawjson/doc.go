// Package rawjson reads JSON text without decoding it: a scanner that validates and skips values in
// one pass, a view of a validated value as the bytes of the file, edits of such bytes, strings as
// WTF-8, the lines that this program writes itself, and the few conversions of numbers and times
// that all readers of sessions share.
//
// encoding/json cannot serve session files: numbers, key order, escapes and unknown fields must be
// preserved byte for byte, lone surrogates must not be lost, values nest thousands of levels deep,
// and a truncated text must be distinguished from an invalid one.
//
// It never reads a file, and knows nothing of sessions but how their strings refer to blobs.
package rawjson
