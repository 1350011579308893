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

// AppendLabelFields appends a line of the file labels: at least one field, separated by tabs, and a newline.
func AppendLabelFields(dst []byte, fields ...string) []byte {
	for _, field := range fields {
		dst = AppendLabelField(dst, field)
		dst = append(dst, '\t')
	}
	dst[len(dst)-1] = '\n' // in the place of the last tab
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
	rest := []byte(title)
	for len(rest) > 0 {
		r, n := rawjson.DecodeRune(rest)
		line = appendVisibly(line, r, rest[:n])
		rest = rest[n:]
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
	var line spacedLine
	words := 0 // bytes of complete words
	rest := []byte(text)
	for len(rest) > 0 {
		r, size := rawjson.DecodeRune(rest)
		char := rest[:size]
		rest = rest[size:]
		switch {
		case unicode.IsSpace(r):
			words = line.text.Len()
			line.addBlank()
		case line.count+line.blanks >= limit:
			if words < line.text.Len()/2 {
				words = line.text.Len()
			}
			return line.text.String()[:words] + "…"
		default:
			line.add(char)
		}
	}
	return line.text.String()
}

// Paragraphs returns the first paragraphs of a text on one line: whole ones, as few as have more than
// least characters together, else all.
func Paragraphs(text string, least int) string {
	var line spacedLine
	feeds := 0 // line feeds since the last character; two end a paragraph
	rest := []byte(text)
	for len(rest) > 0 {
		r, size := rawjson.DecodeRune(rest)
		char := rest[:size]
		rest = rest[size:]
		if r == '\n' {
			feeds++
		}
		if feeds > 1 && line.count > least {
			break
		}
		if unicode.IsSpace(r) {
			line.addBlank()
			continue
		}
		line.add(char)
		feeds = 0
	}
	return line.text.String()
}

// spacedLine is a line with one blank for each run of white space, and none at its ends.
type spacedLine struct {
	text   strings.Builder
	count  int // its characters
	blanks int // before the next character, 0 or 1
}

// addBlank adds white space, which is written before the next character.
func (l *spacedLine) addBlank() { l.blanks = min(l.count, 1) }

// add adds a character that is no white space.
func (l *spacedLine) add(char []byte) {
	if l.blanks > 0 {
		l.text.WriteByte(' ')
	}
	l.text.Write(char)
	l.count += l.blanks + 1
	l.blanks = 0
}
