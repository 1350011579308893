package persist

import (
	"encoding/base64"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// nextUnits returns the size in bytes of the first character of a JSON string's body and its number of UTF-16 code
// units; high reports whether it is a lone high surrogate.
func nextUnits(body []byte) (size, units int, high bool) {
	switch c := body[0]; {
	case c == '\\' && body[1] == 'u':
		unit := rawjson.Hex4(body[2:])
		if !rawjson.IsHighSurrogate(unit) {
			return 6, 1, false
		}
		if len(body) >= 12 && body[6] == '\\' && body[7] == 'u' && rawjson.IsLowSurrogate(rawjson.Hex4(body[8:])) {
			return 12, 2, false
		}
		return 6, 1, true
	case c == '\\':
		return 2, 1, false
	case c < utf8.RuneSelf:
		return 1, 1, false
	}
	switch _, n := utf8.DecodeRune(body); n {
	case 1: // invalid UTF-8: one U+FFFD
		return rawjson.IllFormedLen(body), 1, false
	case utf8.UTFMax:
		return n, 2, false
	default:
		return n, 1, false
	}
}

// unitsOf returns the length of a JSON string's body in UTF-16 code units.
func unitsOf(body []byte) int {
	n := 0
	for i := 0; i < len(body); {
		size, units, _ := nextUnits(body[i:])
		i += size
		n += units
	}
	return n
}

// cutUnits returns the size in bytes of the first limit code units of a JSON string's body, one fewer if the last of
// them would be a high surrogate.
func cutUnits(body []byte, limit int) int {
	i, n, last := 0, 0, false
	before := 0
	for i < len(body) {
		size, units, high := nextUnits(body[i:])
		if n+units > limit {
			break
		}
		before = i
		i += size
		n += units
		last = high
	}
	if last && n == limit {
		return before
	}
	return i
}

// decodeBase64 decodes like the client: it skips characters outside the alphabet, accepts the URL alphabet, stops at
// the first "=", and drops incomplete bytes.
func decodeBase64(text []byte) []byte {
	clean := make([]byte, 0, len(text))
	for _, c := range text {
		switch {
		case c == '=':
			return decodeClean(clean)
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		}
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' {
			clean = append(clean, c)
		}
	}
	return decodeClean(clean)
}

func decodeClean(clean []byte) []byte {
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	data, _ := base64.RawStdEncoding.AppendDecode(nil, clean)
	return data
}
