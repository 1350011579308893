package view

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// harmless renders what could load something or lead to a file of the reader's: links and images; and diffs in colour.
// Everything else goldmark renders.
type harmless struct{ blobs Blobs }

var _ = (renderer.NodeRenderer)((*harmless)(nil))

// RegisterFuncs implements renderer.NodeRenderer.
func (h *harmless) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, h.link)
	r.Register(ast.KindAutoLink, h.autoLink)
	r.Register(ast.KindImage, h.image)
	r.Register(ast.KindFencedCodeBlock, h.fenced)
}

// schemes are those of links that are kept. A relative link would lead to a file beside the page.
var schemes = []string{"http", "https", "mailto"}

// anchor returns the opening tag of a link, or "" if it is not kept.
func anchor(destination []byte) string {
	u, err := url.Parse(string(destination))
	if err != nil || !slices.Contains(schemes, strings.ToLower(u.Scheme)) {
		return ""
	}
	return `<a href="` + html.EscapeString(string(util.URLEscape(destination, false))) + `" rel="noopener noreferrer nofollow">`
}

func (h *harmless) link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	open := anchor(n.(*ast.Link).Destination)
	switch {
	case open == "":
	case entering:
		_, _ = w.WriteString(open) // errors come back with Flush
	default:
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func (h *harmless) autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	l := n.(*ast.AutoLink)
	destination := l.URL(source)
	if l.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(destination), []byte("mailto:")) {
		destination = append([]byte("mailto:"), destination...)
	}
	label := html.EscapeString(string(l.Label(source)))
	if open := anchor(destination); open != "" {
		label = open + label + "</a>"
	}
	_, _ = w.WriteString(label)
	return ast.WalkContinue, nil
}

// blobLink is a link of a transcript into the blob store.
var blobLink = regexp.MustCompile(`^(?:\.\./)*blobs/([0-9a-f]{64})$`)

// image writes an image of the blob store as data. Any other becomes a link: a page that loads an image tells its host
// who reads it.
func (h *harmless) image(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	destination, alt := n.(*ast.Image).Destination, html.EscapeString(plainText(n, source))
	if blob := blobLink.FindSubmatch(destination); blob != nil {
		return ast.WalkSkipChildren, h.embed(w, string(blob[1]), alt)
	}
	if alt == "" {
		alt = "Image"
	}
	if open := anchor(destination); open != "" {
		alt = open + alt + "</a>"
	}
	_, _ = w.WriteString(alt)
	return ast.WalkSkipChildren, nil
}

// maxImage is the largest image that is embedded, in bytes: more than cameras make.
const maxImage = 32 << 20

// pictures are the types of images that are embedded. None of them can hold a script.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}

// embed writes a blob as an image.
func (h *harmless) embed(w util.BufWriter, hash, alt string) error {
	note := func(why string) error {
		_, err := fmt.Fprintf(w, "<em>%s (%s)</em>", alt, html.EscapeString(why))
		return err
	}
	blob, err := h.blobs(hash)
	if err != nil {
		return note("not in the blob store")
	}
	defer blob.Close()
	start := make([]byte, 512) // what DetectContentType looks at
	got, err := io.ReadFull(blob, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return note("cannot be read")
	}
	kind := http.DetectContentType(start[:got])
	if !slices.Contains(pictures, kind) {
		return note("not a picture that can be shown")
	}
	if _, err := fmt.Fprintf(w, `<img alt="%s" src="data:%s;base64,`, alt, kind); err != nil {
		return err
	}
	encoder := base64.NewEncoder(base64.StdEncoding, w)
	content := io.MultiReader(bytes.NewReader(start[:got]), blob)
	_, err = io.Copy(encoder, io.LimitReader(content, maxImage))
	if closed := encoder.Close(); err == nil {
		err = closed
	}
	if _, written := w.WriteString(`">`); err == nil {
		err = written
	}
	if more, _ := content.Read(start[:1]); err == nil && more > 0 {
		err = note("only the beginning of it: it is larger than 32 MiB")
	}
	return err
}

// diffClasses are the classes of the lines of a diff by their first characters.
var diffClasses = map[byte]string{'+': "add", '-': "del", '@': "at"}

func (h *harmless) fenced(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		code := n.(*ast.FencedCodeBlock)
		writeCode(w, string(code.Language(source)) == "diff", code.Lines().Value(source))
	}
	return ast.WalkContinue, nil
}

// writeCode writes lines of code.
func writeCode(w util.BufWriter, isDiff bool, code []byte) {
	_, _ = w.WriteString("<pre><code>") // errors come back with Flush
	for line := range bytes.Lines(code) {
		line = util.EscapeHTML(bytes.TrimSuffix(line, []byte("\n")))
		if isDiff && len(line) > 0 && diffClasses[line[0]] != "" {
			line = fmt.Appendf(nil, "<span class=\"%s\">%s</span>", diffClasses[line[0]], line)
		}
		_, _ = w.Write(line)
		_ = w.WriteByte('\n')
	}
	_, _ = w.WriteString("</code></pre>\n")
}
