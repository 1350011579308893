package search

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word or phrase of a query. Without a capital it matches any case.
type word struct {
	text  string // in lower case unless exact
	exact bool
	// plain finds it in decoded text; nil if only the regular expression does.
	plain     *Needle
	pattern   string         // the word as a regular expression
	regex     *regexp.Regexp // pattern; nil if plain suffices
	isPattern bool           // the query has the pattern
}

// newWord returns a word. Without a capital it matches by Unicode's simple folding, except that ASCII equals
// only ASCII: k is not the Kelvin sign. So ASCII words are found without decoding other text.
func newWord(text string) *word {
	w := &word{text: text, pattern: regexp.QuoteMeta(text)}
	w.exact = strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsUpper(r) || unicode.IsTitle(r)
	})
	isASCII := !strings.ContainsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf
	})
	if !w.exact {
		w.pattern = ""
		for _, r := range text {
			w.pattern += "[" + regexp.QuoteMeta(string(variants(r, false))) + "]"
		}
	}
	if w.exact || isASCII {
		w.plain = &Needle{}
		for _, r := range text {
			w.plain.add(r, w.exact)
		}
		w.plain.choosePair()
		return w
	}
	w.regex = regexp.MustCompile(w.pattern)
	return w
}

// needle returns the best needle of the word, or nil.
func (w *word) needle() *Needle {
	if !w.isPattern {
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

// maxNeedles bounds the alternatives. A file is read for each of them.
const maxNeedles = 8

// needleOf returns the best needle of the texts in all matches of a regular expression, or nil. For
// "lock(ed|ing)" it is "lock", and for "(red|green)" it is "red" or "green".
func needleOf(re *syntax.Regexp) (best *Needle) {
	switch re.Op {
	case syntax.OpLiteral:
		return needleOfLiteral(re)
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, sub := range re.Sub {
			best = better(best, needleOf(sub))
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			n := needleOf(sub)
			if n == nil || n.count()+best.count() > maxNeedles {
				return nil // a match may have none of the needles
			}
			n.addAlternative(best)
			best = n
		}
	}
	return best
}

// needleOfLiteral returns the best needle of a text in a regular expression. In a text of any case K and S also
// match characters beyond ASCII, so that a needle does not have them.
func needleOfLiteral(re *syntax.Regexp) (best *Needle) {
	isAnyCase := re.Flags&syntax.FoldCase != 0
	isBreak := func(r rune) bool {
		return isAnyCase && strings.ContainsRune("kKsS", r)
	}
	for _, text := range strings.FieldsFunc(string(re.Rune), isBreak) {
		if isAnyCase {
			text = strings.ToLower(text)
		}
		best = better(best, needleOfText(text, !isAnyCase))
	}
	return best
}

// addAlternative adds a needle, which may be nil, behind the last alternative of n.
func (n *Needle) addAlternative(other *Needle) {
	last := n
	for last.or != nil {
		last = last.or
	}
	last.or = other
}

// count returns the number of alternatives, 0 for nil.
func (n *Needle) count() (count int) {
	for alternative := n; alternative != nil; alternative = alternative.or {
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

// better returns the rarer of two needles; one or both may be nil. Alternatives make a needle less rare.
func better(a, b *Needle) *Needle {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	if b.rarity()*a.count() > a.rarity()*b.count() {
		return b
	}
	return a
}

// find returns the range of the word's first match in decoded text; start is negative without one.
func (w *word) find(text []byte) (start, end int) {
	if w.plain != nil {
		start = w.plain.index(text)
		return start, start + len(w.plain.want)
	}
	at := w.regex.FindIndex(text)
	if at != nil {
		return at[0], at[1]
	}
	return -1, -1
}

// isIn reports whether decoded text has the word.
func (w *word) isIn(text []byte) bool {
	start, _ := w.find(text)
	return start >= 0
}
