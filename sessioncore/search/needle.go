package search

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/cpu"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// Needle is a part of a word that the bytes of a file have wherever its text has the word: as it is, or with some of its
// characters as \uXXXX. What it finds need not be the word.
type Needle struct {
	want, mask []byte   // the bytes, and which of their bits count
	runes      [][]rune // for each character all that stand for it
	at         int      // of the pair in want
	pair       pair     // two neighbouring bytes of want, or an escape
	score      int      // the higher, the rarer
	// accept, if not nil, reports whether an occurrence with that offset in it counts. b has at least message.MaxPath bytes before
	// and after it, as far as the file has.
	accept func(b []byte, at int) bool
	// anyLine says that it need not be on the line of a hit.
	anyLine bool
	// or is another needle, which is there where this one is not; nil for none.
	or *Needle
}

// longestRune is the most bytes that JSON writes a character in: a surrogate pair as two escapes.
const longestRune = 12

// newNeedle returns the best needle of a word, nil if it has none: where characters differ in length from what else they
// stand for, or are written in yet other ways.
func newNeedle(w *word) (best *Needle) {
	n := &Needle{}
	finish := func() {
		if n.choosePair(); n.score > 0 && (best == nil || n.score > best.score) {
			best = n
		}
		n = &Needle{}
	}
	for _, r := range w.text {
		// These have escapes of their own, which end in the character itself: it can only begin a needle.
		if r == '"' || r == '\\' || r == '/' {
			finish()
		}
		if r < ' ' || r == utf8.RuneError || !n.add(r, w.exact) { // U+FFFD also stands for bytes that are not UTF-8
			finish()
		}
	}
	finish()
	return best
}

// add adds a character. It returns false if that stands for others that differ from it in length.
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
			mask[i] &^= b[i] ^ want[i]
		}
	}
	n.want, n.mask, n.runes = append(n.want, want...), append(n.mask, mask...), append(n.runes, all)
	return true
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

// common are the bytes of session files from the most frequent to the least, as far as they are frequent at all.
const common = "\"e tanois\\rlcdu:mp,gfh0bk_y1-v.w2/3x45{}67j89(=)zq'[];*+<>#@`$"

// rarity is about the binary logarithm of how many bytes there are for one that is c, by a mask.
func rarity(c, mask byte) int {
	r := 12
	for i := range len(common) {
		if (common[i]^c)&mask == 0 {
			r = min(r, 3+i/8)
		}
	}
	return r
}

// choosePair sets the rarest pair. That of a single byte is followed by any.
func (n *Needle) choosePair() {
	best := 0
	for i := range n.want {
		r := rarity(n.want[i], n.mask[i])
		n.score += r
		var second, mask byte
		if i+1 < len(n.want) {
			second, mask = n.want[i+1], n.mask[i+1]
			r += rarity(second, mask)
		}
		if r > best && (mask != 0 || best == 0) {
			best, n.at = r, i
			n.pair = newPair(n.want[i], n.mask[i], second, mask)
		}
	}
}

// reach is how many bytes before and after the pair matter.
func (n *Needle) reach() int {
	size := longestRune * (len(n.runes) + 1)
	if n.accept != nil {
		size += message.MaxPath + 2
	}
	return size
}

// isInRaw reports whether a file has the needle whose strings are JSON once more within a string, as arguments of calls are:
// two halves of an escape are not found there.
func (n *Needle) isInRaw() bool {
	return n != nil && (n.or == nil || n.or.isInRaw()) && !slices.ContainsFunc(n.runes, func(all []rune) bool {
		return slices.ContainsFunc(all, func(r rune) bool { return r > 0xFFFF })
	})
}

// anywhere returns the needle for any string.
func (n *Needle) anywhere() *Needle {
	all := *n
	if all.accept = nil; all.or != nil {
		all.or = all.or.anywhere()
	}
	return &all
}

// isIn reports whether decoded text has the needle.
func (n *Needle) isIn(text []byte) bool {
	return n.index(text) >= 0 || n.or != nil && n.or.isIn(text)
}

// index returns the offset of the first occurrence in decoded text, -1 if there is none.
func (n *Needle) index(text []byte) int {
	for i := n.at; ; i++ {
		if i = n.pair.next(text, i); i >= len(text) {
			return -1
		}
		if n.isPlain(text, i-n.at) {
			return i - n.at
		}
	}
}

// isAt reports whether there is an occurrence of which the pair, or an escape, is at an offset of b.
func (n *Needle) isAt(b []byte, i int) bool {
	return (n.isPlain(b, i-n.at) || n.beginsEscaped(b[i:])) && (n.accept == nil || n.accept(b, i))
}

// isPlain reports whether the bytes are at an offset of b.
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

// beginsEscaped reports whether b begins with a character as an escape, and all that follow it. What is before it is not
// looked at: hardly anybody escapes characters.
func (n *Needle) beginsEscaped(b []byte) bool {
	r, size := rawjson.ReadEscape(b)
	if size == 0 {
		return false
	}
	for k, all := range n.runes {
		if slices.Contains(all, r) && n.follow(b[size:], k+1) {
			return true
		}
	}
	return false
}

// follow reports whether b begins with the characters from k on, escaped or not.
func (n *Needle) follow(b []byte, k int) bool {
	for ; k < len(n.runes); k++ {
		for len(b) > 1 && b[0] == '\\' && b[1] == '\\' { // within a string that is JSON itself
			b = b[1:]
		}
		r, size := rawjson.ReadEscape(b)
		if size == 0 {
			r, size = utf8.DecodeRune(b)
		}
		if !slices.Contains(n.runes[k], r) {
			return false
		}
		b = b[size:]
	}
	return true
}

// pair is two neighbouring bytes of which only some bits count, or the beginning of an escape, as pair_amd64.s reads them.
type pair struct{ firstMask, first, secondMask, second, backslash, u byte }

func newPair(first, firstMask, second, secondMask byte) pair {
	return pair{firstMask, first & firstMask, secondMask, second & secondMask, '\\', 'u'}
}

// at reports whether one of the pairs may be at an offset of b. At the last byte only half of it is known.
func (p *pair) at(b []byte, i int) bool {
	if i+1 == len(b) {
		return b[i]&p.firstMask == p.first || b[i] == p.backslash
	}
	return b[i]&p.firstMask == p.first && b[i+1]&p.secondMask == p.second || b[i] == p.backslash && b[i+1] == p.u
}

// next returns the first offset of b from i on at which one of the pairs may be, len(b) if there is none.
func (p *pair) next(b []byte, i int) int {
	i = p.nextInBlocks(b, i)
	for ; i < len(b) && !p.at(b, i); i++ {
	}
	return i
}

// nextInBlocks is nextInWords, 32 offsets at once where the processor has AVX2. In a search of gigabytes this is nearly
// all that is done.
func (p *pair) nextInBlocks(b []byte, i int) int {
	if !cpu.X86.HasAVX2 {
		return p.nextInWords(b, i)
	}
	if n := (len(b) - i - 1) &^ 31; n > 0 {
		i += nextAVX2(&b[i], n, p)
	}
	return i
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// nextInWords is next for all but the last bytes of b: it returns an offset before which there is no pair. It looks at
// eight offsets at once.
func (p *pair) nextInWords(b []byte, i int) int {
	firstMask, first := lows*uint64(p.firstMask), lows*uint64(p.first)
	secondMask, second := lows*uint64(p.secondMask), lows*uint64(p.second)
	backslash, u := lows*uint64(p.backslash), lows*uint64(p.u)
	for ; i+9 <= len(b); i += 8 {
		x, y := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+1:])
		d := (x&firstMask ^ first) | (y&secondMask ^ second)
		e := (x ^ backslash) | (y ^ u)
		if ((d-lows)&^d|(e-lows)&^e)&highs != 0 { // a byte of d or e is 0
			break
		}
	}
	return i
}
