package names

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFirstWords: a text of more than ten characters is cut at a word, or within a long one.
func TestFirstWords(t *testing.T) {
	for text, want := range map[string]string{
		" two\n words ":       "two words",
		"ten letter":          "ten letter",
		"harbour lights":      "harbour…",
		"eight lt end":        "eight lt…",
		"a longest-word-ever": "a longest-…",
	} {
		require.Equal(t, want, FirstWords(text, 10), text)
	}
}

// TestLeaseName: an id that is a safe file name names its lease, another one's hash does.
func TestLeaseName(t *testing.T) {
	for _, id := range []string{"1f9d2a6b9c0d1234", "a_B-9", strings.Repeat("x", 128), "h-0"} {
		require.Equal(t, id, LeaseName(id))
	}
	for id, want := range map[string]string{ // as bun 1.4.5 gives them
		"": "h-0409638ee2bde459", "a.b": "h-6128cedbde706793", "../x": "h-6dffa3e255467fa4", "é": "h-18c024238894ecca",
		"\xed\xa0\xbd x": "h-7c2a400275c73637", strings.Repeat("x", 129): "h-6bc5ad476ab8a373",
	} {
		require.Equal(t, want, LeaseName(id), "%q", id)
	}
}

// TestParagraphs: whole paragraphs on one line, as few as have more than so many characters.
func TestParagraphs(t *testing.T) {
	long := strings.Repeat("word ", 400) + "end"
	for _, c := range [][2]string{
		{"", ""},
		{" \n\n ", ""},
		{"one", "one"},
		{"\n\n  Fix this:\nthe sheet\r\n\r\nis an hour late", "Fix this: the sheet"},
		{long + "\n \n" + "more", long},
		{"a\tb\n" + long + "\n", "a b " + long},
		{"12345678901\n\nmore", "12345678901"},
		{"1234567890\n\nmore\n\nleft out", "1234567890 more"},
	} {
		require.Equal(t, c[1], Paragraphs(c[0], 10), c[0])
	}
}
