package sessioncore

import (
	"unicode"
	"unicode/utf8"
)

// The tokens in which Date reads a text. Everything is a token, and any text is a sequence of them.

// dateKind is a token's kind.
type dateKind uint8

const (
	tokenEnd dateKind = iota
	tokenNumber
	tokenSymbol // one of : - + . )
	tokenSpace  // one white space
	tokenOther  // another character, or a text in parentheses
	tokenWord   // a word without meaning; those with one follow
	tokenMonth
	tokenHalf // am or pm
	tokenZone
	tokenT
)

// dateToken is one token. value is a number's value, a symbol's character, a word's meaning; length
// that of a number or a word.
type dateToken struct {
	kind   dateKind
	value  int
	length int
}

// dateWords are the words with a meaning; value is the number of a month, the hours to add, the hours
// that a zone is ahead of UTC.
var dateWords = map[string]dateToken{
	"jan": {kind: tokenMonth, value: 1}, "feb": {kind: tokenMonth, value: 2},
	"mar": {kind: tokenMonth, value: 3}, "apr": {kind: tokenMonth, value: 4},
	"may": {kind: tokenMonth, value: 5}, "jun": {kind: tokenMonth, value: 6},
	"jul": {kind: tokenMonth, value: 7}, "aug": {kind: tokenMonth, value: 8},
	"sep": {kind: tokenMonth, value: 9}, "oct": {kind: tokenMonth, value: 10},
	"nov": {kind: tokenMonth, value: 11}, "dec": {kind: tokenMonth, value: 12},
	"am": {kind: tokenHalf, value: 0}, "pm": {kind: tokenHalf, value: 12},
	"z": {kind: tokenZone}, "ut": {kind: tokenZone}, "utc": {kind: tokenZone}, "gmt": {kind: tokenZone},
	"est": {kind: tokenZone, value: -5}, "edt": {kind: tokenZone, value: -4},
	"cst": {kind: tokenZone, value: -6}, "cdt": {kind: tokenZone, value: -5},
	"mst": {kind: tokenZone, value: -7}, "mdt": {kind: tokenZone, value: -6},
	"pst": {kind: tokenZone, value: -8}, "pdt": {kind: tokenZone, value: -7},
	"t": {kind: tokenT},
}

func (t dateToken) is(symbol int) bool { return t.kind == tokenSymbol && t.value == symbol }
func (t dateToken) isSign() bool       { return t.is('+') || t.is('-') }
func (t dateToken) isZ() bool          { return t.kind == tokenZone && t.length == 1 }

// zone is the offset that a sign and its numbers make.
func (t dateToken) zone(hour, minute int) dateZone {
	if t.is('-') {
		return dateZone{sign: -1, hour: hour, minute: minute}
	}
	return dateZone{sign: 1, hour: hour, minute: minute}
}

// milliseconds is a number taken as a fraction of a second, what is finer being cut off. Of a number
// with zeros in front and more than nine digits in all too much comes out, as in the client.
func (t dateToken) milliseconds() int {
	switch t.length {
	case 1:
		return t.value * 100
	case 2:
		return t.value * 10
	}
	n := t.value
	for i := min(t.length, maxDateDigits); i > 3; i-- {
		n /= 10
	}
	return n
}

// maxDateDigits is how many digits of a number count, zeros in front aside.
const maxDateDigits = 9

// dateScanner cuts text (WTF-8) into tokens.
type dateScanner struct {
	text []byte
	at   int
}

func (s *dateScanner) token() dateToken {
	if s.at >= len(s.text) || s.text[s.at] == 0 { // a NUL ends the text
		return dateToken{kind: tokenEnd}
	}
	c := s.text[s.at]
	if n := dateSpace(s.text[s.at:]); n > 0 {
		s.at += n
		return dateToken{kind: tokenSpace}
	}
	switch {
	case c >= '0' && c <= '9':
		return s.number()
	case c >= 'A':
		return s.word()
	case c == '(':
		s.skipParentheses()
		return dateToken{kind: tokenOther}
	}
	s.at++
	switch c {
	case ':', '-', '+', '.', ')':
		return dateToken{kind: tokenSymbol, value: int(c)}
	}
	return dateToken{kind: tokenOther}
}

func (s *dateScanner) number() dateToken {
	start, value, digits := s.at, 0, 0
	for ; s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9'; s.at++ {
		digit := int(s.text[s.at] - '0')
		if digits == 0 && digit == 0 {
			continue
		}
		if digits < maxDateDigits {
			value = value*10 + digit
		}
		digits++
	}
	return dateToken{kind: tokenNumber, value: value, length: s.at - start}
}

// word reads a word: three letters of it matter, and of a month's name more may follow. The length is
// in bytes, which differs from JavaScript's only where a word has no meaning or is too long for one.
func (s *dateScanner) word() dateToken {
	start := s.at
	for s.at < len(s.text) && s.text[s.at] >= 'A' && dateSpace(s.text[s.at:]) == 0 {
		s.at++
	}
	var lower [3]byte
	n := copy(lower[:], s.text[start:s.at])
	for i := range lower[:n] {
		lower[i] |= 0x20
	}
	t, known := dateWords[string(lower[:n])]
	if length := s.at - start; known && (length <= 3 || t.kind == tokenMonth) {
		t.length = length
		return t
	}
	return dateToken{kind: tokenWord}
}

// skipParentheses skips a text in parentheses, which may hold others; one that is not closed runs to
// the end.
func (s *dateScanner) skipParentheses() {
	open := 0
	for ; s.at < len(s.text) && s.text[s.at] != 0; s.at++ {
		switch s.text[s.at] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				s.at++
				return
			}
		}
	}
}

// dateSpace returns the length of the white space character that b begins with, 0 if it is none.
func dateSpace(b []byte) int {
	if c := b[0]; c < utf8.RuneSelf {
		// Not \v: it counts only where the client keeps a text in 16-bit units.
		if c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r' {
			return 1
		}
		return 0
	}
	switch r, n := utf8.DecodeRune(b); {
	case r == 0x85 || r == 0x2028 || r == 0x2029: // Unicode's white space, but not the client's here
		return 0
	case r == 0xFEFF || unicode.IsSpace(r):
		return n
	}
	return 0
}
