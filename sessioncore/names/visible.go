package names

import (
	"io"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// WriteJSON writes a value as a line of JSON without an effect on a terminal.
func WriteJSON(out io.Writer, value any) error {
	_, err := out.Write(rawjson.AppendLine(nil, value))
	return err
}

// Visible returns text with a question mark for each character that could change the state of a
// terminal (IsControl), and for each byte that is no UTF-8.
func Visible(text string) string { return VisibleExcept(text, "") }

// VisibleLine is Visible for a line of running text, with blanks for tabs.
func VisibleLine(text string) string { return Visible(strings.ReplaceAll(text, "\t", " ")) }

// VisibleExcept is Visible, but the characters of keep stay as they are.
func VisibleExcept(text, keep string) string {
	return strings.Map(func(r rune) rune {
		isHidden := IsControl(r) || r == utf8.RuneError
		if isHidden && !strings.ContainsRune(keep, r) {
			return '?'
		}
		return r
	}, text)
}
