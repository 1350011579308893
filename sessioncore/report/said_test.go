package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWordsOfLongTexts: the first words are those of the whole text, of which only the beginning is decoded.
func TestWordsOfLongTexts(t *testing.T) {
	for _, begin := range []string{
		"", "ä", "one two", strings.Repeat("word ", 15), strings.Repeat("x", maxSaid-1), strings.Repeat("x", maxSaid), strings.Repeat("é", 100), "…",
		strings.Repeat("word ", 20) + "\n\n",
	} {
		for _, blanks := range []int{0, 1, fewBytes - 12, fewBytes - 2, fewBytes - 1, fewBytes, fewBytes + 1, 2 * fewBytes} {
			for _, end := range []string{"", "…", "end", strings.Repeat(`"\`, 50), strings.Repeat("😀", 90)} {
				text := begin + strings.Repeat(" ", blanks) + end
				quoted, err := json.Marshal(text)
				require.NoError(t, err)
				for _, of := range []shortener{beginning, paragraphs} {
					require.Equal(t, of(text), of.value(quoted), "%q, %d blanks, %q", begin, blanks, end)
				}
			}
		}
	}
	require.Empty(t, shortener(beginning).value([]byte("7")))
}
