package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
