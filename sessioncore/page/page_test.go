package page

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	iofs "io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/transcript"
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

// written is the page of some parts.
func written(t *testing.T, head string, parts ...transcript.Part) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, []byte(head), func(yield func(transcript.Part, error) bool) {
		for _, part := range parts {
			if !yield(part, nil) {
				return
			}
		}
	}, testBlobs))
	_, body, ok := strings.Cut(out.String(), "<body>\n<main>\n")
	require.True(t, ok)
	requireHarmless(t, strings.TrimSuffix(body, end))
	return out.String()
}

// bodyOf renders what an entry says.
func bodyOf(t *testing.T, said string) string {
	t.Helper()
	_, body, ok := strings.Cut(written(t, "", transcript.Part{Name: "e", Body: []byte(said)}), "<main>\n<div id=\"e\">\n")
	require.True(t, ok)
	body, ok = strings.CutSuffix(body, "</div>\n</main>\n"+end)
	require.True(t, ok)
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
	page := written(t, "# A \\<b\\> & *title*\n\nSession.\n",
		transcript.Part{Name: "0a", Turn: "User", Opening: []byte("\n## User · 2026-01-05 09:00:00 · 0a\n"), Body: []byte("\nhi\n*there* <b>\n\nmore\n")},
		transcript.Part{Name: "0b", Turn: "Assistant", Opening: []byte("\n## Assistant · 0b · `m`\n"), Body: []byte("\n```diff\n+a <b>\n-b\n\n c\n```\n")},
		transcript.Part{Name: "0c", Body: []byte("\n**Result** · `x` · 09:00:00 · 0c\n\n```\n+out\n```\n"), Result: true},
		transcript.Part{Name: "0d", Opening: []byte("\n*09:00:01 · 0d*\n"), Body: []byte("\nso\n")},
		transcript.Part{Name: `"><script>`, Turn: "User", Opening: []byte("\n## User · `\"><script>`\n"), Body: []byte("\n```\ncode\n```\n")},
		transcript.Part{Name: "<code>", Turn: "User (automatic)", Opening: []byte("\n## User (automatic) · `<code>`\n"), Body: []byte("\nx\n")},
	)
	require.Contains(t, page, "<title>A &lt;b&gt; &amp; title</title>")
	require.Contains(t, page, `content="default-src 'none'; img-src data:; style-src 'unsafe-inline'"`)
	require.NotContains(t, page, "%!")
	for _, want := range []string{
		"<div id=\"0a\">\n<h2>User · 2026-01-05 09:00:00 · <a href=\"#0a\">0a</a></h2>\n<p>hi\n<em>there</em> &lt;b&gt;</p>\n<p>more</p>\n</div>\n",
		"<h2>Assistant · <a href=\"#0b\">0b</a> · <code>m</code></h2>\n<pre><code><span class=\"add\">+a &lt;b&gt;</span>\n<span class=\"del\">-b</span>\n\n c\n</code></pre>\n",
		"<details>\n<summary><strong>Result</strong> · <code>x</code> · 09:00:00 · <a href=\"#0c\">0c</a></summary>\n<pre><code>+out\n</code></pre>\n</details>\n</div>\n",
		"<p><em>09:00:01 · <a href=\"#0d\">0d</a></em></p>\n<p>so</p>\n",
		"<div id=\"&#34;&gt;&lt;script&gt;\">\n<h2>User · <code>&quot;&gt;&lt;script&gt;</code></h2>\n",
		"<h2>User (automatic) · <code>&lt;code&gt;</code></h2>\n",
		"</main>\n<nav>\n<ol>\n<li><a href=\"#0a\">hi there &lt;b&gt;</a></li>\n<li><a href=\"#&#34;&gt;&lt;script&gt;\">…</a></li>\n</ol>\n</nav>\n" + end,
	} {
		require.Contains(t, page, want)
	}
	page = written(t, "")
	require.Contains(t, page, "<title>Session</title>")
	require.True(t, strings.HasSuffix(page, "<main>\n</main>\n"+end))
	errBad := errors.New("bad disk")
	bad := func(yield func(transcript.Part, error) bool) { yield(transcript.Part{}, errBad) }
	require.ErrorIs(t, Write(io.Discard, nil, bad, testBlobs), errBad)
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
		require.NoError(t, Write(&out, []byte("![a](blobs/"+hash+")"), func(func(transcript.Part, error) bool) {}, func(string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(picture + strings.Repeat("x", size-len(picture)))), nil
		}))
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

func FuzzWrite(f *testing.F) {
	for _, seed := range []string{
		"# t\n\n## User\n\n<b> [a](b) ![c](blobs/" + hash + ")\n", "```x\n## y\n", "> - 1. a\n", "<a@b.c> <http://x> &lt; \\<",
		"| a |\n|-|\n", "[x]: javascript:y\n\n[x]", "<![CDATA[x", "<?x", "~~a~~ **b**", "![<b>](https://x \"t\")",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { bodyOf(t, text) })
}
