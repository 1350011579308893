package view

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

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

// outputLimits are for tool output and long arguments, of which people read the beginning and the end.
var outputLimits = excerptLimits{whole: 8 << 10, head: 4 << 10, tail: 2 << 10}

// excerpter makes excerpts, which are parts of visible.
type excerpter struct {
	decoded, squeezed, visible []byte
}

// of returns an excerpt of a string, decoding no more of it than is shown. It omits long runs of base64.
func (x *excerpter) of(v rawjson.Value, limits excerptLimits) (e excerpt) {
	if !v.IsString() {
		return e
	}
	body := v[1 : len(v)-1]
	if len(body) <= limits.whole {
		e.head, e.cut = x.show(body)
		return e
	}
	from, to := rawjson.CutPoint(body, limits.head), rawjson.CutPoint(body, len(body)-limits.tail)
	e.left = to - from
	var inHead, inTail bool
	e.head, inHead = x.show(body[:from])
	e.tail, inTail = x.show(body[to:])
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

// show returns the visible text of the body of a JSON string, or of a part of it.
func (x *excerpter) show(body []byte) (text []byte, squeezed bool) {
	text = body
	if bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body) {
		x.decoded = rawjson.AppendDecoded(x.decoded[:0], body)
		text = x.decoded
	}
	if x.squeezed, squeezed = appendSqueezed(x.squeezed[:0], text); squeezed {
		text = x.squeezed
	}
	n := len(x.visible)
	x.visible = markdown.AppendVisible(x.visible, text)
	return slices.Clip(x.visible[n:]), squeezed
}

// shownLine returns the beginning of a string as one line of visible text, or nothing for any other value.
func shownLine(v rawjson.Value, characters int) string {
	var x excerpter
	text := x.of(v, excerptLimits{whole: 16 * characters, head: 16 * characters}).head
	return string(markdown.AppendLine(text[:0], text, characters))
}

const (
	// shortest64 is the length from which a run of base64 characters is taken for base64.
	shortest64 = 1024
	// kept64 is how much of a run is shown.
	kept64 = 48
)

var alphabet64 = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-") {
		t[c] = true
	}
	return t
}()

// appendSqueezed appends text without the middle of long runs of base64, which nobody reads. If there are none, it
// appends nothing and returns false.
func appendSqueezed(dst, text []byte) (squeezed []byte, found bool) {
	done := 0
	for at := shortest64 - 1; at < len(text); at += shortest64 {
		if !alphabet64[text[at]] { // every long run has a byte at one of these offsets
			continue
		}
		start, end := at, at
		for start > done && alphabet64[text[start-1]] {
			start--
		}
		for end < len(text) && alphabet64[text[end]] {
			end++
		}
		if end-start < shortest64 || longestRepeat(text[start:end]) > (end-start)/2 {
			continue // a line of hyphens, for example, is not base64
		}
		dst = append(dst, text[done:start+kept64]...)
		dst = append(dst, "…{"+sizeText(end-start-kept64)+" of base64}"...)
		done, at = end, end-1
	}
	if done == 0 {
		return dst, false
	}
	return append(dst, text[done:]...), true
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
