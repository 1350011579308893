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

// bodyOf renders a transcript and returns what is between head and foot.
func bodyOf(t *testing.T, transcript string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, strings.NewReader(transcript), testBlobs))
	_, body, ok := strings.Cut(out.String(), "<body>\n")
	require.True(t, ok)
	body, ok = strings.CutSuffix(body, foot)
	require.True(t, ok)
	requireHarmless(t, body)
	return body
}

// tags are the elements of a page, with the attributes that they may have.
var tags = regexp.MustCompile(`^<(?:/?(?:h[1-6]|p|pre|blockquote|ul|ol|li|em|strong|del|table|thead|tbody|tr|th|td|a|code)|` +
	`(?:br|hr)(?: /)?|ol start="\d+"|(?:th|td) style="text-align:[a-z]+"|code class="language-[^"<>]*"|` +
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
	var out bytes.Buffer
	require.NoError(t, Write(&out, strings.NewReader("# A \\<b\\> & *title*\n\nSession.\n\n## User\n\nhi\n"), testBlobs))
	require.Contains(t, out.String(), "<title>A &lt;b&gt; &amp; title</title>")
	require.Contains(t, out.String(), `content="default-src 'none'; img-src data:; style-src 'unsafe-inline'"`)
	require.Contains(t, out.String(), "<h2>User</h2>\n<p>hi</p>\n")
	require.NotContains(t, out.String(), "%!")
	out.Reset()
	require.NoError(t, Write(&out, strings.NewReader(""), testBlobs))
	require.Contains(t, out.String(), "<title>Session</title>")
	require.True(t, strings.HasSuffix(out.String(), foot))
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
		"```\"><script>\nx\n```":                      "<pre><code class=\"language-&quot;&gt;&lt;script&gt;\">x\n</code></pre>\n",
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
		require.NoError(t, Write(&out, strings.NewReader("![a](blobs/"+hash+")"), func(string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(picture + strings.Repeat("x", size-len(picture)))), nil
		}))
		require.Greater(t, out.Len(), maxImage)
		require.Equal(t, cut, strings.Contains(out.String(), "only the beginning of it"))
	}
	require.Equal(t, "<p><em>a (not in the blob store)</em></p>\n", bodyOf(t, "![a](blobs/"+strings.Repeat("0", 64)+")"))
}

// TestSplit: pieces are bounded, they are the whole text, and a turn that is not too long is one.
func TestSplit(t *testing.T) {
	turn := "## User\n\nwords\n\n```\n## not a heading\n\n~~~\n```\n\n"
	long := "## Tool\n\n" + strings.Repeat("line\n\n", 100_000)
	wide := "## Wide\n\n" + strings.Repeat("x", 3<<20) + "\n"
	fenced := "## Code\n\n````\n" + strings.Repeat("\n## x\n```\n", 200_000) + "````\n\n"
	text := "# Title\n\nSession.\n\n" + turn + turn + long + turn + wide + fenced + turn
	s := newSplitter(strings.NewReader(text))
	var all strings.Builder
	var pieces []string
	for {
		p, err := s.next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Less(t, len(p), maxPiece+maxLine+1)
		pieces = append(pieces, string(p))
		all.Write(p)
	}
	require.Equal(t, text, all.String())
	require.Equal(t, []string{"# Title\n\nSession.\n\n", turn, turn}, pieces[:3])
	require.Equal(t, turn, pieces[len(pieces)-1])
	for _, p := range pieces {
		require.NotEqual(t, "## not", p[:min(6, len(p))])
	}
	s = newSplitter(io.MultiReader(strings.NewReader("x"), badReader{}))
	_, err := s.next()
	require.ErrorIs(t, err, errBad)
}

var errBad = errors.New("bad disk")

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errBad }

// TestAbsurd: text that is nested without end is shown as it is.
func TestAbsurd(t *testing.T) {
	for _, part := range []string{"[", "*a ", "![", "`", "_a "} {
		body := bodyOf(t, "## User\n\n"+strings.Repeat(part, 100_000)+"<b>\n")
		require.Contains(t, body, "<pre>## User", part)
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
