package search

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// TestOutputName: the name of a file in a result leads to no other directory.
func TestOutputName(t *testing.T) {
	for text, want := range map[string]string{
		`"saved to: /h/p/s/tool-results/a.txt\n\nPreview"`:         "a.txt",
		`"saved to: C:\\p\\s\\tool-results\\a.txt\\n"`:             "a.txt",
		`"in /tool-results/a.txt"`:                                 "a.txt",
		`"in /tool-results/../../x.txt"`:                           "",
		`"in /tool-results/..\n"`:                                  "",
		`"in /tool-results/a/b.txt"`:                               "a",
		`"tool-results"`:                                           "",
		`"tool-results are long"`:                                  "",
		`"in /tool-results/`:                                       "",
		`"in /tool-results/` + string(make([]byte, 300)) + `.txt"`: "",
	} {
		name, _ := outputName(rawjson.Value(text))
		require.Equal(t, want, name, "%q", text)
	}
}
