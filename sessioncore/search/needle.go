package search

import (
	"unicode"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// Needle is a part of a word that the bytes of a file have wherever its text has the word: as it is, or with some of its
// characters as \uXXXX. What it finds need not be the word.
type Needle struct {
	*pattern
	runes   [][]rune // for each character all that stand for it
	offsets []int    // of the characters in the pattern
	escaped map[rune]bool
	// accept, if not nil, reports whether an occurrence counts. to is its end, 0 where it has escapes. b has at least
	// maxPath bytes before and after it, as far as the file has.
	accept func(b []byte, from, to int) bool
}

const (
	// maxRun is how many characters a needle has at most. More make it no better.
	maxRun = 48
	// longestRune is the most bytes that JSON writes a character in: a surrogate pair as two escapes.
	longestRune = 12
)

// NeedleFor returns the needle of a text as it is, nil if it has none.
func NeedleFor(text string) *Needle {
	if text == "" {
		return nil
	}
	return newNeedle(&word{text: text, exact: true})
}

// newNeedle returns the best needle of a word, nil if it has none: where characters differ in length from what else they
// stand for, or are written in yet other ways.
func newNeedle(w *word) (best *Needle) {
	var run Needle
	var want, mask []byte
	finish := func() {
		if len(want) > 0 {
			n := &Needle{pattern: newPattern(want, mask), runes: run.runes, offsets: run.offsets, escaped: run.escaped}
			if best == nil || n.score > best.score {
				best = n
			}
		}
		run, want, mask = Needle{}, nil, nil
	}
	for _, r := range w.text {
		// These have escapes of their own, which end in the character itself: it can only begin a needle.
		if r == '"' || r == '\\' || r == '/' || len(run.runes) == maxRun {
			finish()
		}
		all := variants(r, w.exact)
		b, m, ok := commonBits(all)
		if r < ' ' || r == utf8.RuneError || !ok { // U+FFFD also stands for bytes that are not UTF-8
			finish()
			continue
		}
		run.runes = append(run.runes, all)
		run.offsets = append(run.offsets, len(want))
		if run.escaped == nil {
			run.escaped = map[rune]bool{}
		}
		for _, v := range all {
			run.escaped[v] = true
		}
		want, mask = append(want, b...), append(mask, m...)
	}
	finish()
	return best
}

// variants returns the characters that a character of a word stands for.
func variants(r rune, exact bool) []rune {
	all := []rune{r}
	if exact {
		return all
	}
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		if (o < utf8.RuneSelf) == (r < utf8.RuneSelf) {
			all = append(all, o)
		}
	}
	return all
}

// commonBits returns the bytes of the first character, and a mask of the bits that those of the others share. ok is false
// if they differ in length.
func commonBits(all []rune) (want, mask []byte, ok bool) {
	want = utf8.AppendRune(nil, all[0])
	mask = make([]byte, len(want))
	for i := range mask {
		mask[i] = 0xFF
	}
	for _, r := range all[1:] {
		b := utf8.AppendRune(nil, r)
		if len(b) != len(want) {
			return nil, nil, false
		}
		for i := range b {
			mask[i] &^= b[i] ^ want[i]
		}
	}
	return want, mask, true
}

// reach is how many bytes before and after the pair matter.
func (n *Needle) reach() int {
	size := longestRune * (len(n.runes) + 1)
	if n.accept != nil {
		size += maxPath + 2
	}
	return size
}

// atPair reports whether there is an occurrence of which the pair, or the first escape, is at an offset of b.
func (n *Needle) atPair(b []byte, i int) bool {
	from, to := i-n.at, i-n.at+len(n.want)
	if !n.matches(b, from) {
		if !n.escapedAt(b, i) {
			return false
		}
		from, to = i, 0
	}
	return n.accept == nil || n.accept(b, from, to)
}

// escapedAt reports whether there is an occurrence whose first escape is at an offset of b: what is before that is as in
// the pattern.
func (n *Needle) escapedAt(b []byte, i int) bool {
	r, size := readEscape(b[i:])
	if size == 0 || !n.escaped[r] {
		return false
	}
	for k, all := range n.runes {
		if has(all, r) && n.beforeMatches(b, i, k) && n.afterMatches(b[i+size:], k+1) {
			return true
		}
	}
	return false
}

// beforeMatches reports whether the first k characters end at i.
func (n *Needle) beforeMatches(b []byte, i, k int) bool {
	size := n.offsets[k]
	if i < size {
		return false
	}
	for j, c := range b[i-size : i] {
		if (c^n.want[j])&n.mask[j] != 0 {
			return false
		}
	}
	return true
}

// afterMatches reports whether b begins with the characters from k on, escaped or not.
func (n *Needle) afterMatches(b []byte, k int) bool {
	for ; k < len(n.runes); k++ {
		r, size := readEscape(b)
		if size == 0 {
			r, size = utf8.DecodeRune(b)
		}
		if !has(n.runes[k], r) {
			return false
		}
		b = b[size:]
	}
	return true
}

func has(all []rune, r rune) bool {
	for _, v := range all {
		if v == r {
			return true
		}
	}
	return false
}

// readEscape returns the character that an escape at the start of b stands for, and its length, 0 if there is none.
func readEscape(b []byte) (r rune, size int) {
	unit, ok := hexEscape(b)
	if !ok {
		return 0, 0
	}
	if rawjson.IsHighSurrogate(unit) {
		if low, ok := hexEscape(b[6:]); ok && rawjson.IsLowSurrogate(low) {
			return 0x10000 + (unit-0xD800)<<10 + (low - 0xDC00), 12
		}
	}
	return unit, 6
}

func hexEscape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	if n, status := rawjson.EscapeLen(b); status != rawjson.OK || n != 6 {
		return 0, false
	}
	return rawjson.Hex4(b[2:]), true
}
