package view

import (
	"bytes"
	"encoding/base64"
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

// This file renders those parts of Markdown that could load something or lead to a file of the
// reader's, links and images, and diffs in colour. goldmark renders everything else.

var _ = (renderer.NodeRenderer)((*pageWriter)(nil))

// RegisterFuncs implements renderer.NodeRenderer.
func (p *pageWriter) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, p.link)
	r.Register(ast.KindAutoLink, p.autoLink)
	r.Register(ast.KindImage, p.image)
	r.Register(ast.KindFencedCodeBlock, p.fenced)
}

// schemes are the schemes of links that are kept. A relative link would lead to a file beside the page.
var schemes = []string{"http", "https", "mailto"}

// anchor returns the opening tag of a link, or "" if it is not kept.
func anchor(destination []byte) markup {
	parsed, err := url.Parse(string(destination))
	if err != nil {
		return ""
	}
	scheme := strings.ToLower(parsed.Scheme)
	if !slices.Contains(schemes, scheme) {
		return ""
	}
	encoded := util.URLEscape(destination, false)
	return `<a href="` + escaped(string(encoded)) + `" rel="noopener noreferrer nofollow">`
}

// anchored returns HTML as the text of a link, if the link is kept.
func anchored(destination []byte, text markup) markup {
	open := anchor(destination)
	if open != "" {
		return open + text + "</a>"
	}
	return text
}

// link renders a link. One with a scheme that is not kept becomes its text.
func (p *pageWriter) link(_ util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	open := anchor(n.(*ast.Link).Destination)
	if open == "" {
		return ast.WalkContinue, nil
	}
	if entering {
		p.write(open)
	} else {
		p.write("</a>")
	}
	return ast.WalkContinue, nil
}

// autoLink renders an address in angle brackets as a link.
func (p *pageWriter) autoLink(_ util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	const mail = "mailto:"
	link := n.(*ast.AutoLink)
	destination := link.URL(source)
	hasScheme := bytes.HasPrefix(bytes.ToLower(destination), []byte(mail))
	if link.AutoLinkType == ast.AutoLinkEmail && !hasScheme {
		destination = append([]byte(mail), destination...)
	}
	label := string(link.Label(source))
	p.write(anchored(destination, escaped(label)))
	return ast.WalkContinue, nil
}

// blobLink is a link of a transcript into the blob store.
var blobLink = regexp.MustCompile(`^(?:\.\./)*blobs/([0-9a-f]{64})$`)

// image writes an image of the blob store as data. Any other becomes a link: a page that loads an
// image tells its host of the reader.
func (p *pageWriter) image(_ util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	destination := n.(*ast.Image).Destination
	alt := plainText(n, source)
	blob := blobLink.FindSubmatch(destination)
	if blob != nil {
		hash := string(blob[1])
		p.embed(hash, alt)
		return ast.WalkSkipChildren, nil
	}
	if alt == "" {
		alt = "Image"
	}
	p.write(anchored(destination, escaped(alt)))
	return ast.WalkSkipChildren, nil
}

// plainText returns the alternative text of an image, as one line.
func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		text, isText := n.(*ast.Text)
		if !isText || !entering {
			return ast.WalkContinue, nil
		}
		out.Write(util.UnescapePunctuations(text.Value(source)))
		if text.SoftLineBreak() || text.HardLineBreak() {
			out.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(out.String())
}

// maxImage is the largest image that is embedded, in bytes: more than cameras make.
const maxImage = 32 << 20

// pictures are the types of images that are embedded. None of them can hold a script.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}

// embed writes a blob as an image with an alternative text, or that text with the reason if it cannot be shown.
func (p *pageWriter) embed(hash, text string) {
	alt := escaped(text)
	why := p.embedBlob(hash, alt)
	if why != "" {
		p.write("<em>", alt, " (", why, ")</em>")
	}
}

// embedBlob writes a blob as an image, and returns the reason if it writes none, or not all of it; else "".
func (p *pageWriter) embedBlob(hash string, alt markup) (why markup) {
	if p.blobs == nil {
		return "not in the page"
	}
	blob, err := p.blobs(hash)
	if err != nil {
		return "not in the blob store"
	}
	defer blob.Close()
	buffer := make([]byte, startSize)
	size, err := io.ReadFull(blob, buffer)
	isShort := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !isShort {
		return "cannot be read"
	}
	start := buffer[:size]
	kind := http.DetectContentType(start)
	if !slices.Contains(pictures, kind) {
		return "not a picture that can be shown"
	}
	p.write(`<img alt="`, alt, `" src="data:`, escaped(kind), ";base64,")
	encoder := base64.NewEncoder(base64.StdEncoding, p.out)
	content := io.MultiReader(bytes.NewReader(start), blob)
	_, err = io.Copy(encoder, io.LimitReader(content, maxImage))
	_ = encoder.Close() // Flush returns its error
	if p.err == nil {
		p.err = err
	}
	p.write(`">`)
	var next [1]byte
	more, _ := content.Read(next[:])
	if more > 0 {
		return "only the beginning of it: it is larger than 32 MiB"
	}
	return ""
}

// diffClasses are the classes of the lines of a diff by their first characters.
var diffClasses = map[byte]markup{'+': "add", '-': "del", '@': "hunk"}

// fenced renders a block of code, a diff in colours.
func (p *pageWriter) fenced(_ util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		code := n.(*ast.FencedCodeBlock)
		p.code(string(code.Language(source)) == "diff", code.Lines().Value(source))
	}
	return ast.WalkContinue, nil
}

// code writes lines of code.
func (p *pageWriter) code(isDiff bool, text []byte) {
	p.write("<pre><code>")
	for line := range bytes.Lines(text) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		shown := escaped(string(text))
		class := diffClasses[line[0]]
		if isDiff && class != "" {
			shown = `<span class="` + class + `">` + shown + "</span>"
		}
		p.write(shown, "\n")
	}
	p.write("</code></pre>\n")
}
