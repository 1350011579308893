package history

import (
	"strings"
	"unicode"
)

// plainWords makes the query of a text that is not meant as one, such as README.md or git-commit, in the way of
// the client's own search: all runs of letters and digits, each as the beginning of a word. "" where there are
// none.
func plainWords(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	var query strings.Builder
	for _, word := range words {
		query.WriteString(`"` + word + `"* `)
	}
	return query.String()
}
