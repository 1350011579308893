package search

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Marks returns what matches the words of the query in a line, to highlight them; nil if it has none.
func (q *Query) Marks() *regexp.Regexp {
	var words []string
	for _, w := range q.words {
		pattern := regexp.QuoteMeta(w.text)
		if !w.exact {
			pattern = "(?i:" + pattern + ")"
		}
		words = append(words, pattern)
	}
	if len(words) == 0 {
		return nil
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest that fits
	return regexp.MustCompile(strings.Join(words, "|"))
}
