package markdown

import "bytes"

// Append appends visible text as Markdown that keeps to itself: as it is but for what would reach beyond it. Raw
// HTML and link definitions become plain text, headings stand below ours, a code fence that is left open is
// closed. It ends with a newline.
func Append(dst, text []byte) []byte {
	text = bytes.TrimRight(text, " \t\n")
	c := copier{out: dst, tags: tag.Match(text), labels: bytes.Contains(text, []byte("]:"))}
	if bytes.Contains(text, []byte("#")) { // headings keep their order among each other
		var first copier
		if first.lines(text); first.lowest > 0 {
			c.deeper = max(0, ourHeadings+1-first.lowest)
		}
	}
	c.lines(text)
	return c.out
}

// AppendQuote appends visible text as a quote of Markdown that keeps to itself.
func AppendQuote(dst, text []byte) []byte {
	// Tabs would reach elsewhere behind the quote's marker than they do without it.
	text = bytes.ReplaceAll(text, []byte("\t"), []byte("    "))
	for line := range bytes.Lines(Append(nil, text)) {
		if line[0] == '\n' {
			dst = append(dst, ">\n"...)
		} else {
			dst = append(append(dst, "> "...), line...)
		}
	}
	return dst
}
