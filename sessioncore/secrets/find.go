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
// text only separates: no secret includes it. The error is ctx's.
func (set *Rules) find(ctx context.Context, text []byte, found func(match)) error {
	for _, n := range set.always {
		set.matches(set.rules[n], text, 0, len(text), found)
	}
	search := keywordSearch{set: set, text: text, found: found}
	hits := 0
	set.keywords.find(text, func(word, at int) bool {
		hits++
		if hits%stopEvery == 0 && ctx.Err() != nil {
			return false
		}
		search.tryRules(word, at)
		return true
	})
	return ctx.Err()
}

// keywordSearch is a search of a text by the rules with keywords.
type keywordSearch struct {
	set   *Rules
	text  []byte
	found func(match)
	// done has for each rule the end of the text that it was applied to. It is nil before the first rule is
	// applied: most texts have no keyword.
	done map[int]int
}

// tryRules tries the rules of a keyword that stands at an offset, unless a try before has included it.
func (s *keywordSearch) tryRules(word, at int) {
	for _, n := range s.set.byWord[word] {
		if at < s.done[n] {
			continue
		}
		next := s.set.try(s.set.rules[n], s.text, at, s.found)
		if next <= at {
			continue
		}
		if s.done == nil {
			s.done = map[int]int{}
		}
		s.done[n] = next
	}
}

// try applies a rule with a keyword at an offset, and returns the end of the range that needs no other try; 0
// for an empty one.
func (set *Rules) try(r *rule, text []byte, at int, found func(match)) int {
	if !r.anchored {
		set.matches(r, text, 0, len(text), found)
		return len(text)
	}
	if at == 0 { // an anchored expression needs a byte before the keyword
		return 0
	}
	afterUnderscore := !r.common
	if r.separate && !beginsWord(text, at, afterUnderscore) {
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
// after an escape of a URL, a mail or a program, or, with afterUnderscore, after an underscore. at is not 0.
func beginsWord(text []byte, at int, afterUnderscore bool) bool {
	last := text[at-1]
	isBoundary := !isWord(last) || !isWord(text[at])
	switch {
	case isBoundary:
		return true
	case afterUnderscore && last == '_':
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
	nearby       = 800      // bytes; nearly every secret is shorter
	longestValue = 16 << 10 // bound in bytes of a secret that is known by the name before it
)

// matches applies a rule to text[lo:hi], calls found for the secrets, and returns the end of the last match, 0 if
// there is none. cut reports that a match may go on after hi; found was not called for that one.
func (set *Rules) matches(r *rule, text []byte, lo, hi int, found func(match)) (end int, cut bool) {
	part := text[lo:hi]
	most := -1 // all
	if r.anchored {
		most = 1
	}
	for _, groups := range r.regex().FindAllSubmatchIndex(part, most) {
		matchStart := groups[0]
		matchEnd := groups[1]
		if matchEnd == len(part) && hi < len(text) {
			return 0, true
		}
		end = lo + matchEnd
		m := match{kind: r.id, from: lo + matchStart, to: end}
		if r.anchored {
			m.from = nameStart(text, m.from+1) // behind the byte before the keyword
		}
		first, last := r.secret(groups)
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
// not empty, else the whole match. groups are the offsets of the match and its groups, as regexp returns them.
func (r *rule) secret(groups []int) (start, end int) {
	ofRule := 2 * r.group // the index of the rule's group
	if ofRule > 0 && ofRule+1 < len(groups) {
		return max(groups[ofRule], 0), max(groups[ofRule+1], 0) // they are -1 for a group without a match
	}
	if !r.isMatch {
		for i := 2; i+1 < len(groups); i += 2 {
			if groups[i] < groups[i+1] {
				return groups[i], groups[i+1]
			}
		}
	}
	if r.anchored {
		return groups[0] + 1, groups[1] // without the byte before the keyword
	}
	return groups[0], groups[1]
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

// nameStart returns the start of the name around at, at most maxBefore bytes before, like the rules.
func nameStart(text []byte, at int) int {
	const maxBefore = 50 // see anyBefore
	least := max(0, at-maxBefore)
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

// entropy returns the Shannon entropy of text in bits per byte, 0 for an empty one.
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
