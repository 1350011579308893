package agents

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnfold: the elements of a document's list stand in the lines in which they begin there.
func TestUnfold(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"{\n":                  "{\n",
		"[\n]":                 "[\n]",
		"{\n\"a\": 1\n}\n":     "{ \"a\": 1 }\n",
		`{"a":1,"l":[{},{}]}`:  "{\"a\":1}\n{}\n{}\n",
		"{\n\"l\": []\n}":      "{}\n",
		"{\n\"l\": {\"x\":1}}": "{ \"l\": {\"x\":1}}\n",
		"{\n\"a\": 1,\n\"l\": [\n{\n\"x\": [\n1]\n},\n{\"y\": 2}\n],\n\"z\": \"}\"\n}": "" +
			"{\"a\":1,\"z\":\"}\"}\n\n\n{ \"x\": [ 1] }\n\n\n\n{\"y\": 2}\n",
	} {
		got := string(asLines([]byte(text), "l"))
		require.Equal(t, want, got, text)
		if at := strings.Index(text, `"y"`); at > 0 {
			require.Equal(t, strings.Count(text[:at], "\n"), strings.Count(got[:strings.Index(got, `"y"`)], "\n"))
		}
	}
}
