package transcript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

func shownValueText(text string) (string, bool) {
	v := valueText{excerpt: &excerpter{}, left: maxValue}
	v.write(rawjson.Value(text))
	return string(v.out), v.cut
}

func TestValueText(t *testing.T) {
	for in, want := range map[string]string{
		`{"path":"main.go","timeout":300,"none":null}`: "path: main.go\ntimeout: 300\nnone: null\n",
		`{"new":"a\n\n\tb\n"}`:                         "new:\n  a\n\n  \tb\n",
		`{"edits": [ {"old":"a \"b\" c", "n": [1.50, {}]},{"new":"x\n\ty"},{} ],"o":{ },"e":"","l":[{},1]}`: "edits:\n- old: a \"b\" c\n  n: [1.50,{}]\n- new:\n    x\n    \ty\n- {}\no: {}\ne: \nl: [{},1]\n",
		`{"\u001b[0m":"\u001b[31mred"}`: "␛[0m: ␛[31mred\n",
		`[ 1, "a b", { "c" : null } ]`:  "[1,\"a b\",{\"c\":null}]\n",
		`"two\nlines"`:                  "two\nlines\n",
		`42`:                            "42\n",
	} {
		got, cut := shownValueText(in)
		require.Equal(t, want, got)
		require.False(t, cut, in)
	}
}

func TestValueTextIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"deep":    strings.Repeat(`{"k":[`, 5000) + strings.Repeat(`]}`, 5000),
		"wide":    "[" + strings.Repeat(`"an element",`, 50_000) + "0]",
		"members": "{" + strings.Repeat(`"an element":1,`, 50_000) + `"last":0}`,
		"long":    `{"content":"` + strings.Repeat(`line\n`, 100_000) + `"}`,
		"list":    `{"edits":[` + strings.Repeat(`{"old":"a\nb"},`, 50_000) + `{}]}`,
		"key":     `{"` + strings.Repeat(`k`, 100_000) + `":1}`,
	} {
		got, cut := shownValueText(text)
		require.Less(t, len(got), 2*maxValue, name)
		require.Equal(t, name != "key", cut, name)
	}
}
