package secrets

// words finds words in text, whatever their case, in one pass. Words have at least two bytes.
type words struct {
	list   []string
	starts [1 << 15]bool    // hashes of the first bytes of words
	byKey  map[uint32][]int // the words that begin with these bytes
}

// fold is the lower case of the letters of ASCII.
var fold = func() (lower [256]byte) {
	for i := range lower {
		lower[i] = byte(i)
		if i >= 'A' && i <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	return lower
}()

// pairKey and tripleKey are the keys of words of two bytes and of longer ones.
func pairKey(a, b byte) uint32      { return uint32(a)<<8 | uint32(b) }
func tripleKey(a, b, c byte) uint32 { return 1<<24 | uint32(a)<<16 | uint32(b)<<8 | uint32(c) }
func keyHash(key uint32) uint32     { return key * 2654435761 >> 17 }

// newWords returns a finder of words, which must be in lower case.
func newWords(list []string) *words {
	w := &words{list: list, byKey: map[uint32][]int{}}
	for i, word := range list {
		key := pairKey(word[0], word[1])
		if len(word) > 2 {
			key = tripleKey(word[0], word[1], word[2])
		}
		w.byKey[key] = append(w.byKey[key], i)
		w.starts[keyHash(key)] = true
	}
	return w
}

// find calls found with the number of each word and where it begins, until found returns false.
func (w *words) find(text []byte, found func(word, at int) bool) bool {
	for i := 0; i+1 < len(text); i++ {
		a, b := fold[text[i]], fold[text[i+1]]
		if key := pairKey(a, b); w.starts[keyHash(key)] && !w.at(text, i, key, found) {
			return false
		}
		if i+2 == len(text) {
			break
		}
		if key := tripleKey(a, b, fold[text[i+2]]); w.starts[keyHash(key)] && !w.at(text, i, key, found) {
			return false
		}
	}
	return true
}

func (w *words) at(text []byte, i int, key uint32, found func(word, at int) bool) bool {
	for _, n := range w.byKey[key] {
		if hasPrefixFold(text[i:], w.list[n]) && !found(n, i) {
			return false
		}
	}
	return true
}

func hasPrefixFold(text []byte, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if fold[text[i]] != word[i] {
			return false
		}
	}
	return true
}

// in reports whether one of the words is in text.
func (w *words) in(text []byte) bool {
	return !w.find(text, func(int, int) bool { return false })
}
