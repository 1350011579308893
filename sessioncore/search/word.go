package search

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// word is a word or phrase of a query. Without a capital it matches every text of the same folding.
type word struct {
	text  string // folded unless exact
	exact bool
	// plain finds it in decoded text; nil if that requires folding.
	plain *Needle
	// pattern is its regular expression, or nil.
	pattern *regexp.Regexp
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

// newPattern returns a valid regular expression as a word.
func newPattern(pattern string) *word {
	return &word{text: pattern, exact: true, pattern: regexp.MustCompile(pattern)}
}

// needle returns the best needle of the word, or nil.
func (w *word) needle() *Needle {
	if w.pattern == nil {
		return needleOfText(w.text, w.exact)
	}
	re, err := syntax.Parse(w.text, syntax.Perl)
	if err != nil {
		return nil
	}
	return needleOf(re.Simplify())
}

// needleOfText returns the best needle of a text, or nil. Some agents store the parts of names like
// mcp__docs__search separately, so that a needle must be in one part.
func needleOfText(text string, exact bool) (best *Needle) {
	parts := []string{text}
	if strings.Contains(text, "__") {
		parts = strings.Split(text, "_")
	}
	for _, part := range parts {
		best = better(best, newNeedle(&word{text: part, exact: exact}))
	}
	return best
}

// maxNeedles bounds the alternatives, for each of which a file is read.
const maxNeedles = 8

// needleOf returns the best needle of the texts in all matches of a regular expression, or nil.
func needleOf(re *syntax.Regexp) (best *Needle) {
	switch re.Op {
	case syntax.OpLiteral:
		fold := re.Flags&syntax.FoldCase != 0
		foldsFurther := func(r rune) bool { return fold && (r|0x20 == 'k' || r|0x20 == 's') } // matches beyond ASCII
		for _, text := range strings.FieldsFunc(string(re.Rune), foldsFurther) {
			if fold {
				text = strings.ToLower(text)
			}
			best = better(best, needleOfText(text, !fold))
		}
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, sub := range re.Sub {
			best = better(best, needleOf(sub))
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			n := needleOf(sub)
			if n == nil || n.count()+best.count() > maxNeedles {
				return nil
			}
			last := n
			for ; last.or != nil; last = last.or {
			}
			last.or, best = best, n
		}
	}
	return best
}

// count returns the number of alternatives.
func (n *Needle) count() (count int) {
	for ; n != nil; n = n.or {
		count++
	}
	return count
}

// rarity returns the least score of the alternatives.
func (n *Needle) rarity() int {
	if n.or == nil {
		return n.score
	}
	return min(n.score, n.or.rarity())
}

// better returns the rarer of two needles, which may be nil; alternatives count, too.
func better(a, b *Needle) *Needle {
	if a == nil || b != nil && b.rarity()*a.count() > a.rarity()*b.count() {
		return b
	}
	return a
}

// fold returns the representative of the runes that differ from r only in case, by Unicode's simple
// folding, in which ASCII equals only ASCII. So k is not the Kelvin sign, and ASCII words are found
// without decoding other text.
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

// index returns the offset of the word in decoded text, or -1. scratch is memory for folding.
func (w *word) index(text []byte, scratch *[]byte) int {
	if w.pattern != nil {
		if at := w.pattern.FindIndex(text); at != nil {
			return at[0]
		}
		return -1
	}
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

// equals reports whether a text is the word.
func (w *word) equals(text []byte) bool {
	if w.exact {
		return string(text) == w.text
	}
	return string(appendFolded(nil, text)) == w.text
}
