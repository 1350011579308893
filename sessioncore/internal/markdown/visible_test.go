package markdown

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		require.Equal(t, want, string(AppendVisible(nil, []byte(in))), "%q", in)
	}
}

func TestLinesCodeAndNames(t *testing.T) {
	require.Equal(t, "a b c", string(AppendLine(nil, []byte("\n a\t\tb \n c \n"), 10)))
	require.Equal(t, "äöü…", string(AppendLine(nil, []byte("äöüß"), 3)))
	require.Equal(t, "äöüß", string(AppendLine(nil, []byte("äöüß"), 4)))
	for in, want := range map[string]string{"": "", "x": "`x`", "a`b": "``a`b``", "`": "`` ` ``", "``x": "``` ``x ```"} {
		require.Equal(t, want, string(AppendCode(nil, []byte(in))))
	}
	require.Equal(t, `\<b\> \*x\* \[l\](u) \\ \#`, string(AppendText(nil, []byte(`<b> *x* [l](u) \ #`))))
	require.Equal(t, "```\na\n```\n", string(AppendFenced(nil, "", []byte("a"))))
	require.Equal(t, "`````sh\n````\n`````\n", string(AppendFenced(nil, "sh", []byte("````\n"))))
}
