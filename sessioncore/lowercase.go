package sessioncore

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lowered is JavaScript's toLowerCase for WTF-8 text: Unicode's lower case, in which one letter becomes
// two code points and one depends on its neighbours.
func lowered(text string) string {
	plain := true
	for i := 0; i < len(text) && plain; i++ {
		plain = text[i] < utf8.RuneSelf
	}
	if plain {
		return strings.ToLower(text)
	}
	b := []byte(text)
	out := make([]byte, 0, len(b))
	for at := 0; at < len(b); {
		r, n := wtf8Rune(b[at:])
		switch {
		case r == 'İ':
			out = append(out, "i̇"...)
		case r == 'Σ' && endsWord(b, at, at+n):
			out = append(out, "ς"...)
		case r == utf8.RuneError || isHighSurrogate(r) || isLowSurrogate(r):
			out = append(out, b[at:at+n]...)
		default:
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
		at += n
	}
	return string(out)
}

// endsWord is Unicode's condition for the final sigma: a letter with case comes before text[start:end],
// none behind, marks and the like between them aside.
func endsWord(text []byte, start, end int) bool {
	before := false
	for start > 0 && !before {
		r, n := utf8.DecodeLastRune(text[:start])
		start -= n
		if before = hasCase(r); !before && !caseIgnorable(r) {
			return false
		}
	}
	for before && end < len(text) {
		r, n := utf8.DecodeRune(text[end:])
		end += n
		if caseIgnorable(r) {
			continue
		}
		return !hasCase(r)
	}
	return before
}

func hasCase(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func caseIgnorable(r rune) bool {
	return strings.ContainsRune("'.:^`\u00a8\u00ad\u00af\u00b4\u00b7\u00b8\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A", r) ||
		unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}
