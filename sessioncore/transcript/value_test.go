package transcript

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// TestExcerptCutsAnywhere: wherever a string is cut, what is shown is the beginning and the end of its text,
// without halves of characters or escapes.
func TestExcerptCutsAnywhere(t *testing.T) {
	body := `a\"\\\\\u0041ä\ud83d\ude00 語\n` + "\xff" + `\/z\\`
	whole := string(markdown.AppendVisible(nil, rawjson.AppendDecoded(nil, []byte(body))))
	v := rawjson.Value(`"` + body + `"`)
	var x excerpter
	for head := range len(body) {
		for tail := range len(body) - head {
			e := x.of(v, excerptLimits{whole: head + tail, head: head, tail: tail})
			require.Equal(t, e.left > 0, e.cut)
			require.True(t, strings.HasPrefix(whole, string(e.head)), "%d: %q", head, e.head)
			require.True(t, strings.HasSuffix(whole, string(e.tail)), "%d: %q", tail, e.tail)
			require.True(t, utf8.Valid(e.head) && utf8.Valid(e.tail))
			require.LessOrEqual(t, len(e.head), 3*head)
		}
	}
	e := x.of(v, excerptLimits{whole: len(body)})
	require.Equal(t, whole, string(e.head))
	require.Zero(t, e.left)
}

func TestBase64IsLeftOut(t *testing.T) {
	picture := strings.Repeat("iVBORw0KGgo/+", 500)
	for _, c := range []struct{ in, want string }{
		{"see data:image/png;base64," + picture + " there", "see data:image/png;base64," + picture[:kept64-len("base64,")+len("base64,")] + "…{6 KB of base64} there"},
		{picture, picture[:kept64] + "…{6 KB of base64}"},
		{strings.Repeat("=", 3000), strings.Repeat("=", 3000)},
		{strings.Repeat("word ", 3000), strings.Repeat("word ", 3000)},
		{picture[:shortest64-1], picture[:shortest64-1]},
		{picture + "\n" + picture, picture[:kept64] + "…{6 KB of base64}\n" + picture[:kept64] + "…{6 KB of base64}"},
	} {
		got, any := appendSqueezed(nil, []byte(c.in))
		if !any {
			got = []byte(c.in)
		}
		require.Equal(t, c.want, string(got))
	}
}

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
