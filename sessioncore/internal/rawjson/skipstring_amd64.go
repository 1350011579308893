package rawjson

// skipVectors skips blocks of blockSize bytes of a string that continues at p with n bytes. It
// returns the number of bytes before the first one that it leaves to its caller: a quote that is
// not escaped, a control character, or the backslash of an escape that is wrong or longer than two
// bytes. If there is none in the whole blocks, it returns their size, less 1 if their last byte is
// a backslash that escapes the next one. high reports whether one of the bytes that it counts is
// above 0x7f.
//
//go:noescape
func skipVectors(p *byte, n int) (skipped int, high bool)
