package names

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"sessionfs/sessioncore/internal/rawjson"
)

// OrDash returns the text of a column, or "-" if it is empty, so that programs that split a line at
// white space find the next column.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// AppendLabelFields appends a line of fields, separated by tabs.
func AppendLabelFields(dst []byte, fields ...string) []byte {
	for _, field := range fields {
		dst = AppendLabelField(dst, field)
		dst = append(dst, '\t')
	}
	dst[len(dst)-1] = '\n'
	return dst
}

// AppendLabelField appends text as a field of the file labels. It escapes backslashes, control
// characters and lone surrogates, which could break the line, could not be written back, or could
// control a terminal.
func AppendLabelField(dst []byte, text string) []byte {
	return append(dst, TitleLine(strings.ReplaceAll(text, `\`, `\\`))...)
}

// TitleLine returns a title for display, with control characters and lone surrogates escaped.
// Backslashes stay, as titles contain paths.
func TitleLine(title string) (line []byte) {
	for b := []byte(title); len(b) > 0; {
		r, n := rawjson.DecodeRune(b)
		line = appendVisibly(line, r, b[:n])
		b = b[n:]
	}
	return line
}

// appendVisibly appends the character r, encoded as text. It escapes control characters and lone
// surrogates.
func appendVisibly(dst []byte, r rune, text []byte) []byte {
	switch {
	case r == '\t':
		return append(dst, `\t`...)
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case IsControl(r), utf16.IsSurrogate(r):
		return fmt.Appendf(dst, `\u%04x`, r)
	}
	return append(dst, text...)
}

// IsControl is rawjson.IsControl.
func IsControl(r rune) bool { return rawjson.IsControl(r) }

// FirstWords returns the beginning of a text on one line: at most limit characters and an ellipsis,
// ending with a word unless that is much shorter.
func FirstWords(text string, limit int) string {
	var line strings.Builder
	words := 0
	n := 0
	blanks := 0 // bytes of complete words, characters on the line, blanks before the next one (0 or 1)
	for b := []byte(text); len(b) > 0; {
		r, size := rawjson.DecodeRune(b)
		switch {
		case unicode.IsSpace(r):
			words = line.Len()
			blanks = min(n, 1)
		case n+blanks >= limit:
			if words < line.Len()/2 {
				words = line.Len()
			}
			return line.String()[:words] + "…"
		default:
			line.WriteString(" "[:blanks])
			line.Write(b[:size])
			n = n + blanks + 1
			blanks = 0
		}
		b = b[size:]
	}
	return line.String()
}

// Paragraphs returns the first paragraphs of a text on one line: whole ones, as few as have more than so
// many characters, else all.
func Paragraphs(text string, least int) string {
	var line strings.Builder
	n := 0
	blanks := 0 // before the next character, 0 or 1
	feeds := 0  // line feeds since the last character
	for b := []byte(text); len(b) > 0; {
		r, size := rawjson.DecodeRune(b)
		if r == '\n' {
			feeds++
		}
		if feeds > 1 && n > least {
			break
		}
		if unicode.IsSpace(r) {
			blanks = min(n, 1)
		} else {
			line.WriteString(" "[:blanks])
			line.Write(b[:size])
			n += blanks + 1
			blanks = 0
			feeds = 0
		}
		b = b[size:]
	}
	return line.String()
}
