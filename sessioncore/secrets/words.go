package secrets

import "bytes"

// words finds words of at least two bytes, ignoring case, in one pass. A nil *words finds none.
type words struct {
	list   [][]byte
	starts [1 << 15]bool    // hashes of the keys
	byKey  map[uint32][]int // numbers of the words with a key
}

// fold returns the lower case of a letter of ASCII, and other bytes as they are.
func fold(c byte) byte {
	if c-'A' < 26 {
		c |= 'a' - 'A'
	}
	return c
}

// pairKey and tripleKey make the keys of two-byte and of longer words from their first bytes.
func pairKey(a, b byte) uint32      { return uint32(a)<<8 | uint32(b) }
func tripleKey(a, b, c byte) uint32 { return 1<<24 | uint32(a)<<16 | uint32(b)<<8 | uint32(c) }

// keyHash returns a hash of 15 bits, by the multiplication of Knuth with the golden ratio.
func keyHash(key uint32) uint32 { return key * 2654435761 >> (32 - 15) }

// newWords returns an index of words, which have two bytes at least.
func newWords(list []string) *words {
	w := &words{byKey: map[uint32][]int{}}
	for _, word := range list {
		w.add([]byte(word))
	}
	return w
}

// add adds a word under the key of its first three bytes, or of two if it has no more.
func (w *words) add(word []byte) {
	first := fold(word[0])
	second := fold(word[1])
	key := pairKey(first, second)
	if len(word) > 2 {
		key = tripleKey(first, second, fold(word[2]))
	}
	w.byKey[key] = append(w.byKey[key], len(w.list))
	w.starts[keyHash(key)] = true
	w.list = append(w.list, bytes.Clone(word))
}

// find calls found with the number and the offset of each word until found returns false; find returns false
// then. A word that is also the beginning of another is found, too.
func (w *words) find(text []byte, found func(word, at int) bool) bool {
	for i := 0; w != nil && i+1 < len(text); i++ {
		a := fold(text[i])
		b := fold(text[i+1])
		key := pairKey(a, b)
		if w.starts[keyHash(key)] && !w.at(text, i, key, found) {
			return false
		}
		if i+2 == len(text) {
			break
		}
		key = tripleKey(a, b, fold(text[i+2]))
		if w.starts[keyHash(key)] && !w.at(text, i, key, found) {
			return false
		}
	}
	return true
}

// at calls found with the words of a key that begin at text[i], and returns false if found does.
func (w *words) at(text []byte, i int, key uint32, found func(word, at int) bool) bool {
	rest := text[i:]
	for _, n := range w.byKey[key] {
		word := w.list[n]
		isHere := len(rest) >= len(word) && bytes.EqualFold(rest[:len(word)], word)
		if isHere && !found(n, i) {
			return false
		}
	}
	return true
}

// isRepeated limits the secrets that are searched for elsewhere in their file, where no rule may
// find them. Shorter ones than minRepeated could be words or numbers, as could those without a
// digit below minRepeatedWord. A rule finds longer ones than maxRepeated by their beginning.
const (
	minRepeated     = 8
	minRepeatedWord = 16
	maxRepeated     = 4 << 10
)

// isRepeated reports whether a secret is searched for in the rest of the file.
func isRepeated(text []byte) bool {
	digits := 0
	for _, c := range text {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	least := minRepeatedWord
	isMixed := digits > 0 && digits < len(text)
	if isMixed {
		least = minRepeated
	}
	return len(text) >= least && len(text) <= maxRepeated
}

// values are the secrets found in a file, with the kind of each.
type values struct {
	kinds map[string]string
	words *words
}

// add adds a secret and reports whether it is new and will be searched for.
func (v *values) add(text []byte, kind string) bool {
	_, known := v.kinds[string(text)]
	if known || !isRepeated(text) {
		return false
	}
	if v.words == nil {
		v.kinds = map[string]string{}
		v.words = newWords(nil)
	}
	v.kinds[string(text)] = kind
	v.words.add(text)
	return true
}

// find calls found for the known secrets in text. A secret may not overlap itself.
func (v *values) find(text []byte, found func(match)) {
	var done map[int]int // for each secret, the end of its last match
	v.words.find(text, func(word, at int) bool {
		end := at + len(v.words.list[word])
		if at < done[word] {
			return true
		}
		kind, isKnown := v.kinds[string(text[at:end])] // words ignores case, kinds does not
		if !isKnown {
			return true
		}
		found(match{kind: kind, start: at, end: end})
		if done == nil {
			done = map[int]int{}
		}
		done[word] = end
		return true
	})
}
