package search

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// word is a word or phrase of a query. Without a capital in it, it stands for every text of the same folding.
type word struct {
	text  string // folded unless exact
	exact bool
	// plain finds it in decoded text; nil if text has to be folded for that.
	plain *Needle
}

func newWord(text string) *word {
	isExact := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) })
	if !isExact {
		text = string(appendFolded(nil, []byte(text)))
	}
	w := &word{text: text, exact: isExact}
	if isExact || !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		w.plain = &Needle{}
		for _, r := range text {
			w.plain.add(r, isExact)
		}
		w.plain.choosePair()
	}
	return w
}

// fold returns the rune that stands for all that differ from r only in case: by Unicode's simple folding, but a
// character of ASCII only ever equals one of ASCII. So a k is not the sign for Kelvin, and words of ASCII can be found
// without decoding what is not ASCII.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		if o >= utf8.RuneSelf && o < least {
			least = o
		}
	}
	return least
}

// appendFolded appends WTF-8 text folded.
func appendFolded(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := rawjson.DecodeRune(text)
		if r < utf8.RuneSelf {
			dst = append(dst, byte(fold(r)))
		} else {
			dst = rawjson.AppendCodePoint(dst, fold(r))
		}
		text = text[n:]
	}
	return dst
}

// index returns where the word is in decoded text, -1 if it is not. scratch is memory for folding.
func (w *word) index(text []byte, scratch *[]byte) int {
	if w.plain != nil {
		return w.plain.index(text)
	}
	*scratch = appendFolded((*scratch)[:0], text)
	at := bytes.Index(*scratch, []byte(w.text))
	if at < 0 {
		return -1
	}
	plain := 0 // folding can change the length of characters
	for folded := 0; folded < at; {
		r, n := rawjson.DecodeRune(text[plain:])
		plain += n
		folded += len(rawjson.AppendCodePoint(nil, fold(r)))
	}
	return plain
}

// equals reports whether a text is the word as a whole.
func (w *word) equals(text []byte) bool {
	if w.exact {
		return string(text) == w.text
	}
	return string(appendFolded(nil, text)) == w.text
}
