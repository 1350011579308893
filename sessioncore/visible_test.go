package sessioncore

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                 "plain\ttext\n",
		"\x1b[31mred\x1b[0m":            "␛[31mred␛[0m",
		"bell\a nul\x00 del\x7f":        "bell␇ nul␀ del␡",
		"one\r\ntwo\rthree\r":           "one\ntwo\nthree\n",
		"c1 \u009b31m":                  "c1 {U+009B}31m",
		"\u202eevil\u2066x\u2069":       "{U+202E}evil{U+2066}x{U+2069}",
		"line\u2028paragraph\u2029":     "line{U+2028}paragraph{U+2029}",
		"“quotes” – and é, 語, 👍🏽\u200d": "“quotes” – and é, 語, 👍🏽\u200d",
		"high \xed\xa0\xbd end":         "high \uFFFD end",
		"\u2027\u202f\u2065\u206a":      "\u2027\u202f\u2065\u206a",
		"":                              "",
	} {
		require.Equal(t, want, string(appendVisible(nil, []byte(in))), "%q", in)
	}
}

func TestLinesCodeAndNames(t *testing.T) {
	require.Equal(t, "a b c", string(appendLine(nil, []byte("\n a\t\tb \n c \n"), 10)))
	require.Equal(t, "äöü…", string(appendLine(nil, []byte("äöüß"), 3)))
	require.Equal(t, "äöüß", string(appendLine(nil, []byte("äöüß"), 4)))
	for in, want := range map[string]string{"": "", "x": "`x`", "a`b": "``a`b``", "`": "`` ` ``", "``x": "``` ``x ```"} {
		require.Equal(t, want, string(appendCode(nil, []byte(in))))
	}
	require.Equal(t, `\<b\> \*x\* \[l\](u) \\ \#`, string(appendPlain(nil, []byte(`<b> *x* [l](u) \ #`))))
	require.Equal(t, "```\na\n```\n", string(appendFenced(nil, "", []byte("a"))))
	require.Equal(t, "`````sh\n````\n`````\n", string(appendFenced(nil, "sh", []byte("````\n"))))
	require.Equal(t, "a%20%28b%29%25%C3%A4~1", string(appendLinkPath(nil, "a (b)%ä~1")))
}

// TestExcerptCutsAnywhere: wherever a string is cut, what is shown is the beginning and the end of its text,
// without halves of characters or escapes.
func TestExcerptCutsAnywhere(t *testing.T) {
	body := `a\"\\\\\u0041ä\ud83d\ude00 語\n` + "\xff" + `\/z\\`
	whole := string(appendVisible(nil, rawjson.AppendDecoded(nil, []byte(body))))
	v := rawjson.Value(`"` + body + `"`)
	var x excerpter
	for head := range len(body) {
		for tail := range len(body) - head {
			e, squeezed := x.of(v, excerptLimits{whole: head + tail, head: head, tail: tail})
			require.False(t, squeezed)
			require.True(t, strings.HasPrefix(whole, string(e.head)), "%d: %q", head, e.head)
			require.True(t, strings.HasSuffix(whole, string(e.tail)), "%d: %q", tail, e.tail)
			require.True(t, utf8.Valid(e.head) && utf8.Valid(e.tail))
			require.LessOrEqual(t, len(e.head), 3*head)
		}
	}
	e, _ := x.of(v, excerptLimits{whole: len(body)})
	require.Equal(t, whole, string(e.head))
	require.Zero(t, e.left)
}

func TestExcerptOfLongText(t *testing.T) {
	line := strings.Repeat("x", 99) + `\n`
	var x excerpter
	e, _ := x.of(rawjson.Value(`"`+strings.Repeat(line, 1000)+`"`), excerptLimits{whole: 1000, head: 505, tail: 303})
	require.Equal(t, strings.Repeat(strings.Repeat("x", 99)+"\n", 5), string(e.head), "whole lines")
	require.Equal(t, strings.Repeat(strings.Repeat("x", 99)+"\n", 3), string(e.tail))
	require.Greater(t, e.left, 100_000)
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
