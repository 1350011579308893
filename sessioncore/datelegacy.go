package sessioncore

import (
	"unicode"
	"unicode/utf8"
)

// The rules by which Date reads what is no ISO 8601: "Mon, 05 Jan 2026 09:00:00 GMT", "1/5/2026 9:00
// PM" and much that nobody means as a time. They look at one token after the other, with one more in
// view.

// dateKind is a token's kind.
type dateKind uint8

const (
	tokenEnd dateKind = iota
	tokenNumber
	tokenSymbol // one of : - + . )
	tokenSpace  // one white space
	tokenOther  // another character, or a text in parentheses
	tokenWord   // a word without meaning
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
	"jan": {kind: tokenMonth, value: 1}, "feb": {kind: tokenMonth, value: 2}, "mar": {kind: tokenMonth, value: 3},
	"apr": {kind: tokenMonth, value: 4}, "may": {kind: tokenMonth, value: 5}, "jun": {kind: tokenMonth, value: 6},
	"jul": {kind: tokenMonth, value: 7}, "aug": {kind: tokenMonth, value: 8}, "sep": {kind: tokenMonth, value: 9},
	"oct": {kind: tokenMonth, value: 10}, "nov": {kind: tokenMonth, value: 11}, "dec": {kind: tokenMonth, value: 12},
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
		if c == ' ' || c >= '\t' && c <= '\r' {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRune(b)
	if r == 0xFEFF || unicode.IsSpace(r) && r != 0x85 { // where JavaScript differs from Unicode
		return n
	}
	return 0
}

// dateZone is an offset from UTC.
type dateZone struct {
	sign         int // 1 or -1; 0: there is no offset
	hour, minute int
	waits        bool // for the minutes, behind ±h:
}

// offset returns the offset in ms. The client reckons it in 32 bits, and so hours beyond reason can
// still make an offset.
func (z dateZone) offset() (ms int64, ok bool) {
	seconds := int32(uint32(z.hour)*3600 + uint32(z.minute)*60)
	return int64(z.sign) * int64(seconds) * 1000, seconds >= 0
}

// dateReader gathers the parts of a time.
type dateReader struct {
	dateScanner
	next dateToken // the one in view

	day   [3]int // what seems to be year, month and day, in the text's order; 1 where missing
	days  int    // how many of them there are
	month int    // given by name, else 0
	isISO bool

	time    [4]int // hour, minute, second, ms
	times   int
	half    int // hours to add
	hasHalf bool
	zone    dateZone
}

func (r *dateReader) take() dateToken {
	t := r.next
	r.next = r.token()
	return t
}

// skip takes the token in view if it is that symbol.
func (r *dateReader) skip(symbol int) bool {
	if !r.next.is(symbol) {
		return false
	}
	r.take()
	return true
}

// fixed takes the token in view if it is a number of that many digits and within bounds.
func (r *dateReader) fixed(length, least, most int) (n int, ok bool) {
	t := r.next
	if t.kind != tokenNumber || t.length != length || t.value < least || t.value > most {
		return 0, false
	}
	r.take()
	return t.value, true
}

func (r *dateReader) addDay(n int) bool {
	if r.days == len(r.day) {
		return false
	}
	r.day[r.days] = n
	r.days++
	return true
}

func (r *dateReader) addTime(n int) bool {
	if r.times == len(r.time) {
		return false
	}
	r.time[r.times] = n
	r.times++
	return true
}

// lastTime adds the number with which the time of day ends.
func (r *dateReader) lastTime(n int) {
	if r.addTime(n) {
		r.times = len(r.time)
	}
}

// timeFits reports whether n can go on a time of day that has begun.
func (r *dateReader) timeFits(n int) bool {
	return (r.times == 1 || r.times == 2) && n <= 59 || r.times == 3 && n <= 999
}
