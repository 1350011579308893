package markdown

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/markdown/markdowntest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

func TestMarkdownIsKeptButForWhatReachesOut(t *testing.T) {
	sessiontest.Page(t, "testdata/kept.txt", func(t *testing.T, _, in, want string) {
		require.Equal(t, want, string(Append(nil, []byte(in))), "%q", in)
	})
}

// keepsToItself checks that what is made of a text changes nothing around it.
func keepsToItself(t *testing.T, in string) {
	t.Helper()
	out := Append(nil, []byte(in))
	quote := AppendQuote(nil, []byte(in))
	const around = "# t\n\n## A\n\n%s\n## B\n\n> *x*\n>\n%s\n**C**\n\n```\n## no\n```\n\n## D\n"
	doc := fmt.Appendf(nil, around, out, quote)
	for name, p := range markdowntest.Judges {
		v := markdowntest.Judge(p, doc)
		require.Empty(t, v.Wrong, "%s: %q became %q", name, in, out)
		require.Equal(t, []string{"t", "A", "B", "D"}, v.Headings, "%s: %q became %q", name, in, out)
	}
	// But for what is put in, and for blanks, everything is still there.
	references := strings.NewReplacer("&lt;", "<", "&#124;", "|")
	rest := references.Replace(string(out))
	for _, c := range references.Replace(in) {
		if c == ' ' || c == '\t' || c == '\n' {
			continue
		}
		at := strings.IndexRune(rest, c)
		require.GreaterOrEqual(t, at, 0, "%q became %q: %q is gone", in, out, c)
		rest = rest[at+1:]
	}
}

func TestHostileMarkdown(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for seed := range uint64(10_000) {
		keepsToItself(t, markdowntest.HostileText(rand.New(rand.NewPCG(seed, 5))))
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n```\n<b>", uint64(0))
	f.Add("- a\n\n      <b>\n\n1) ```", uint64(1))
	f.Add("a | b\n-|-\n2. `<c>` |", uint64(2))
	f.Fuzz(func(t *testing.T, in string, mix uint64) {
		if mix != 0 {
			in += markdowntest.HostileText(rand.New(rand.NewPCG(mix, 6)))
		}
		keepsToItself(t, string(Visible(rawjson.AppendUTF8(nil, []byte(in)))))
	})
}

// TestLongTexts: the work grows with the text and not faster, whatever it is made of. With the square of it, a
// text of this size, the longest that is shown, would take minutes.
func TestLongTexts(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const size = 1 << 20
	for _, piece := range []string{"> ", "- ", "1. ", "`", "` ``", "<b", "\\<b", "http://<b", "http://a`", "[", "[a]: ", "](", "](\"`", "](<", "|",
		"-|-\n", "2. x\n", "* * *\n", "\n", "#\n", "-\n", "a\n===\n", "\t", "\\\n", "- a\n ", "``` \n", "<https://a>", "    x\n", "a|b\n-|-\n2. x\n",
		"*a_ ", "[a](", "<b> `", "-\t"} {
		text := bytes.Repeat([]byte(piece), size/len(piece))
		require.Less(t, len(Append(nil, append(text, "<b>"...))), 5*len(text), "%q", piece)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                 "plain\ttext\n",
		"\x1b[31mred\x1b[0m":            "␛[31mred␛[0m",
		"bell\a nul\x00 del\x7f":        "bell␇ nul␀ del␡",
		"one\r\ntwo\rthree\r":           "one\ntwo\nthree\n",
		"c1 \u009b31m":                  "c1 {U+009B}31m",
		"\u202eevil\u2066x\u2069":       "{U+202E}evil{U+2066}x{U+2069}",
		"\u061c \u200e\u200f":           "{U+061C} {U+200E}{U+200F}",
		"line\u2028paragraph\u2029":     "line{U+2028}paragraph{U+2029}",
		"“quotes” – and é, 語, 👍🏽\u200d": "“quotes” – and é, 語, 👍🏽\u200d",
		"high \xed\xa0\xbd end":         "high \uFFFD end",
		"\u2027\u202f\u2065\u206a":      "\u2027\u202f\u2065\u206a",
		"":                              "",
	} {
		require.Equal(t, want, string(Visible([]byte(in))), "%q", in)
	}
}

func TestLinesCodeAndNames(t *testing.T) {
	require.Equal(t, "a b c", string(AppendLine(nil, []byte("\n a\t\tb \n c \n"), 10)))
	require.Equal(t, "äöü…", string(AppendLine(nil, []byte("äöüß"), 3)))
	require.Equal(t, "äöüß", string(AppendLine(nil, []byte("äöüß"), 4)))
	for in, want := range map[string]string{"": "", "x": "`x`", "a`b": "``a`b``", "`": "`` ` ``", "``x": "``` ``x ```"} {
		require.Equal(t, want, string(AppendCode(nil, in)))
	}
	require.Equal(t, `\<b\> \*x\* \[l\](u) \\ \#`, string(AppendText(nil, `<b> *x* [l](u) \ #`)))
	require.Equal(t, "```\na\n```\n", string(AppendFenced(nil, "", []byte("a"))))
	require.Equal(t, "`````sh\n````\n`````\n", string(AppendFenced(nil, "sh", []byte("````\n"))))
}
