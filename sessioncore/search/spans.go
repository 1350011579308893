package search

import (
	"cmp"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// Span is a range of a text, in bytes.
type Span struct{ From, To int }

// Spans returns where the words of the query are in a text, in order and apart from each other.
func (q *Query) Spans(text string) []Span {
	var all []Span
	var scratch []byte
	for _, w := range q.words {
		for rest := []byte(text); len(rest) > 0; {
			at := w.index(rest, &scratch)
			if at < 0 {
				break
			}
			from := len(text) - len(rest) + at
			size := w.sizeAt(rest[at:])
			all = append(all, Span{from, from + size})
			rest = rest[at+max(size, 1):]
		}
	}
	slices.SortFunc(all, func(a, b Span) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	return joinSpans(all)
}

// joinSpans makes one of those that overlap or touch.
func joinSpans(sorted []Span) []Span {
	var apart []Span
	for _, s := range sorted {
		if last := len(apart) - 1; last >= 0 && s.From <= apart[last].To {
			apart[last].To = max(apart[last].To, s.To)
		} else {
			apart = append(apart, s)
		}
	}
	return apart
}

// sizeAt returns how many bytes of a text, which begins with the word, are the word.
func (w *word) sizeAt(text []byte) (size int) {
	if w.plain != nil {
		return len(w.text)
	}
	for folded := 0; folded < len(w.text) && size < len(text); {
		r, n := rawjson.DecodeRune(text[size:])
		size += n
		folded += len(rawjson.AppendCodePoint(nil, fold(r)))
	}
	return size
}
