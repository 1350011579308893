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
	for in, want := range map[string]string{
		// As it is.
		"some *text*\n\n- a\n- b\n\n1. c\n\n> d\n\n| a | b |\n| - | - |\n| `<c>` | d |": "",
		"### Third\n\n#### Fourth":                 "",
		"```html\n<div>\n# no heading\n```":        "",
		"in `<code>` and ``a ` <b>``":              "",
		"a < b, 3<4, <3, x<-y":                     "",
		"<https://a.example/x> and <mailto:a@b.c>": "",
		"    <div>\n    # code":                    "",
		"- a\n\n  ```\n  <div>\n  ```\n- b":        "",
		"1. a:\n   ```go\n   \tx <- y<b>\n   ```\n\n   - b `<c>`\n     ~~~\n     # d\n     ~~~\n\n2. e": "",
		"> a `<b>`\n>\n> ```\n> <c>\n> ```\n\nd":                                                        "",
		"| a `<b>` | c |\n| --- | --- |\n| `<d>` | \\| `<e>` |":                                         "",
		"\t<div>\n\n\t\t# code\n\nx\n\ty":                                                               "",
		"[\n  \"a\",\n  [b]: c\n]":                                                                      "\\[\n  \"a\",\n  [b]: c\n]\n",
		"[\n  1\n]\n\n[x](y) z\n[WARN] a":                                                               "",
		"a:\n[INFO]: b\n[WARN]: c":                                                                      "",
		"- [ ] a\n- [x] b\n\t- c\n\n* * *\n\n1) d\n2) e":                                                "- [ ] a\n- [x] b\n    - c\n\n* * *\n\n1) d\n2) e\n",
		"a [link](x), ![image](y), [x] and a[1]: b":                                                     "",
		"#hashtag\n#!/bin/sh\n####### seven":                                                            "",
		"rule\n\n---\n\nrule":                                                                           "",
		// Headings go below ours, and keep their order.
		"# First\n\n## Second ##\n\n###### Sixth": "### First\n\n#### Second ##\n\n###### Sixth\n",
		"## Second\n### Third":                    "### Second\n#### Third\n",
		"> # Quoted\n\n- ## Listed":               "> ### Quoted\n\n- #### Listed\n",
		"Title\n=====\n\nSub\n---\n\nother\n--":   "Title\n\\=====\n\nSub\n\n---\n\nother\n\\--\n",
		"> Title\n> ---":                          "> Title\n\n> ---\n",
		// Raw HTML becomes text.
		"a <b>bold</b> <!-- hidden --> <?php ?>": "a \\<b>bold\\</b> \\<!-- hidden --> \\<?php ?>\n",
		"<details>\n<summary>x</summary>":        "\\<details>\n\\<summary>x\\</summary>\n",
		"<![CDATA[ x ]]> `<ok>` <script>":        "\\<![CDATA[ x ]]> `<ok>` \\<script>\n",
		"an odd ` tick <b> and ` another":        "",
		"`open <b>":                              "`open \\<b>\n",
		"\\`<b>`":                                "\\`\\<b>`\n",
		"\\<b> and \\\\<b>":                      "\\<b> and \\\\&lt;b>\n",
		"https://a.example/<b>":                  "https://a.example/&lt;b>\n",
		"`over\n<b> lines`":                      "`over\n&lt;b> lines`\n",
		"| ` | <b> ` |\n|---|---|":               "| ` | \\<b> ` |\n|---|---|\n",
		// Definitions stand where they are.
		"[a]: https://a.example \"t\"": "\\[a]: https://a.example \"t\"\n",
		"[x](`y) <b> `":                "[x](`y) \\<b> `\n",
		"[x](y) `<b>`":                 "[x](y) `<b>`\n",
		"[long\nlabel]: x":             "\\[long\nlabel]: x\n",
		"text\n[^1]: note":             "text\n\\[^1]: note\n",
		// Fences end with their text.
		"```\nopen":                    "```\nopen\n```\n",
		"~~~~ c\n```\n~~~":             "~~~~ c\n```\n~~~\n~~~~\n",
		"- a\n  ```\n  open":           "- a\n  ```\n  open\n  ```\n",
		"> -\t```\n>   \topen":         "> - ```\n>   \topen\n>   ```\n",
		"> ```\n> open\nout <b>":       "> ```\n> open\nout \\<b>\n",
		"``` a | b\n-|-\n```":          "``` a &#124; b\n-|-\n```\n",
		strings.Repeat("> ", 20) + "x": strings.Repeat("> ", 16) + "\\> > > > x\n",
		"text  \n\n\n":                 "text\n",
	} {
		if want == "" {
			want = in + "\n"
		}
		require.Equal(t, want, string(Append(nil, []byte(in))), "%q", in)
	}
}

// keepsToItself checks that what is made of a text changes nothing around it.
func keepsToItself(t *testing.T, in string) {
	t.Helper()
	out := Append(nil, []byte(in))
	doc := fmt.Appendf(nil, "# t\n\n## A\n\n%s\n## B\n\n> *x*\n>\n%s\n**C**\n\n```\n## no\n```\n\n## D\n", out,
		AppendQuote(nil, []byte(in)))
	for name, p := range markdowntest.Judges {
		v := markdowntest.Judge(p, doc)
		require.Empty(t, v.Wrong, "%s: %q became %q", name, in, out)
		require.Equal(t, []string{"t", "A", "B", "D"}, v.Headings, "%s: %q became %q", name, in, out)
	}
	// But for what is put in, and for blanks, everything is still there.
	rest := strings.NewReplacer("&lt;", "<", "&#124;", "|").Replace(string(out))
	for _, c := range strings.NewReplacer("&lt;", "<", "&#124;", "|").Replace(in) {
		if c == ' ' || c == '\t' || c == '\n' {
			continue
		}
		at := strings.IndexRune(rest, c)
		require.GreaterOrEqual(t, at, 0, "%q became %q: %q is gone", in, out, c)
		rest = rest[at+1:]
	}
}

func TestHostileMarkdown(t *testing.T) {
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
	size := 1 << 20
	if sessiontest.UnderRace {
		size /= 32
	}
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
