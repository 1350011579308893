package markdown

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// Text that people read in a terminal or a browser must have no other effect. This file makes
// control characters and the like harmless.

// isSuspicious reports whether Visible has to check a byte: a control character, or the first byte of
// a longer character that may be among those.
func isSuspicious(c byte) bool {
	isControl := c < 0x20 && c != '\n' && c != '\t'
	return isControl || suspicious[c]
}

// suspicious has DEL, and the first bytes of characters that may be controls.
var suspicious = [256]bool{
	0x7F: true,
	0xC2: true,
	0xD8: true,
	0xE2: true,
	0xED: true,
}

// Visible returns WTF-8 text as UTF-8 that has no effect on a terminal: text itself if that is so
// already. Control characters are replaced by their pictures (ESC by ␛) or code points, and so are
// characters that change the direction of writing or break lines in some programs. Lone surrogates
// become U+FFFD. Line ends of all kinds become newlines.
func Visible(text []byte) []byte {
	var dst []byte
	for {
		i := 0
		for i < len(text) && !isSuspicious(text[i]) {
			i++
		}
		if i == len(text) {
			if dst == nil {
				return text
			}
			return append(dst, text...)
		}
		if dst == nil {
			dst = make([]byte, 0, len(text)+len(text)/8) // a picture takes three bytes for one
		}
		dst = append(dst, text[:i]...)
		var size int
		dst, size = appendVisible(dst, text[i:])
		text = text[i+size:]
	}
}

// controlPictures is the character that shows the control character NUL. Those for the others follow it.
const controlPictures = 0x2400

// appendVisible appends the first character of a text, which begins with a suspicious byte, as Visible shows it. It
// returns the bytes of the character.
func appendVisible(dst, text []byte) (out []byte, size int) {
	c := text[0]
	switch {
	case c == '\r' && len(text) > 1 && text[1] == '\n':
		return append(dst, '\n'), 2
	case c == '\r':
		return append(dst, '\n'), 1
	case c < 0x20:
		return utf8.AppendRune(dst, controlPictures+rune(c)), 1
	case c == 0x7F:
		return append(dst, "␡"...), 1
	}
	r, size := rawjson.DecodeRune(text)
	if Obeyed(r) {
		return fmt.Appendf(dst, "{U+%04X}", r), size
	}
	return utf8.AppendRune(dst, r), size // a surrogate is written as U+FFFD
}

// Obeyed reports whether r is a character beyond ASCII that has an effect on terminals, editors or
// browsers: a C1 control, a line or paragraph separator, or a character that changes the direction
// of writing.
func Obeyed(r rune) bool {
	return r >= 0x80 && rawjson.IsControl(r)
}

// AppendLine appends visible text as one line of at most characters characters. Runs of white space
// become one blank. If the text is cut, an ellipsis is added.
func AppendLine(dst, text []byte, characters int) []byte {
	begin := len(dst)
	hasSpace := false // white space is before the next character
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '\n' || r == '\t' || r == ' ':
			hasSpace = len(dst) > begin
		case characters == 0:
			return append(dst, "…"...)
		default:
			if hasSpace {
				dst = append(dst, ' ')
				hasSpace = false
			}
			dst = append(dst, text[:n]...)
			characters--
		}
		text = text[n:]
	}
	return dst
}

// Line returns WTF-8 text as Visible and AppendLine do. It looks at 16 bytes of the text for each of the characters, so
// that a long text costs no more; they are fewer where it has long runs of white space.
func Line(text []byte, characters int) string {
	enough := text[:min(len(text), 16*characters)]
	return string(AppendLine(nil, Visible(enough), characters))
}

// longestRun returns the length of the longest run of c in text.
func longestRun(text []byte, c byte) int {
	longest := 0
	for {
		i := bytes.IndexByte(text, c)
		if i < 0 {
			return longest
		}
		n := RunLength(text[i:], c)
		longest = max(longest, n)
		text = text[i+n:]
	}
}

// RunLength returns the length of the run of c at the start of text.
func RunLength(text []byte, c byte) int {
	n := 0
	for n < len(text) && text[n] == c {
		n++
	}
	return n
}

// AppendCode appends a line of visible text as a Markdown code span. It appends nothing for an
// empty line.
func AppendCode(dst []byte, line string) []byte {
	if line == "" {
		return dst
	}
	ticks := strings.Repeat("`", longestRun([]byte(line), '`')+1)
	touchesTicks := strings.HasPrefix(line, "`") || strings.HasSuffix(line, "`")
	if touchesTicks {
		line = " " + line + " "
	}
	return append(dst, ticks+line+ticks...)
}

// AppendText appends a line of visible text, escaped so that all of it is plain text in Markdown.
func AppendText(dst []byte, line string) []byte {
	for _, c := range []byte(line) {
		switch c {
		case '\\', '`', '*', '_', '[', ']', '<', '>', '&', '~', '#':
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

// AppendFenced appends visible text as a fenced code block with an info string. The fence is longer
// than any run of backticks in the text.
func AppendFenced(dst []byte, info string, text []byte) []byte {
	length := max(3, longestRun(text, '`')+1)
	fence := bytes.Repeat([]byte{'`'}, length)
	dst = append(dst, fence...)
	dst = append(dst, info...)
	dst = append(dst, '\n')
	dst = append(dst, text...)
	isOpen := len(text) > 0 && text[len(text)-1] != '\n'
	if isOpen {
		dst = append(dst, '\n')
	}
	dst = append(dst, fence...)
	return append(dst, '\n')
}
