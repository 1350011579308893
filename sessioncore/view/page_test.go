package view

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	iofs "io/fs"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

var (
	// pageEnd is the end of each page, with the lines of the session or without.
	pageEnd = regexp.MustCompile(`</main>\n(?:<template id="/lines" data-name="[^"<>]+\.jsonl">` +
		`[A-Za-z0-9+/=]*</template>\n)?` + regexp.QuoteMeta(string(pageShell().end)) + `$`)

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

// pageOf is the page of a session with these lines behind its header, of the branch to an entry alone if that is named.
func pageOf(t *testing.T, lines string, alone ...string) string {
	t.Helper()
	s := snapshotOf(t, sessiontest.Header, lines)
	subject := Subject{
		Session: s,
		End:     sessiontest.Leaf(t, s),
		Blobs:   testBlobs,
		Agent:   "A <b>",
		Model:   "m&m",
		Tokens:  "2k",
		Cost:    "$1.00",
	}
	for _, name := range alone {
		end, err := s.Find(name)
		require.NoError(t, err)
		subject.Alone = true
		subject.End = end
	}
	var out bytes.Buffer
	require.NoError(t, Page(context.Background(), &out, subject))
	requireHarmless(t, partOf(t, out.String(), pageTools))
	return out.String()
}

// partOf is the part of a page behind the one that all pages have.
func partOf(t *testing.T, page, tools string) string {
	t.Helper()
	_, body, ok := strings.Cut(page, "</a>\n<header>\n")
	require.True(t, ok)
	end := pageEnd.FindStringIndex(body)
	require.NotNil(t, end)
	return strings.Replace(body[:end[0]], tools, "", 1)
}

// bodyOf is the HTML of Markdown.
func bodyOf(t *testing.T, said string) string {
	t.Helper()
	var out bytes.Buffer
	p := newPage(&out, snapshotOf(t, sessiontest.Header), testBlobs)
	p.convert([]byte(said))
	require.NoError(t, p.end())
	body, ok := strings.CutSuffix(out.String(), string(pageShell().end))
	require.True(t, ok)
	requireHarmless(t, body)
	return body
}

// tags are the elements of a page, with the attributes that they may have.
var tags = regexp.MustCompile(`^<(?:/?(?:h[1-6]|p|pre|blockquote|ul|ol|li|em|strong|del|table|thead|tbody|tr|th|td|a|code)|` +
	`/?(?:header|details|summary|main|nav|article|section|li|div|span|dl|dt|dd|b|i|small)|main id="/main"|nav aria-label="Entries"|` +
	`div id="[^"<>]*"|span class="(?:add|del|hunk)"|span class="g" aria-hidden="true"|a href="#[^"<>]*"(?: title="[^"<>]*")?|` +
	`article id="[^"<>]*" class="(?:entry|user|tool|note)(?: begins)?(?: labelled)?"|li class="[a-z ]*"|` +
	`p class="(?:at|say|label|fork)"|h2 class="branch"|details class="(?:thinking|result|call|call failed)"|` +
	`(?:br|hr)(?: /)?|ol start="\d+"|(?:th|td) align="[a-z]+"|` +
	`a href="(?i:https?:|mailto:)[^"<>]*" rel="noopener noreferrer nofollow"|` +
	`img alt="[^"<>]*" src="data:image/(?:png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/=]*")>$`)

// requireHarmless holds every tag of a page against those that a transcript needs.
func requireHarmless(t *testing.T, body string) {
	t.Helper()
	rest := body
	for {
		_, after, hasTag := strings.Cut(rest, "<")
		if !hasTag {
			return
		}
		tag, left, hasEnd := strings.Cut(after, ">")
		require.True(t, hasEnd, body)
		require.Regexp(t, tags, "<"+tag+">")
		rest = left
	}
}

// treeLines is a session with a call that failed, one without a result, a label, and two branches.
var treeLines = sessiontest.MessageLine(0, `{"role":"user","content":"hi\n*there* <b>"}`) +
	sessiontest.MessageLine(1, `{"role":"assistant","provider":"p","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"so"},`+
		`{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"go <test>","timeout":9}},`+
		`{"type":"toolCall","id":"c2","name":"edit","arguments":{"file_path":"a.go","old_string":"a","new_string":"b <i>"}}]}`) +
	sessiontest.MessageLine(2, `{"role":"toolResult","toolCallId":"c1","toolName":"bash","isError":true,"content":[{"type":"text","text":"no <u>"}]}`) +
	sessiontest.MessageLine(3, `{"role":"user","content":"old"}`) +
	`{"type":"message","id":"new","parentId":"e2","timestamp":"2026-01-05T09:10:00.000Z","message":{"role":"user","content":"new"}}` + "\n" +
	sessiontest.LabelAt(59, "l", "new", "e0", "<mark>")

// TestPageOfLoneResult: the link to a result without its call stands below the line that unfolds it.
func TestPageOfLoneResult(t *testing.T) {
	page := pageOf(t, sessiontest.MessageLine(0, `{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"ok"}]}`))
	require.Regexp(t, `<summary>[^\n]*<code>bash</code>[^\n]*</summary>\n<p class="at"><a href="#e0">e0</a></p>`, page)
	require.NotRegexp(t, `<summary>[^\n]*<a `, page)
}

// TestPageOfNestedCalls: calls that a tool made itself are in the fold of its result, as is all of a result in a message.
func TestPageOfNestedCalls(t *testing.T) {
	fold := regexp.MustCompile(`(?s)<details class="result">.*?</details>`)
	page := pageOf(t, sessiontest.MessageLine(0, `{"role":"toolResult","toolName":"codemode","content":[{"type":"text","text":"done"}],`+
		`"nestedCalls":{"calls":[{"name":"write","arguments":{"path":"a.txt","content":"<x>"}}]}}`))
	require.Regexp(t, `(?s)<code>write</code>.*a\.txt.*&lt;x&gt;.*done`, fold.FindString(page))
	page = pageOf(t, sessiontest.MessageLine(0, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done"},{"type":"text","text":"on"}]}`))
	require.Contains(t, fold.FindString(page), "done")
}

// TestPage: see testdata/page.html, and testdata/branch.html of a branch alone, behind the part that all pages have.
func TestPage(t *testing.T) {
	for file, page := range map[string]string{"page.html": pageOf(t, treeLines), "branch.html": pageOf(t, treeLines, "e3")} {
		require.Contains(t, page, `content="default-src 'none'; img-src data:; style-src 'sha256-`)
		requireGolden(t, "testdata/"+file, partOf(t, page, pageTools))
	}
	require.Contains(t, pageOf(t, treeLines), "<title>hi</title>")
	require.Contains(t, pageOf(t, ""), "<title>Session</title>")
}

// TestPageHasAnchors: each entry of a tree has one anchor, however many branches there are, and each link leads to one.
func TestPageHasAnchors(t *testing.T) {
	lines := treeLines + sessiontest.At(1, "odd <'\\\"&", "", "") + sessiontest.Entry("a b%41&copy", "nothing") + sessiontest.Entry("e1", "e3") +
		sessiontest.Entry("/main", "e0")
	for n := range 200 {
		lines += sessiontest.Entry(fmt.Sprint("n", n), fmt.Sprint("n", n/2-1))
	}
	page := pageOf(t, lines)
	requireAnchors(t, snapshotOf(t, sessiontest.Header, lines), page)
	for _, link := range regexp.MustCompile(` href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		id, err := url.PathUnescape(html.UnescapeString(link[1]))
		require.NoError(t, err)
		require.True(t, strings.Contains(page, ` id="`+html.EscapeString(id)+`"`), id)
	}
}

// requireAnchors requires that a page has one anchor for each entry of a session.
func requireAnchors(t *testing.T, s *sessioncore.Snapshot, page string) {
	for e := range sessioncore.Entry(s.Len()) {
		anchor := ` id="` + html.EscapeString(s.Name(e)) + `"`
		require.Equal(t, 1, strings.Count(page, anchor), anchor)
	}
}

// TestPagesOfStores: pages of whatever sessions there are are harmless, and have an anchor for each entry.
func TestPagesOfStores(t *testing.T) {
	for _, file := range sessiontest.StoreFiles(t) {
		s, err := openSession(t, file)
		if err != nil {
			continue // it is no session
		}
		var out bytes.Buffer
		subject := Subject{Session: s, End: sessiontest.Leaf(t, s), Blobs: testBlobs}
		require.NoError(t, Page(context.Background(), &out, subject), file)
		requireHarmless(t, partOf(t, out.String(), pageTools))
		requireAnchors(t, s, out.String())
	}
}

// TestPageOfASession: images are in the page, and errors come back.
func TestPageOfASession(t *testing.T) {
	withImage := `{"role":"user","content":[{"type":"image","data":"blob:sha256:` + hash + `"}]}`
	s := snapshotOf(t, sessiontest.Header, sessiontest.MessageLine(0, withImage))
	subject := Subject{Session: s, Blobs: testBlobs}
	var out bytes.Buffer
	require.NoError(t, Page(context.Background(), &out, subject))
	require.Contains(t, out.String(), "<a href=\"#e0\">e0</a></h2>\n<p><img alt=\"Image:\" src=\"data:image/png;base64,")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Page(ctx, io.Discard, subject), context.Canceled)
	errBad := errors.New("bad disk")
	subject.Blobs = func(string) (io.ReadCloser, error) {
		failing := io.MultiReader(strings.NewReader(picture), iotest.ErrReader(errBad))
		return io.NopCloser(failing), nil
	}
	require.ErrorIs(t, Page(context.Background(), io.Discard, subject), errBad)
}

// TestHostileText: see the page.
func TestHostileText(t *testing.T) {
	sessiontest.Page(t, "testdata/hostile.txt", func(t *testing.T, name, said, want string) {
		require.Equal(t, want, bodyOf(t, said), name)
	})
}

func TestImages(t *testing.T) {
	sessiontest.NotUnderRace(t)
	body := bodyOf(t, "![Image: a \"b\"](../../blobs/"+hash+")")
	data := base64.StdEncoding.EncodeToString([]byte(picture))
	require.Equal(t, `<p><img alt="Image: a &#34;b&#34;" src="data:image/png;base64,`+data+`"></p>`+"\n", body)
	require.Equal(t, "<p><em>a (not a picture that can be shown)</em></p>\n", bodyOf(t, "![a](blobs/"+svg+")"))
	for size, isCut := range map[int]bool{maxImage: false, maxImage + 1: true} {
		image := picture + strings.Repeat("x", size-len(picture))
		blobs := func(string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(image)), nil
		}
		var out bytes.Buffer
		p := newPage(&out, snapshotOf(t, sessiontest.Header), blobs)
		p.convert([]byte("![a](blobs/" + hash + ")"))
		require.NoError(t, p.end())
		require.Greater(t, out.Len(), maxImage)
		require.Equal(t, isCut, strings.Contains(out.String(), "only the beginning of it"))
	}
	require.Equal(t, "<p><em>a (not in the blob store)</em></p>\n", bodyOf(t, "![a](blobs/"+strings.Repeat("0", 64)+")"))
}

// TestPictures: images in entries of any form are in the page, by what their bytes are; all else remains a note.
func TestPictures(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte(picture))
	jpeg := base64.StdEncoding.EncodeToString([]byte("\xff\xd8\xff" + picture))
	svg := base64.StdEncoding.EncodeToString([]byte("<svg onload=alert(1)>"))
	for block, want := range map[string]string{
		`{"type":"image","data":"` + png + `","mimeType":"image/png"}`:                                "image/png;base64," + png,
		`{"type":"image","data":"` + jpeg + `","mimeType":"text/html"}`:                               "image/jpeg;base64," + jpeg,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`:   "image/png;base64," + png,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}`:                "image/png;base64," + png,
		`{"type":"input_image","image_url":"data:image/svg+xml;base64,` + png + `"}`:                  "image/png;base64," + png,
		`{"type":"image","data":"` + strings.ReplaceAll(png, "/", `\/`) + `","mimeType":"image/png"}`: "image/png;base64," + png,
		`{"type":"image","data":"` + svg + `","mimeType":"image/svg+xml"}`:                            "",
		`{"type":"image","data":"` + svg + `","mimeType":"image/png"}`:                                "",
		`{"type":"image","data":"` + png + `\" onerror=\"x","mimeType":"image/png"}`:                  "",
		`{"type":"image","data":"` + png[:800] + `\n` + png[800:] + `","mimeType":"image/png"}`:       "",
		`{"type":"image","data":"` + png[:801] + `","mimeType":"image/png"}`:                          "",
		`{"type":"image","data":"","mimeType":"image/png"}`:                                           "",
		`{"type":"image","data":7,"mimeType":"image/png"}`:                                            "",
		`{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}`:                        "",
		`{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`:                  "",
	} {
		for _, role := range []string{"user", "assistant", "toolResult"} {
			page := pageOf(t, sessiontest.MessageLine(0, `{"role":"`+role+`","content":[`+block+`]}`))
			image := `<p><img alt="An image in the entry" src="data:` + want + `"></p>`
			const note = "An image in the entry,"
			isShown := want != ""
			require.Equal(t, isShown, strings.Contains(page, image), "%.90s", block)
			require.Equal(t, !isShown, strings.Contains(page, note), "%.90s", block)
		}
	}
}

// TestPicturesOfResults: results that wait for their calls keep their images; those beyond the bounds are notes, and so are all
// where secrets are masked.
func TestPicturesOfResults(t *testing.T) {
	sessiontest.NotUnderRace(t)
	big := strings.Repeat("A", maxHeldPictures/2)
	data := func(i int) string {
		end := fmt.Sprint("picture", i, "....")[:12] // so long that the data has no padding
		return base64.StdEncoding.EncodeToString([]byte(picture + end))
	}
	large := func(i int) string {
		return data(i)[:len(data(i))-4] + big
	}
	images := []string{data(0), data(1), large(2), data(3), large(4), data(5)}
	const withoutRoom = 4 // beside the other large one
	s := snapshotOf(t, sessiontest.Header, drawing(images))
	var out bytes.Buffer
	subject := Subject{Session: s, End: sessiontest.Leaf(t, s), Blobs: testBlobs}
	require.NoError(t, Page(context.Background(), &out, subject))
	page := out.String()
	for i, image := range images {
		end := image[len(data(0))-40:] // enough to tell it from the others
		require.Equal(t, i != withoutRoom, strings.Contains(page, end+`"></p>`), i)
	}
	require.Equal(t, 1, strings.Count(page, "An image in the entry,"))

	for size, isShown := range map[int]bool{maxImage / 3 * 3: true, maxImage + 3: false} {
		out.Reset()
		p := newPage(&out, s, testBlobs)
		image := picture + strings.Repeat("x", size-len(picture))
		encoded := base64.StdEncoding.EncodeToString([]byte(image))
		p.picture(&block{text: []byte(`"` + encoded + `"`)})
		require.NoError(t, p.end())
		require.Equal(t, isShown, strings.Contains(out.String(), "<img"), size)
	}
	out.Reset()
	subject.Blobs = nil
	require.NoError(t, Page(context.Background(), &out, subject))
	require.NotContains(t, out.String(), "<img")
	require.Equal(t, len(images), strings.Count(out.String(), "An image in the entry,"))
}

// drawing returns the lines of a message with a call for each image, and the results, which have the images.
func drawing(images []string) string {
	const call = `{"type":"toolCall","id":"c%d","name":"draw","arguments":{}}`
	const result = `{"role":"toolResult","toolCallId":"c%d","toolName":"draw","content":[{"type":"image","data":%q,"mimeType":"image/png"}]}`
	var calls []string
	results := ""
	for i, image := range images {
		calls = append(calls, fmt.Sprintf(call, i))
		results += sessiontest.MessageLine(i+1, fmt.Sprintf(result, i, image))
	}
	message := `{"role":"assistant","content":[` + strings.Join(calls, ",") + `]}`
	return sessiontest.MessageLine(0, message) + results
}

// TestTooNested: text that is nested without end is shown as it is.
func TestTooNested(t *testing.T) {
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
