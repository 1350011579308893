package history

import (
	"strings"
	"unicode"
)

// plainWords converts a text that is not an FTS5 query, such as README.md or git-commit, to one, as the client's own
// search does: each run of letters and digits is the prefix of a word. It returns "" if there are none.
func plainWords(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	var query strings.Builder
	for _, word := range words {
		query.WriteString(`"` + word + `"* `)
	}
	return query.String()
}
