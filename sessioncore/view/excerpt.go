package view

import (
	"bytes"
	"fmt"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// excerpt is a text, all of it in head, or its head and tail.
type excerpt struct {
	head, tail []byte // visible text
	left       int    // bytes of the stored text omitted between them
}

// excerptLimits say how much of a text is shown, in bytes of the stored text.
type excerptLimits struct {
	whole      int // texts up to this size are shown completely
	head, tail int // of longer texts
}

// outputLimits are for tool output and long arguments, of which people read the beginning and the
// end.
var outputLimits = excerptLimits{whole: 8 << 10, head: 4 << 10, tail: 2 << 10}

// excerptOf returns an excerpt of a string, decoding no more of it than is shown. It is empty for another value.
func excerptOf(v rawjson.Value, limits excerptLimits) (e excerpt) {
	if !v.IsString() {
		return e
	}
	body := v[1 : len(v)-1]
	if len(body) <= limits.whole {
		e.head = shownText(body)
		return e
	}
	from := rawjson.CutPoint(body, limits.head)
	to := rawjson.CutPoint(body, len(body)-limits.tail)
	e.left = to - from
	e.head = shownText(body[:from])
	e.tail = shownText(body[to:])
	e.cutAtLines()
	return e
}

// cutAtLines shortens the head and the tail to whole lines, each if that takes no more than a quarter of it.
func (e *excerpt) cutAtLines() {
	headEnd := bytes.LastIndexByte(e.head, '\n') + 1
	if headEnd > len(e.head)*3/4 {
		e.left += len(e.head) - headEnd
		e.head = e.head[:headEnd:headEnd]
	}
	tailBegin := bytes.IndexByte(e.tail, '\n') + 1
	if tailBegin > 0 && tailBegin <= len(e.tail)/4 {
		e.left += tailBegin
		e.tail = e.tail[tailBegin:]
	}
}

// shownText returns the visible text of the body of a JSON string, or of a part of it.
func shownText(body []byte) []byte { return markdown.Visible(rawjson.AppendDecoded(nil, body)) }

// shownLine returns the beginning of a string as one line of visible text, of at most so many characters, or nothing
// for any other value.
func shownLine(v rawjson.Value, characters int) string {
	const stored = 16 // more bytes than a character takes, as an escape of JSON, and blanks around it
	most := stored * characters
	text := excerptOf(v, excerptLimits{whole: most, head: most}).head
	return string(markdown.AppendLine(nil, text, characters))
}

// sizeText formats a size in bytes for people, in units of a thousand.
func sizeText(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
