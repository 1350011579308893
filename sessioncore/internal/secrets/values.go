package secrets

import "encoding/binary"

// minRepeated is the length in bytes from which on a secret that was found is looked for elsewhere in its file, where no
// rule may know it. Shorter ones could be words.
const minRepeated = 8

// values are the secrets that were found in a file.
type values struct {
	byStart map[uint64][]value // by their first 8 bytes
	starts  [1 << 10]uint64    // bits: hashes of these
}

type value struct{ text, kind string }

// add adds a secret, and reports whether it is new and will be looked for.
func (v *values) add(text []byte, kind string) bool {
	if len(text) < minRepeated {
		return false
	}
	key := binary.LittleEndian.Uint64(text)
	for _, known := range v.byStart[key] {
		if known.text == string(text) {
			return false
		}
	}
	if v.byStart == nil {
		v.byStart = map[uint64][]value{}
	}
	v.byStart[key] = append(v.byStart[key], value{string(text), kind})
	word, bit := startBit(key)
	v.starts[word] |= bit
	return true
}

func startBit(key uint64) (word int, bit uint64) {
	h := key * 0x9E3779B97F4A7C15 >> 48
	return int(h >> 6), 1 << (h & 63)
}

// find calls found for each place in text where a known secret is.
func (v *values) find(text []byte, found func(match)) {
	if len(v.byStart) == 0 {
		return
	}
	for i := 0; i+minRepeated <= len(text); i++ {
		key := binary.LittleEndian.Uint64(text[i:])
		if word, bit := startBit(key); v.starts[word]&bit == 0 {
			continue
		}
		for _, known := range v.byStart[key] {
			if len(text)-i >= len(known.text) && string(text[i:i+len(known.text)]) == known.text {
				found(match{kind: known.kind, start: i, end: i + len(known.text)})
			}
		}
	}
}
