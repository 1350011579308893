package markdown

import "bytes"

// Append appends visible text as Markdown that affects nothing outside it. Raw HTML and link definitions become
// plain text, headings are lowered below ours, and an open code fence is closed; everything else stays as it is.
// The result ends with a newline.
func Append(dst, text []byte) []byte {
	text = bytes.TrimRight(text, " \t\n")
	c := copier{out: dst, tags: tag.Match(text), labels: bytes.Contains(text, []byte("]:"))}
	if bytes.Contains(text, []byte("#")) { // keep the relative levels of headings
		var first copier
		if first.lines(text); first.lowest > 0 {
			c.deeper = max(0, ourHeadings+1-first.lowest)
		}
	}
	c.lines(text)
	return c.out
}

// AppendQuote appends visible text as a quote of Markdown that affects nothing outside it.
func AppendQuote(dst, text []byte) []byte {
	// Tabs would have another width after the quote's marker.
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
