package view

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	iofs "io/fs"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

var (
	hash    = strings.Repeat("0123abcd", 8)
	picture = "\x89PNG\x0d\x0a\x1a\x0a" + strings.Repeat("picture", 1000)
	svg     = strings.Repeat("fe", 32)
)

func testBlobs(h string) (io.ReadCloser, error) {
	switch h {
	case hash:
		return io.NopCloser(strings.NewReader(picture)), nil
	case svg:
		return io.NopCloser(strings.NewReader(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)), nil
	}
	return nil, iofs.ErrNotExist
}

// testEntry is an entry of a page.
type testEntry struct {
	name   string
	begins bool
	blocks entryBlocks
}

// written is the page of some entries.
func written(t *testing.T, head []block, entries ...testEntry) string {
	t.Helper()
	var out bytes.Buffer
	p := newPage(&out, head, testBlobs)
	for _, e := range entries {
		p.entry(e.name, e.begins, &e.blocks)
	}
	require.NoError(t, p.end())
	_, body, ok := strings.Cut(out.String(), "<body>\n<main>\n")
	require.True(t, ok)
	requireHarmless(t, strings.TrimSuffix(body, pageEnd))
	return out.String()
}

func proseOf(text string) block { return block{kind: proseText, text: []byte(text)} }

// bodyOf is what a page has of Markdown.
func bodyOf(t *testing.T, said string) string {
	t.Helper()
	var out bytes.Buffer
	p := newPage(&out, nil, testBlobs)
	p.convert([]byte(said))
	require.NoError(t, p.end())
	_, body, ok := strings.Cut(out.String(), "<main>\n")
	require.True(t, ok)
	body, ok = strings.CutSuffix(body, "</main>\n"+pageEnd)
	require.True(t, ok)
	requireHarmless(t, body)
	return body
}

// tags are the elements of a page, with the attributes that they may have.
var tags = regexp.MustCompile(`^<(?:/?(?:h[1-6]|p|pre|blockquote|ul|ol|li|em|strong|del|table|thead|tbody|tr|th|td|a|code)|` +
	`/?(?:details|summary|main|nav|li|div|span)|div id="[^"<>]*"|span class="(?:add|del|at)"|a href="#[^"<>]*"|` +
	`(?:br|hr)(?: /)?|ol start="\d+"|(?:th|td) style="text-align:[a-z]+"|` +
	`a href="(?i:https?:|mailto:)[^"<>]*" rel="noopener noreferrer nofollow"|` +
	`img alt="[^"<>]*" src="data:image/(?:png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/=]*")>$`)

// requireHarmless holds every tag of a page against those that a transcript needs.
func requireHarmless(t *testing.T, body string) {
	t.Helper()
	for rest := body; ; {
		_, after, ok := strings.Cut(rest, "<")
		if !ok {
			return
		}
		tag, left, ok := strings.Cut(after, ">")
		require.True(t, ok, body)
		require.Regexp(t, tags, "<"+tag+">")
		rest = left
	}
}

func TestPage(t *testing.T) {
	name := func(text string) span { return span{style: nameStyle, text: text} }
	at := span{style: timeStyle, text: "09:00:00"}
	codeBlock := func(info, text string) block { return block{kind: codeText, info: info, text: []byte(text)} }
	page := written(t, []block{lineOf(titleLine, span{text: "A <b> & *title*"}), lineOf(paragraphLine, span{text: "Session."})},
		testEntry{"0a", true, entryBlocks{heading: lineOf(headingLine, span{text: "User"}, at, name("0a")), body: []block{proseOf("hi\n*there* <b>\n\nmore")}}},
		testEntry{"0b", true, entryBlocks{heading: lineOf(headingLine, span{text: "Assistant"}, name("0b"), codeOf("m")), body: []block{codeBlock("diff", "+a <b>\n-b\n\n c")}}},
		testEntry{"0c", false, entryBlocks{flags: joinsTurn, body: []block{
			lineOf(resultLine, span{style: strongStyle, text: "Result"}, codeOf("x"), at, name("0c")), codeBlock("", "+out")}}},
		testEntry{"0d", false, entryBlocks{naming: lineOf(namingLine, at, name("0d")), body: []block{proseOf("so"), {kind: thoughtText, text: []byte("hm")}}}},
		testEntry{`"><script>`, true, entryBlocks{heading: lineOf(headingLine, span{text: "User"}, name(`"><script>`)), body: []block{codeBlock("", "code")}}},
		testEntry{"<code>", true, entryBlocks{heading: lineOf(headingLine, span{text: "User (automatic)"}, name("<code>")), body: []block{proseOf("x")}}},
	)
	require.Contains(t, page, "<title>A &lt;b&gt; &amp; *title*</title>")
	require.Contains(t, page, `content="default-src 'none'; img-src data:; style-src 'unsafe-inline'"`)
	for _, want := range []string{
		"<h1>A &lt;b&gt; &amp; *title*</h1>\n<p>Session.</p>\n",
		"<div id=\"0a\">\n<h2>User · 09:00:00 · <a href=\"#0a\">0a</a></h2>\n<p>hi\n<em>there</em> &lt;b&gt;</p>\n<p>more</p>\n</div>\n",
		"<h2>Assistant · <a href=\"#0b\">0b</a> · <code>m</code></h2>\n<pre><code><span class=\"add\">+a &lt;b&gt;</span>\n<span class=\"del\">-b</span>\n\n c\n</code></pre>\n",
		"<details>\n<summary><strong>Result</strong> · <code>x</code> · 09:00:00 · <a href=\"#0c\">0c</a></summary>\n<pre><code>+out\n</code></pre>\n</details>\n</div>\n",
		"<p><em>09:00:00 · <a href=\"#0d\">0d</a></em></p>\n<p>so</p>\n<blockquote>\n<p><em>Thinking</em></p>\n<p>hm</p>\n</blockquote>\n",
		"<div id=\"&#34;&gt;&lt;script&gt;\">\n<h2>User · <code>&quot;&gt;&lt;script&gt;</code></h2>\n",
		"<h2>User (automatic) · <code>&lt;code&gt;</code></h2>\n",
		"</main>\n<nav>\n<ol>\n<li><a href=\"#0a\">hi there &lt;b&gt;</a></li>\n<li><a href=\"#&#34;&gt;&lt;script&gt;\">…</a></li>\n</ol>\n</nav>\n" + pageEnd,
	} {
		require.Contains(t, page, want)
	}
	page = written(t, nil)
	require.Contains(t, page, "<title>Session</title>")
	require.True(t, strings.HasSuffix(page, "<main>\n</main>\n"+pageEnd))
}

// TestPageOfASession: the page of a branch has what its transcript has, and errors come back.
func TestPageOfASession(t *testing.T) {
	s := sessiontest.Snapshot(t, newTestSession(t, sessiontest.Header+sessiontest.MessageLine(0, `{"role":"user","content":[{"type":"image","data":"blob:sha256:`+hash+`"}]}`)).session)
	var out bytes.Buffer
	require.NoError(t, Page(context.Background(), &out, s, 0, testBlobs))
	require.Contains(t, out.String(), "<h2>User · 2026-01-05 09:00:00 · <a href=\"#e0\">e0</a></h2>\n<p><img alt=\"Image:\" src=\"data:image/png;base64,")
	errBad := errors.New("bad disk")
	bad := func(string) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(picture), iotest.ErrReader(errBad))), nil
	}
	require.ErrorIs(t, Page(context.Background(), io.Discard, s, 0, bad), errBad)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Page(ctx, io.Discard, s, 0, testBlobs), context.Canceled)
}

// What others wrote cannot run or load anything, nor lead to a file of the reader's.
func TestHostileText(t *testing.T) {
	for text, want := range map[string]string{
		"<script>alert(1)</script>":                   "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n",
		"a <img src=x onerror=alert(1)> b":            "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n",
		"<!-- x --> <b>":                              "<p>&lt;!-- x --&gt; &lt;b&gt;</p>\n",
		"[a](javascript:alert(1))":                    "<p>a</p>\n",
		"[a](JaVaScRiPt&colon;alert(1))":              "<p>a</p>\n",
		"[a](data:text/html,x) [b](file:///etc/x)":    "<p>a b</p>\n",
		"[a](entries/x.json) [b](//host/x) [c](#x)":   "<p>a b c</p>\n",
		"[a](https://host/?q=1&b=\"x\")":              `<p><a href="https://host/?q=1&amp;b=%22x%22" rel="noopener noreferrer nofollow">a</a></p>` + "\n",
		"<javascript:alert(1)>":                       "<p>javascript:alert(1)</p>\n",
		"<me@host.org>":                               `<p><a href="mailto:me@host.org" rel="noopener noreferrer nofollow">me@host.org</a></p>` + "\n",
		"![a](https://host/track.png)":                `<p><a href="https://host/track.png" rel="noopener noreferrer nofollow">a</a></p>` + "\n",
		"![a](data:image/svg+xml;base64,AAAA)":        "<p>a</p>\n",
		"![a\"><script>](../blobs/../../x)":           "<p>a&#34;&gt;&lt;script&gt;</p>\n",
		"![a](../../blobs/" + hash + "?x)":            "<p>a</p>\n",
		"![a](../../blobs/" + strings.Repeat("0", 64): "<p>![a](../../blobs/" + strings.Repeat("0", 64) + "</p>\n",
		"```\"><script>\nx\n```":                      "<pre><code>x\n</code></pre>\n",
		"| a |\n| :-: |\n| <i> |":                     "<table>\n<thead>\n<tr>\n<th style=\"text-align:center\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td style=\"text-align:center\">&lt;i&gt;</td>\n</tr>\n</tbody>\n</table>\n",
	} {
		require.Equal(t, want, bodyOf(t, text), text)
	}
}

func TestImages(t *testing.T) {
	body := bodyOf(t, "![Image: a \"b\"](../../blobs/"+hash+")")
	require.Equal(t, `<p><img alt="Image: a &#34;b&#34;" src="data:image/png;base64,`+base64.StdEncoding.EncodeToString([]byte(picture))+`"></p>`+"\n", body)
	require.Equal(t, "<p><em>a (not a picture that can be shown)</em></p>\n", bodyOf(t, "![a](blobs/"+svg+")"))
	for size, cut := range map[int]bool{maxImage: false, maxImage + 1: true} {
		var out bytes.Buffer
		p := newPage(&out, nil, func(string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(picture + strings.Repeat("x", size-len(picture)))), nil
		})
		p.convert([]byte("![a](blobs/" + hash + ")"))
		require.NoError(t, p.end())
		require.Greater(t, out.Len(), maxImage)
		require.Equal(t, cut, strings.Contains(out.String(), "only the beginning of it"))
	}
	require.Equal(t, "<p><em>a (not in the blob store)</em></p>\n", bodyOf(t, "![a](blobs/"+strings.Repeat("0", 64)+")"))
}

// TestAbsurd: text that is nested without end is shown as it is.
func TestAbsurd(t *testing.T) {
	for _, part := range []string{"[", "*a ", "![", "`", "_a "} {
		body := bodyOf(t, strings.Repeat(part, 100_000)+"<b>\n")
		require.Contains(t, body, "<pre>"+part, part)
		require.Contains(t, body, "&lt;b&gt;")
	}
}

func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		"# t\n\n## User\n\n<b> [a](b) ![c](blobs/" + hash + ")\n", "```x\n## y\n", "> - 1. a\n", "<a@b.c> <http://x> &lt; \\<",
		"| a |\n|-|\n", "[x]: javascript:y\n\n[x]", "<![CDATA[x", "<?x", "~~a~~ **b**", "![<b>](https://x \"t\")",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { bodyOf(t, text) })
}
