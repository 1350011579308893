package search

// pattern is a sequence of bytes of which some bits may differ. Two neighbouring bytes of it, its pair, are looked for
// first, and the rest is compared where they are.
type pattern struct {
	want, mask []byte
	at         int // of the pair in want
	pair       pair
	orEscape   pair // the same, which also stands for \u
	score      int  // the higher, the rarer
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

// newPattern returns a pattern; want has at least one byte.
func newPattern(want, mask []byte) *pattern {
	p := &pattern{want: want, mask: mask}
	best := -1
	for i := range want {
		r := rarity(want[i], mask[i])
		p.score += r
		if i+1 < len(want) {
			r += rarity(want[i+1], mask[i+1])
		}
		if r > best && (i+1 < len(want) || best < 0) {
			best, p.at = r, i
		}
	}
	var second, secondMask byte // of a single byte: any
	if p.at+1 < len(want) {
		second, secondMask = want[p.at+1], mask[p.at+1]
	}
	p.pair = newPair(want[p.at], mask[p.at], second, secondMask, 0xFF, 0xFF) // which no text has
	p.orEscape = newPair(want[p.at], mask[p.at], second, secondMask, '\\', 'u')
	return p
}

// matches reports whether the pattern is at an offset of b.
func (p *pattern) matches(b []byte, at int) bool {
	if at < 0 || at+len(p.want) > len(b) {
		return false
	}
	b = b[at : at+len(p.want)]
	for i, c := range b {
		if (c^p.want[i])&p.mask[i] != 0 {
			return false
		}
	}
	return true
}

// index returns the offset of the first occurrence in b, -1 if there is none.
func (p *pattern) index(b []byte) int {
	for i := p.at; i < len(b); i++ {
		if i = p.pair.next(b, i); i == len(b) {
			break
		}
		if p.matches(b, i-p.at) {
			return i - p.at
		}
	}
	return -1
}
