package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Strings of a session are sequences of UTF-16 code units and may have lone surrogates. Inside
// sessioncore they are kept as WTF-8: UTF-8 in which a lone surrogate is encoded as three bytes (ED
// A0..BF xx). Bytes of the file that are not UTF-8 read as U+FFFD (docs/format.md, Loading), so a
// surrogate in WTF-8 can only come from an escape.

// Replacement replaces bytes that are not UTF-8.
const Replacement = "�"

// AppendDecoded appends the text of a validated JSON string, given without its quotes, to dst as
// WTF-8. A backslash that begins no escape, as where a body is cut, is kept.
func AppendDecoded(dst, body []byte) []byte {
	dst = slices.Grow(dst, len(body)) // text is seldom longer than its escapes
	valid := utf8.Valid(body)
	for len(body) > 0 {
		n := bytes.IndexByte(body, '\\')
		if n < 0 {
			n = len(body)
		}
		if valid {
			dst = append(dst, body[:n]...)
		} else {
			dst = AppendUTF8(dst, body[:n])
		}
		body = body[n:]
		if len(body) == 0 {
			break
		}
		r, size := ReadEscape(body)
		if size > 0 {
			dst = AppendCodePoint(dst, r)
			body = body[size:]
		} else if len(body) > 1 && unescaped[body[1]] != 0 {
			dst = append(dst, unescaped[body[1]])
			body = body[2:]
		} else {
			dst = append(dst, '\\')
			body = body[1:]
		}
	}
	return dst
}

// unescaped maps an escape's second byte to its character; escaped is the inverse.
var (
	unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
	escaped   = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
)

// Hex4 returns the value of four hexadecimal digits, which are checked before.
func Hex4(b []byte) rune {
	return rune(HexDigit(b[0])<<12 | HexDigit(b[1])<<8 | HexDigit(b[2])<<4 | HexDigit(b[3]))
}

// ReadEscape returns the character of the escape \uXXXX, or of a surrogate pair of two, at the
// start of text, and its length; 0 if there is none.
func ReadEscape(text []byte) (r rune, size int) {
	unit, isEscape := escapedUnit(text)
	if !isEscape {
		return 0, 0
	}
	low, hasNext := escapedUnit(text[escapeLen:])
	if !hasNext {
		return unit, escapeLen
	}
	pair := utf16.DecodeRune(unit, low)
	if pair == utf8.RuneError { // the next escape is another character
		return unit, escapeLen
	}
	return pair, 2 * escapeLen
}

// escapeLen is the length of the longest escape of one code unit.
const escapeLen = len(`\uXXXX`)

// escapedUnit returns the code unit of an escape \uXXXX at the start of a text. ok is false if there is none.
func escapedUnit(text []byte) (unit rune, ok bool) {
	if len(text) < escapeLen || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	_, status := EscapeLen(text)
	return Hex4(text[2:]), status == OK
}

// AppendCodePoint appends r as WTF-8: as UTF-8, or as three bytes if it is a surrogate.
func AppendCodePoint(dst []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(dst, 0xED, byte(0x80|r>>6&0x3F), byte(0x80|r&0x3F))
	}
	return utf8.AppendRune(dst, r)
}

// AppendUTF8 appends raw bytes of a file, with each ill-formed sequence replaced by one U+FFFD, as IllFormedLen counts
// them.
func AppendUTF8(dst, raw []byte) []byte {
	if utf8.Valid(raw) {
		return append(dst, raw...)
	}
	for len(raw) > 0 {
		n := ValidPrefix(raw)
		dst = append(dst, raw[:n]...)
		raw = raw[n:]
		if len(raw) == 0 {
			break
		}
		dst = append(dst, Replacement...)
		raw = raw[IllFormedLen(raw):]
	}
	return dst
}

// ValidPrefix returns the length of the well-formed UTF-8 at the start of b.
func ValidPrefix(b []byte) int {
	i := 0
	for i < len(b) {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		i += n
	}
	return i
}

// IllFormedLen returns the number of bytes at the start of ill-formed b that one U+FFFD replaces:
// the longest prefix of a well-formed sequence, else one byte, by the rule of the Encoding
// Standard, like the client.
func IllFormedLen(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}

// DecodeRune decodes the first code point of WTF-8 text, perhaps a lone surrogate, and its length.
func DecodeRune(b []byte) (rune, int) {
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 && IsSurrogate(b) {
		return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), 3
	}
	return r, n
}

// IsSurrogate reports whether WTF-8 text begins with a lone surrogate.
func IsSurrogate(b []byte) bool {
	if len(b) < 3 || b[0] != 0xED {
		return false
	}
	isSecond := b[1] >= 0xA0 && b[1] <= 0xBF
	isThird := b[2] >= 0x80 && b[2] <= 0xBF
	return isSecond && isThird
}

// Quote returns WTF-8 text as a JSON string, as AppendQuoted does.
func Quote(text string) string { return string(AppendQuoted(nil, text)) }

// AppendQuoted appends WTF-8 text as a JSON string like JSON.stringify (docs/format.md,
// Persisting): it escapes only the quote, the backslash, control characters and lone surrogates.
func AppendQuoted(dst []byte, text string) []byte {
	const hexDigits = "0123456789abcdef"
	noteWork(len(text))
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		length := 1
		mayBeSurrogate := c == 0xED
		isPlain := c >= 0x20 && c != '"' && c != '\\'
		if isPlain && !mayBeSurrogate {
			continue
		}
		if mayBeSurrogate && !beginsSurrogate(text[i:]) {
			continue
		}
		dst = append(dst, text[start:i]...)
		switch {
		case mayBeSurrogate:
			r, _ := DecodeRune([]byte(text[i : i+3]))
			dst = append(dst, '\\', 'u', 'd', hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			length = 3
		case escaped[c] != 0:
			dst = append(dst, '\\', escaped[c])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		start = i + length
		i = start - 1
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

// beginsSurrogate is IsSurrogate for a string.
func beginsSurrogate(text string) bool {
	return IsSurrogate([]byte(text[:min(3, len(text))]))
}

// TrimSpace trims like JavaScript's trim: the white space of Unicode except U+0085, and U+FEFF.
func TrimSpace(text string) string {
	return strings.TrimFunc(text, func(r rune) bool {
		switch r {
		case 0xFEFF:
			return true
		case 0x85:
			return false
		}
		return unicode.IsSpace(r)
	})
}

// EscapeLen returns the length of the escape sequence at the start of b, which is a backslash: OK for a valid one, Bad for
// another, Short for the beginning of a valid one.
func EscapeLen(b []byte) (int, ScanStatus) {
	if len(b) < 2 {
		return 0, Short
	}
	if b[1] != 'u' {
		if unescaped[b[1]] == 0 {
			return 0, Bad
		}
		return 2, OK
	}
	for k := 2; k < escapeLen; k++ {
		if k >= len(b) {
			return 0, Short
		}
		if HexDigit(b[k]) < 0 {
			return 0, Bad
		}
	}
	return escapeLen, OK
}

// IsEscaped reports whether the last byte of this part of a string's body escapes the next one: it ends with an odd number
// of backslashes.
func IsEscaped(body []byte) bool {
	rest := bytes.TrimRight(body, `\`)
	backslashes := len(body) - len(rest)
	return backslashes%2 == 1
}

// CutPoint returns the largest offset up to at that cuts the body of a string neither within a
// character or an escape nor in a surrogate pair.
func CutPoint(body []byte, at int) int {
	if at >= len(body) {
		return len(body)
	}
	at = beforeEscape(body, at)
	const mostContinuations = utf8.UTFMax - 1 // a body that is not UTF-8 may have more
	for back := 0; back < mostContinuations && at > 0 && !utf8.RuneStart(body[at]); back++ {
		at--
	}
	before := at - escapeLen // the place of an escape before the cut
	if before < 0 || IsEscaped(body[:before]) {
		return at
	}
	_, size := ReadEscape(body[before:])
	if size > escapeLen { // it is the first one of a pair
		return before
	}
	return at
}

// beforeEscape returns the offset of the escape that an offset of a string's body is within, or at if there is none.
func beforeEscape(body []byte, at int) int {
	for start := at - 1; start >= 0 && start > at-escapeLen; start-- {
		if body[start] != '\\' || IsEscaped(body[:start]) {
			continue
		}
		n, _ := EscapeLen(body[start:])
		if start+n > at {
			return start
		}
		return at
	}
	return at
}

// HexDigit returns the value of a hexadecimal digit, or -1.
func HexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// BlobPrefix begins a reference to a blob (docs/format.md, Context: "blob:sha256:<hash>").
const BlobPrefix = "blob:sha256:"

// noteString sets HasBlob if the string at the start of b has the blob prefix, escaped or not.
func (s *Scanner) noteString(b []byte) {
	if len(b) == 0 {
		return
	}
	mayBegin := b[0] == 'b' || b[0] == '\\'
	if !mayBegin {
		return
	}
	for _, want := range []byte(BlobPrefix) {
		if len(b) > 0 && b[0] == want {
			b = b[1:]
			continue
		}
		r, size := ReadEscape(b)
		if size == 0 || r != rune(want) {
			return
		}
		b = b[size:]
	}
	s.Flags |= HasBlob
}

// JSONText is a string; its JSON is like the clients', with lone surrogates escaped.
type JSONText string

// MarshalJSON implements json.Marshaler.
func (t JSONText) MarshalJSON() ([]byte, error) { return AppendQuoted(nil, string(t)), nil }

// AppendLine appends v, made of numbers and texts, as a line of JSON. Characters that could control a
// terminal are escaped, also those that JSON would leave as they are.
func AppendLine(dst []byte, v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if err != nil {
		panic(err)
	}
	for _, r := range out.String() {
		if r >= 0x7F && IsControl(r) {
			dst = fmt.Appendf(dst, `\u%04x`, r)
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// IsControl reports whether r is a C0 or C1 control character, DEL, a line or paragraph separator,
// which begins another line in some programs, or a bidi control, which can make a line look like
// another one.
func IsControl(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r <= 0x9F, r == 0x2028, r == 0x2029:
		return true
	}
	return unicode.Is(unicode.Bidi_Control, r)
}
