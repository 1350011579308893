package agents

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/jsonl"
)

// TestUnfold: the elements of a document's list have the lines in which they begin.
func TestUnfold(t *testing.T) {
	for text, want := range map[string][]string{
		"":                     nil,
		"{\n":                  nil,
		"[\n]":                 nil,
		"{\n\"a\": 1\n}\n":     {`1 { "a": 1 }`},
		`{"a":1,"l":[{},{}]}`:  {`1 {"a":1}`, `1 {}`, `1 {}`},
		"{\n\"l\": []\n}":      {`1 {}`},
		"{\n\"l\": {\"x\":1}}": {`1 { "l": {"x":1}}`},
		"{\n\"a\": 1,\n\"l\": [\n{\n\"x\": [\n1]\n},\n{\"y\": 2}\n],\n\"z\": \"}\"\n}": {
			`1 {"a":1,"z":"}"}`, `4 { "x": [ 1] }`, `8 {"y": 2}`},
	} {
		var got []string
		file := strings.NewReader(text)
		_, err := unfold(file, int64(len(text)), "l", func(u *jsonl.Unit) error {
			got = append(got, fmt.Sprintf("%d %s", u.Line, OneLine(u)))
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}
