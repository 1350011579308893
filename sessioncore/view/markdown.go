package view

import (
	"net/url"
	"strings"

	"sessionfs/sessioncore/internal/markdown"
)

// Links are the prefixes of the links in a transcript, which depend on where it lies.
type Links struct {
	Entries string // path to entries/, with a slash at its end
	Blobs   string // path to the blob store, with a slash at its end
}

// markdownWriter writes blocks as Markdown. Each block is preceded by a blank line and begins at
// the left margin, so that it cannot become part of the block before it, however that ends.
type markdownWriter struct {
	links Links
	// bare leaves out times, names, and links to entries, as equal texts differ in these.
	bare bool
}

// append appends blocks as Markdown, with a blank line before each. Lines without a text are left out.
func (w *markdownWriter) append(dst []byte, blocks ...block) []byte {
	for _, b := range blocks {
		if b.kind >= proseText || len(b.line) > 0 {
			dst = w.block(append(dst, '\n'), &b)
		}
	}
	return dst
}

// lineMarks stand around a line.
var lineMarks = [...][2]string{titleLine: {"# "}, headingLine: {"## "}, namingLine: {"*", "*"}, pictureLine: {}}

// block appends a block.
func (w *markdownWriter) block(dst []byte, b *block) []byte {
	switch b.kind {
	case proseText:
		return markdown.Append(dst, b.text)
	case thoughtText:
		dst = append(dst, "> *Thinking*\n>\n"...)
		return markdown.AppendQuote(dst, b.text)
	case codeText:
		return markdown.AppendFenced(dst, b.info, b.text)
	}
	dst = append(dst, lineMarks[b.kind][0]...)
	for i, s := range b.line {
		isOfEntry := s.style == timeStyle || s.style == nameStyle || s.style == linkStyle
		if w.bare && isOfEntry {
			continue
		}
		if i > 0 {
			dst = append(dst, separators[b.kind]...)
		}
		dst = w.span(dst, &s)
	}
	dst = append(dst, lineMarks[b.kind][1]...)
	return append(dst, '\n')
}

// span appends a part of a line in its style.
func (w *markdownWriter) span(dst []byte, s *span) []byte {
	marks := ""
	switch s.style {
	case codeStyle:
		return markdown.AppendCode(dst, s.text)
	case strongCodeStyle:
		dst = append(dst, "**"...)
		dst = markdown.AppendCode(dst, s.text)
		return append(dst, "**"...)
	case nameStyle:
		return appendName(dst, s.text)
	case linkStyle:
		return append(dst, "["+s.text+"]("+w.links.Entries+escapedName(s.target)+".json)"...)
	case imageStyle:
		dst = append(dst, "!["...)
		dst = markdown.AppendText(dst, s.text)
		return append(dst, "]("+w.links.Blobs+s.target+")"...)
	case emphasisStyle:
		marks = "*"
	case strongStyle:
		marks = "**"
	}
	dst = append(dst, marks...)
	dst = markdown.AppendText(dst, s.text)
	return append(dst, marks...)
}

// escapedName returns the name of an entry in a link. No character of Markdown's is left in it.
func escapedName(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

// appendName appends the name of an entry. Ids of the clients are shown as they are.
func appendName(dst []byte, name string) []byte {
	if isPlainName(name) {
		return append(dst, name...)
	}
	return markdown.AppendCode(dst, string(visibleName(name)))
}

// visibleName returns the visible text of a name, which may be cut within a character.
func visibleName(name string) []byte {
	return markdown.Visible([]byte(strings.ToValidUTF8(name, "\uFFFD")))
}

// isPlainName reports whether a name has letters, digits and hyphens alone.
func isPlainName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !isPlainRune(r)
	})
}

// isPlainRune reports whether a character is a letter or a digit of ASCII, or a hyphen.
func isPlainRune(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return r == '-'
}
