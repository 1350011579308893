package history

import (
	"bytes"
	"strings"
	"unicode"
)

// wordsOf splits a text as the client's own search does: each run of letters and digits is a word, in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// prefixQuery returns the FTS5 query for prompts that have words beginning with each of the words.
func prefixQuery(words []string) string {
	return `"` + strings.Join(words, `"* "`) + `"*`
}

// containsAll reports whether a prompt contains all words. As in SQLite's LIKE, only ASCII letters match in both
// cases.
func containsAll(prompt []byte, words []string) bool {
	lower := bytes.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, prompt)
	for _, word := range words {
		if !bytes.Contains(lower, []byte(word)) {
			return false
		}
	}
	return true
}
