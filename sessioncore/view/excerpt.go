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
	cut        bool   // something was omitted, there or within them
}

// excerptLimits say how much of a text is shown, in bytes of the stored text.
type excerptLimits struct {
	whole      int // texts up to this size are shown completely
	head, tail int // of longer texts
}

// outputLimits are for tool output and long arguments, of which people read the beginning and the
// end.
var outputLimits = excerptLimits{whole: 8 << 10, head: 4 << 10, tail: 2 << 10}

// excerptOf returns an excerpt of a string, decoding no more of it than is shown. It omits long
// runs of base64.
func excerptOf(v rawjson.Value, limits excerptLimits) (e excerpt) {
	if !v.IsString() {
		return e
	}
	body := v[1 : len(v)-1]
	if len(body) <= limits.whole {
		e.head, e.cut = shownText(body)
		return e
	}
	from, to := rawjson.CutPoint(body, limits.head), rawjson.CutPoint(body, len(body)-limits.tail)
	e.left = to - from
	var inHead, inTail bool
	e.head, inHead = shownText(body[:from])
	e.tail, inTail = shownText(body[to:])
	// Cut at a line end if there is one nearby.
	if i := bytes.LastIndexByte(e.head, '\n'); i >= len(e.head)*3/4 {
		e.left += len(e.head) - i - 1
		e.head = e.head[: i+1 : i+1]
	}
	if i := bytes.IndexByte(e.tail, '\n'); i >= 0 && i < len(e.tail)/4 {
		e.left += i + 1
		e.tail = e.tail[i+1:]
	}
	e.cut = inHead || inTail || e.left > 0
	return e
}

// shownText returns the visible text of the body of a JSON string, or of a part of it.
func shownText(body []byte) (text []byte, cut bool) {
	text, cut = withoutBase64(rawjson.AppendDecoded(nil, body))
	return markdown.Visible(text), cut
}

// shownLine returns the beginning of a string as one line of visible text, or nothing for any other
// value.
func shownLine(v rawjson.Value, characters int) string {
	text := excerptOf(v, excerptLimits{whole: 16 * characters, head: 16 * characters}).head
	return string(markdown.AppendLine(nil, text, characters))
}

const (
	// shortest64 is the length from which a run of base64 characters is taken for base64.
	shortest64 = 1024
	// kept64 is how much of a run is shown.
	kept64 = 48
)

// isBase64 reports whether a character is one of base64, for files or for URLs.
func isBase64(c byte) bool {
	letter := c | 0x20
	return letter >= 'a' && letter <= 'z' || c >= '/' && c <= '9' || c == '+' || c == '=' || c == '_' || c == '-'
}

// withoutBase64 returns text without the middle of long runs of base64, which nobody reads, and
// whether there are any.
func withoutBase64(text []byte) (short []byte, cut bool) {
	done := 0
	for begin := 0; begin+shortest64 <= len(text); {
		end := begin + shortest64 // of the shortest run that may begin here
		before := end
		for before > begin && isBase64(text[before-1]) {
			before--
		}
		if before > begin { // text[before-1] is in none
			begin = before
			continue
		}
		for end < len(text) && isBase64(text[end]) {
			end++
		}
		// A line of hyphens, for example, is not base64.
		if n := end - begin; longestRepeat(text[begin:end]) <= n/2 {
			short = append(short, text[done:begin+kept64]...)
			short = append(short, "…{"+sizeText(n-kept64)+" of base64}"...)
			done, cut = end, true
		}
		begin = end
	}
	if !cut {
		return text, false
	}
	return append(short, text[done:]...), true
}

// longestRepeat returns the length of the longest run of equal bytes.
func longestRepeat(text []byte) int {
	longest := 0
	for len(text) > 0 {
		n := markdown.RunLength(text, text[0])
		longest = max(longest, n)
		text = text[n:]
	}
	return longest
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
