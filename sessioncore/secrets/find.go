package secrets

import (
	"bytes"
	"context"
	"math"
	"slices"
)

// match is a secret that a rule found.
type match struct {
	kind       string // the rule's id
	start, end int    // of the secret
	from, to   int    // of the rule's match, with the name of the key before it
}

// stopEvery is the number of keyword hits between two checks for cancellation.
const stopEvery = 1 << 10

// find calls found for the secrets in text, unordered, and perhaps twice for one. The first byte of
// text only separates: no secret includes it.
func (set *Rules) find(ctx context.Context, text []byte, found func(match)) error {
	for _, n := range set.always {
		set.matches(set.rules[n], text, 0, len(text), found)
	}
	var done map[int]int // for each rule, the end of the text that it was applied to
	hits := 0
	set.keywords.find(text, func(word, at int) bool {
		hits++
		if hits%stopEvery == 0 && ctx.Err() != nil {
			return false
		}
		for _, n := range set.byWord[word] {
			if at < done[n] {
				continue
			}
			to := set.try(set.rules[n], text, at, found)
			if to > at {
				if done == nil {
					done = map[int]int{}
				}
				done[n] = to
			}
		}
		return true
	})
	return ctx.Err()
}

// try applies a rule with a keyword at an offset, and returns the offset for the next try.
func (set *Rules) try(r *rule, text []byte, at int, found func(match)) int {
	if !r.anchored {
		set.matches(r, text, 0, len(text), found)
		return len(text)
	}
	if at == 0 {
		return 0
	}
	if r.separate && !beginsWord(text, at, !r.common) {
		return 0
	}
	// A short range is searched first: hardly any secret is longer.
	for _, most := range []int{nearby, longestValue} {
		end, isCut := set.matches(r, text, at-1, min(at+most, len(text)), found)
		if !isCut {
			return end
		}
	}
	return at + longestValue
}

// beginsWord reports whether text[at] begins a word, as \b does, or may begin a key all the same:
// after an escape of a URL, a mail or a program, or, with below, after an underscore.
func beginsWord(text []byte, at int, below bool) bool {
	last := text[at-1]
	isBoundary := !isWord(last) || !isWord(text[at])
	switch {
	case isBoundary:
		return true
	case below && last == '_':
		return true
	case at >= 2 && text[at-2] == '\\': // as \n
		return bytes.IndexByte([]byte("0abefnrtv"), last) >= 0
	}
	return endsInHexEscape(text[:at])
}

// endsInHexEscape reports whether a text ends in an escape of a printable ASCII character by two digits:
// %2F, =3D or \x2f.
func endsInHexEscape(text []byte) bool {
	at := len(text)
	if at < 3 || !isHex(text[at-1]) {
		return false
	}
	first := text[at-2]
	if first < '2' || first > '7' {
		return false
	}
	switch text[at-3] {
	case '%', '=':
		return true
	case 'x':
		return at >= 4 && text[at-4] == '\\'
	}
	return false
}

// isWord reports whether a byte is of a word, as \w matches.
func isWord(c byte) bool {
	return c == '_' || isAlphanumeric(c)
}

// isAlphanumeric reports whether a byte is a letter or a digit of ASCII.
func isAlphanumeric(c byte) bool {
	letter := fold(c)
	switch {
	case letter >= 'a' && letter <= 'z', c >= '0' && c <= '9':
		return true
	}
	return false
}

const (
	nearby       = 800
	longestValue = 16 << 10 // bound in bytes of a secret that is known by the name before it
)

// matches applies a rule to text[lo:hi] and returns the end of its last match, 0 if there is none.
// It reports with cut that a match may go on after hi.
func (set *Rules) matches(r *rule, text []byte, lo, hi int, found func(match)) (end int, cut bool) {
	part := text[lo:hi]
	most := -1
	if r.anchored {
		most = 1
	}
	for _, at := range r.regex().FindAllSubmatchIndex(part, most) {
		if at[1] == len(part) && hi < len(text) {
			return 0, true
		}
		end = lo + at[1]
		m := match{kind: r.id, from: lo + at[0], to: end}
		if r.anchored {
			m.from = nameStart(text, m.from+1)
		}
		first, last := r.secret(at)
		secret := part[first:last]
		m.start = lo + last - len(bytes.TrimLeft(secret, "\n"))
		m.end = lo + first + len(bytes.TrimRight(secret, "\n"))
		if m.start < m.end && set.isSecret(r, text, m) {
			found(m)
		}
	}
	return end, false
}

// secret returns the place of the secret in a match: the rule's group, else the first group that is
// not empty, else the whole match.
func (r *rule) secret(at []int) (start, end int) {
	groupAt := 2 * r.group // of at
	if groupAt > 0 && groupAt+1 < len(at) {
		return max(at[groupAt], 0), max(at[groupAt+1], 0)
	}
	if !r.isMatch {
		for i := 2; i+1 < len(at); i += 2 {
			if at[i] < at[i+1] {
				return at[i], at[i+1]
			}
		}
	}
	if r.anchored {
		return at[0] + 1, at[1]
	}
	return at[0], at[1]
}

// isSecret reports whether a match of a rule has the rule's entropy, and no list allows it.
func (set *Rules) isSecret(r *rule, text []byte, m match) bool {
	if r.entropy > 0 && entropy(text[m.start:m.end]) <= r.entropy {
		return false
	}
	allows := func(list *allowed) bool {
		return list.allows(text, m)
	}
	isAllowed := slices.ContainsFunc(set.allow, allows) || slices.ContainsFunc(r.allow, allows)
	return !isAllowed
}

// nameStart returns the start of the name around at, up to 50 bytes before, like the rules.
func nameStart(text []byte, at int) int {
	least := max(0, at-50)
	for at > least {
		c := text[at-1]
		isOfName := isWord(c) || c == '.' || c == '-'
		if !isOfName {
			break
		}
		at--
	}
	return at
}

// lineAround returns the lines that text[from:to] touches.
func lineAround(text []byte, from, to int) []byte {
	start := bytes.LastIndexByte(text[:from], '\n') + 1
	end := bytes.IndexByte(text[to:], '\n')
	if end < 0 {
		end = len(text) - to
	}
	return text[start : to+end]
}

// entropy returns the Shannon entropy of text in bits per byte.
func entropy(text []byte) (sum float64) {
	var counts [256]int
	for _, c := range text {
		counts[c]++
	}
	for _, n := range counts {
		if n > 0 {
			share := float64(n) / float64(len(text))
			sum -= share * math.Log2(share)
		}
	}
	return sum
}
