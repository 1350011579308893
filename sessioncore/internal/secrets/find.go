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
	from, to   int    // of what the rule matched, with the name of the key before it
}

// stopEvery is after how many keywords a search looks whether it was cancelled.
const stopEvery = 1 << 10

// find calls found for the secrets in text, in no order, perhaps twice for one. The first byte of text is only what stands
// before it.
func (set *Rules) find(ctx context.Context, text []byte, found func(match)) error {
	for _, n := range set.always {
		set.matches(set.rules[n], text, 0, len(text), found)
	}
	var done map[int]int // for each rule up to where it has searched
	hits := 0
	set.keywords.find(text, func(word, at int) bool {
		if hits++; hits%stopEvery == 0 && ctx.Err() != nil {
			return false
		}
		for _, n := range set.byWord[word] {
			if at < done[n] {
				continue
			}
			if to := set.try(set.rules[n], text, at, found); to > at {
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

// try applies a rule whose keyword is at that offset, and returns up to where it need not be applied again.
func (set *Rules) try(r *rule, text []byte, at int, found func(match)) int {
	switch {
	case !r.anchored:
		set.matches(r, text, 0, len(text), found)
		return len(text)
	case at == 0 || r.separate && !beginsWord(text, at, !r.common):
		return 0
	}
	// Short texts are searched faster; hardly any secret is longer.
	for _, most := range []int{nearby, longestValue} {
		if end, cut := set.matches(r, text, at-1, min(at+most, len(text)), found); !cut {
			return end
		}
	}
	return at + longestValue
}

// beginsWord reports whether a word begins at at, as regular expressions understand it, or where a
// key may begin nevertheless: behind an escape of a URL, a mail or a program, and, with below,
// behind an underscore.
func beginsWord(text []byte, at int, below bool) bool {
	last := text[at-1]
	switch {
	case !isWord(last) || !isWord(text[at]) || last == '_' && below:
		return true
	case at >= 2 && text[at-2] == '\\':
		return bytes.IndexByte([]byte("0abefnrtv"), last) >= 0
	case at >= 3 && isHex(last) && text[at-2] >= '2' && text[at-2] <= '7':
		return text[at-3] == '%' || text[at-3] == '=' || text[at-3] == 'x' && at >= 4 && text[at-4] == '\\'
	}
	return false
}

// isWord reports whether a byte is part of a word, as regular expressions understand it.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || fold[c] >= 'a' && fold[c] <= 'z'
}

const (
	nearby       = 800
	longestValue = 16 << 10 // the longest secret, in bytes, that is known by the name before it
)

// matches applies a rule to text[lo:hi], and returns where its last match ends, 0 if there is none. cut says that a match
// may go on beyond hi.
func (set *Rules) matches(r *rule, text []byte, lo, hi int, found func(match)) (end int, cut bool) {
	part, most := text[lo:hi], -1
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
		m.start = lo + last - len(bytes.TrimLeft(part[first:last], "\n"))
		m.end = lo + first + len(bytes.TrimRight(part[first:last], "\n"))
		if m.start < m.end && set.isSecret(r, text, m) {
			found(m)
		}
	}
	return end, false
}

// secret returns where the secret lies in a match: in the rule's group, or in the first that is not empty, or it is all.
func (r *rule) secret(at []int) (start, end int) {
	if r.group > 0 && 2*r.group+1 < len(at) {
		return max(at[2*r.group], 0), max(at[2*r.group+1], 0)
	}
	for i := 2; i+1 < len(at) && !r.whole; i += 2 {
		if at[i] < at[i+1] {
			return at[i], at[i+1]
		}
	}
	if r.anchored {
		return at[0] + 1, at[1]
	}
	return at[0], at[1]
}

func (set *Rules) isSecret(r *rule, text []byte, m match) bool {
	if r.entropy > 0 && entropy(text[m.start:m.end]) <= r.entropy {
		return false
	}
	isAllowed := func(list *allowed) bool { return list.allows(text, m) }
	return !slices.ContainsFunc(set.allow, isAllowed) && !slices.ContainsFunc(r.allow, isAllowed)
}

// nameStart returns where the name begins that ends or goes on at at: the rules look at up to 50 bytes of it.
func nameStart(text []byte, at int) int {
	for n := 0; n < 50 && at > 0; n++ {
		if c := fold[text[at-1]]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
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
