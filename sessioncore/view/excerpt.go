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

// excerptOf returns an excerpt of a string, decoding no more of it than is shown.
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
	// Cut at a line end if there is one nearby.
	i := bytes.LastIndexByte(e.head, '\n')
	if i >= len(e.head)*3/4 {
		e.left += len(e.head) - i - 1
		e.head = e.head[: i+1 : i+1]
	}
	i = bytes.IndexByte(e.tail, '\n')
	if i >= 0 && i < len(e.tail)/4 {
		e.left += i + 1
		e.tail = e.tail[i+1:]
	}
	return e
}

// shownText returns the visible text of the body of a JSON string, or of a part of it.
func shownText(body []byte) []byte { return markdown.Visible(rawjson.AppendDecoded(nil, body)) }

// shownLine returns the beginning of a string as one line of visible text, or nothing for any other
// value.
func shownLine(v rawjson.Value, characters int) string {
	text := excerptOf(v, excerptLimits{whole: 16 * characters, head: 16 * characters}).head
	return string(markdown.AppendLine(nil, text, characters))
}

// sizeText formats a size for people.
func sizeText(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
