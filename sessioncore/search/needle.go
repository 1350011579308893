package search

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/cpu"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// Needle is a part of a word that a file has wherever its text has the word: as it is, or with some
// characters as \uXXXX. A match need not be the word. For the word "öl", which matches any case, it has
//
//	want   C3 B6 6C             the bytes of one spelling
//	mask   FF DF DF             the bits that both cases have in common
//	runes  ö Ö, l L
//	pair   C3 and B6 & DF       the two rarest neighbours, which the hot loop looks for
//
// So a file with "öl", "ÖL" or "\u00f6l" is found.
type Needle struct {
	want, mask []byte   // the bytes, and their significant bits
	runes      [][]rune // the spellings of each character
	at         int      // offset of the pair in want
	pair       pair     // two neighbouring bytes of want, or an escape
	score      int      // rarity: higher is rarer
	// accept, unless nil, reports whether an occurrence at an offset counts. b has message.MaxPath
	// bytes before and after it, as far as the file has.
	accept func(b []byte, at int) bool
	// anyLine means that it need not be on the line of a hit.
	anyLine bool
	// or is an alternative needle, or nil.
	or *Needle
}

// longestRune is the maximum size of a character in JSON: a surrogate pair of two escapes.
const longestRune = 12

// newNeedle returns the best needle of a word, or nil if there is none. A needle ends before a character with
// spellings of several lengths, or with other escapes than \uXXXX, and the next one begins behind it.
func newNeedle(w *word) *Needle {
	var best *Needle
	n := &Needle{}
	endNeedle := func() {
		n.choosePair()
		isBetter := best == nil || n.score > best.score
		if n.score > 0 && isBetter {
			best = n
		}
		n = &Needle{}
	}
	for _, r := range w.text {
		// These have escapes of their own, which end in the character. It can only begin a needle.
		if r == '"' || r == '\\' || r == '/' {
			endNeedle()
		}
		// U+FFFD also means bytes that are not UTF-8.
		if r < ' ' || r == utf8.RuneError {
			endNeedle()
			continue
		}
		isAdded := n.add(r, w.exact)
		if !isAdded {
			endNeedle()
		}
	}
	endNeedle()
	return best
}

// add adds a character to the end of the needle. It returns false, and adds nothing, if its spellings differ in
// length.
func (n *Needle) add(r rune, exact bool) bool {
	all := variants(r, exact)
	want := utf8.AppendRune(nil, r)
	mask := bytes.Repeat([]byte{0xFF}, len(want))
	for _, other := range all[1:] {
		b := utf8.AppendRune(nil, other)
		if len(b) != len(want) {
			return false
		}
		for i := range b {
			mask[i] &^= b[i] ^ want[i] // the bits in which two spellings differ do not count
		}
	}
	n.want = append(n.want, want...)
	n.mask = append(n.mask, mask...)
	n.runes = append(n.runes, all)
	return true
}

// variants returns the characters that match a character of a word: it comes first, and alone if exact. A
// character of ASCII and another one never match.
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

// common are the frequent bytes of session files, the most frequent first.
const common = "\"e tanois\\rlcdu:mp,gfh0bk_y1-v.w2/3x45{}67j89(=)zq'[];*+<>#@`$"

// rarity returns how rare the bytes are that equal c by a mask: about the binary logarithm of the bytes of a
// session file for one of them, from 3 to 12.
func rarity(c, mask byte) int {
	rarest := 12
	for i := range len(common) {
		isLike := (common[i]^c)&mask == 0
		if isLike {
			rarest = min(rarest, 3+i/8) // a rank of eight bytes is half as frequent as the one before
		}
	}
	return rarest
}

// choosePair sets the rarest pair of neighbouring bytes, and the score, which is the sum of the rarities of all
// bytes and 0 for an empty needle. The last byte makes a pair with any byte, which is chosen only if there is no
// other.
func (n *Needle) choosePair() {
	best := 0
	for i := range n.want {
		pairRarity := rarity(n.want[i], n.mask[i])
		n.score += pairRarity
		var second, secondMask byte
		if i+1 < len(n.want) {
			second = n.want[i+1]
			secondMask = n.mask[i+1]
			pairRarity += rarity(second, secondMask)
		}
		isWhole := secondMask != 0
		isChosen := isWhole || best == 0
		if isChosen && pairRarity > best {
			best = pairRarity
			n.at = i
			n.pair = newPair(n.want[i], n.mask[i], second, secondMask)
		}
	}
}

// reach is the number of significant bytes before and after the pair: the size of the needle with all characters
// escaped, and the bytes that accept reads.
func (n *Needle) reach() int {
	size := longestRune * (len(n.runes) + 1)
	if n.accept != nil {
		size += message.MaxPath + len(`""`)
	}
	return size
}

// isInRaw reports whether a file with JSON within strings, as in arguments of calls, has the
// needle wherever the session has it: surrogate pairs of escapes are not found there. No needle is in none.
func (n *Needle) isInRaw() bool {
	if n == nil {
		return false
	}
	for alternative := n; alternative != nil; alternative = alternative.or {
		for _, spellings := range alternative.runes {
			needsPair := slices.ContainsFunc(spellings, func(r rune) bool {
				return r > 0xFFFF
			})
			if needsPair {
				return false
			}
		}
	}
	return true
}

// anywhere returns the needle without its test of places.
func (n *Needle) anywhere() *Needle {
	all := *n
	all.accept = nil
	if all.or != nil {
		all.or = all.or.anywhere()
	}
	return &all
}

// orElse returns the needle with another one as an alternative, which may be nil.
func (n *Needle) orElse(other *Needle) *Needle {
	switch {
	case n == nil:
		return other
	case other == nil:
		return n
	}
	all := *n
	all.or = n.or.orElse(other)
	return &all
}

// inRaw returns the needle for the records of another agent, which may lack the names of tools.
func (n *Needle) inRaw() *Needle {
	all := n.anywhere()
	for other := n; other != nil; other = other.or {
		for _, record := range message.RecordsOf(strings.ToLower(string(other.want))) {
			found := newNeedle(&word{text: record, exact: true})
			found.or = all
			all = found
		}
	}
	return all
}

// isIn reports whether decoded text has the needle.
func (n *Needle) isIn(text []byte) bool {
	for alternative := n; alternative != nil; alternative = alternative.or {
		if alternative.index(text) >= 0 {
			return true
		}
	}
	return false
}

// index returns the offset of the first occurrence in decoded text, or -1.
func (n *Needle) index(text []byte) int {
	at := n.pair.next(text, n.at)
	for at < len(text) {
		if n.isPlain(text, at-n.at) {
			return at - n.at
		}
		at = n.pair.next(text, at+1)
	}
	return -1
}

// isAt reports whether the pair of an occurrence that counts, or an escaped character of it, is at an offset of b.
func (n *Needle) isAt(b []byte, offset int) bool {
	occurs := n.isPlain(b, offset-n.at) || n.beginsEscaped(b[offset:])
	if !occurs {
		return false
	}
	return n.accept == nil || n.accept(b, offset)
}

// isPlain reports whether the bytes, none of them escaped, are at an offset of b, which may be outside of it.
func (n *Needle) isPlain(b []byte, at int) bool {
	if at < 0 || at+len(n.want) > len(b) {
		return false
	}
	for i, c := range b[at : at+len(n.want)] {
		if (c^n.want[i])&n.mask[i] != 0 {
			return false
		}
	}
	return true
}

// beginsEscaped reports whether b begins with an escaped character and all following ones. It
// ignores the ones before it, as escapes are rare.
func (n *Needle) beginsEscaped(b []byte) bool {
	r, size := rawjson.ReadEscape(b)
	if size == 0 {
		return false
	}
	rest := b[size:]
	for k, spellings := range n.runes {
		if slices.Contains(spellings, r) && n.follow(rest, n.runes[k+1:]) {
			return true
		}
	}
	return false
}

// follow reports whether b begins with characters, escaped or not, each in one of its spellings.
func (n *Needle) follow(b []byte, characters [][]rune) bool {
	for _, spellings := range characters {
		for len(b) > 1 && b[0] == '\\' && b[1] == '\\' { // within a string that is JSON itself
			b = b[1:]
		}
		r, size := rawjson.ReadEscape(b)
		if size == 0 {
			r, size = utf8.DecodeRune(b)
		}
		if !slices.Contains(spellings, r) {
			return false
		}
		b = b[size:]
	}
	return true
}

// pair is two neighbouring bytes with masks, or an escape's beginning, as pair_amd64.s has it.
type pair struct{ firstMask, first, secondMask, second, backslash, u byte }

// newPair returns the pair of two bytes with their significant bits.
func newPair(first, firstMask, second, secondMask byte) pair {
	return pair{
		firstMask:  firstMask,
		first:      first & firstMask,
		secondMask: secondMask,
		second:     second & secondMask,
		backslash:  '\\',
		u:          'u',
	}
}

// at reports whether the bytes or an escape may be at an offset of b. At the last byte their first half counts.
func (p *pair) at(b []byte, i int) bool {
	isFirst := b[i]&p.firstMask == p.first
	isBackslash := b[i] == p.backslash
	if i+1 == len(b) {
		return isFirst || isBackslash
	}
	next := b[i+1]
	isPair := isFirst && next&p.secondMask == p.second
	isEscape := isBackslash && next == p.u
	return isPair || isEscape
}

// next returns the first offset of the bytes or an escape from i on, or len(b). This is the hot loop: it
// looks at 32 offsets at once, then at 8, then at each.
func (p *pair) next(b []byte, i int) int {
	n := (len(b) - i - 1) &^ 31 // whole blocks, without the last byte, which has no neighbour
	if n > 0 && cpu.X86.HasAVX2 {
		i += nextAVX2(&b[i], n, p)
	}
	i = p.nextInWords(b, i)
	for i < len(b) && !p.at(b, i) {
		i++
	}
	return i
}

// The lowest and the highest bit of each byte in a word.
const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// nextInWords returns an offset from i on such that no pair is before it: the eight offsets from it on have one,
// or they are the last ones of b.
func (p *pair) nextInWords(b []byte, i int) int {
	firstMask := lows * uint64(p.firstMask)
	first := lows * uint64(p.first)
	secondMask := lows * uint64(p.secondMask)
	second := lows * uint64(p.second)
	backslash := lows * uint64(p.backslash)
	u := lows * uint64(p.u)
	for ; i+9 <= len(b); i += 8 { // eight first bytes, and the neighbour of the last one
		x := binary.LittleEndian.Uint64(b[i:])
		y := binary.LittleEndian.Uint64(b[i+1:])
		// A byte of d is 0 where the pair is, and a byte of e where an escape is.
		d := (x&firstMask ^ first) | (y&secondMask ^ second)
		e := (x ^ backslash) | (y ^ u)
		if ((d-lows)&^d|(e-lows)&^e)&highs != 0 { // a byte of d or e is 0
			break
		}
	}
	return i
}
