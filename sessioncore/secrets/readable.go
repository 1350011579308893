package secrets

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// readable is text as the rules expect it: without the escapes of JSON nested in JSON and without
// control sequences of terminals. Its shifts map it to the original text.
type readable struct {
	text   []byte
	shifts []shift
}

// shift says that the text from offset at on stands by bytes later in the original.
type shift struct{ at, by int }

// origin returns the offset in the original text of the byte at i.
func (r *readable) origin(i int) int {
	n := sort.Search(len(r.shifts), func(n int) bool {
		return r.shifts[n].at > i
	})
	if n == 0 {
		return i
	}
	return i + r.shifts[n-1].by
}

// put appends the character c, which stands for the next size bytes of the original.
func (r *readable) put(c byte, size int) {
	r.text = append(r.text, c)
	r.drop(size - 1)
}

// drop leaves out the next size bytes of the original; size may be 0.
func (r *readable) drop(size int) {
	by := size
	n := len(r.shifts)
	if n > 0 {
		by += r.shifts[n-1].by
	}
	if size > 0 {
		r.shifts = append(r.shifts, shift{at: len(r.text), by: by})
	}
}

// read makes r from text, in place of its content before. It replaces each control sequence by a blank, so that a
// word begins after it. With joined it drops the sequences instead, as a key may be written in two colors, and
// decodes the escapes of URLs and mails. differs are the offsets in text, which ascend, that joined changes.
func (r *readable) read(text []byte, joined bool) (differs []int) {
	r.text = r.text[:0]
	r.shifts = r.shifts[:0]
	isMail := bytes.Contains(text, []byte("=3D")) // a mail writes each = so
	for i := 0; i < len(text); {
		c := text[i]
		isPlainSign := c == '=' && !isMail
		if isPlainSign || !isSpecial[c] {
			r.text = append(r.text, c)
			i++
			continue
		}
		size, isDifferent := r.readSpecial(text[i:], joined)
		if isDifferent {
			differs = append(differs, i)
		}
		i += size
	}
	return differs
}

// readSpecial is read for the control sequence or escape at the beginning of a text, and returns the size
// that it has read. A special character that begins none stays as it is.
func (r *readable) readSpecial(text []byte, joined bool) (size int, differs bool) {
	run := 0 // of backslashes
	for run < len(text) && text[run] == '\\' {
		run++
	}
	sequence := sequenceLen(text, run)
	switch {
	case sequence > 0 && joined:
		r.drop(sequence)
		return sequence, true
	case sequence > 0:
		r.put(' ', sequence)
		return sequence, true
	case run > 0:
		escape, char := unescape(text, run)
		if escape == 0 {
			r.text = append(r.text, text[:run]...)
			return run, false
		}
		r.put(char, escape)
		return escape, false
	}
	escape, char := decodedByte(text)
	if escape > 0 && joined {
		r.put(char, escape)
		return escape, true
	}
	r.put(text[0], 1)
	return 1, escape > 0
}

// isSpecial holds the bytes that read does not simply copy.
var isSpecial = [256]bool{'\\': true, '\x1b': true, 0xC2: true, '^': true, '%': true, '=': true}

// decodedByte returns the length of the escape of a URL or a mail at the start of text and the
// ASCII character that it stands for; 0 if there is none.
func decodedByte(text []byte) (size int, c byte) {
	if len(text) < 3 || !isHex(text[1]) || !isHex(text[2]) {
		return 0, 0
	}
	beginsEscape := text[0] == '%' || text[0] == '='
	if !beginsEscape {
		return 0, 0
	}
	high := rawjson.HexDigit(text[1])
	low := rawjson.HexDigit(text[2])
	c = byte(high<<4 | low)
	isControl := c < ' ' && c != '\n' && c != '\t'
	if isControl || c >= utf8.RuneSelf {
		return 0, 0
	}
	return 3, c
}

// isHex reports whether a byte is a hexadecimal digit.
func isHex(c byte) bool {
	letter := fold(c)
	switch {
	case c >= '0' && c <= '9', letter >= 'a' && letter <= 'f':
		return true
	}
	return false
}

// escapes are the spellings of ESC after a backslash.
var escapes = []string{"u001b", "x1b", "033", "e"}

// sequenceLen returns the length of the control sequence at the start of text, after run
// backslashes; 0 if there is none. The sequence may be raw, escaped as in source code, or in the
// notation of cat -v. A sequence that contains text, such as a title or a link, counts only up to
// that text, which can hold a secret.
func sequenceLen(text []byte, run int) int {
	const (
		csi      = "\u009b" // in one character
		csiOfCat = "^[["    // in the notation of cat -v
	)
	switch {
	case text[0] == '\x1b':
		return 1 + restLen(text[1:])
	case bytes.HasPrefix(text, []byte(csi)):
		return len(csi) + controlLen(text[len(csi):])
	case bytes.HasPrefix(text, []byte(csiOfCat)):
		return len(csiOfCat) + controlLen(text[len(csiOfCat):])
	case run > 0:
		return escapedLen(text, run)
	}
	return 0
}

// escapedLen is sequenceLen for a sequence with its ESC escaped as in source code.
func escapedLen(text []byte, run int) int {
	for _, escape := range escapes {
		end := run + len(escape)
		isHere := len(text) >= end && bytes.EqualFold(text[run:end], []byte(escape))
		if !isHere {
			continue
		}
		rest := restLen(text[end:])
		isCertain := len(escape) > 1 // \e alone may be anything
		if rest > 0 || isCertain {
			return end + rest
		}
	}
	return 0
}

// restLen returns the length of a control sequence without its ESC, 0 if it is none.
func restLen(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] {
	case '[': // a control sequence with parameters
		return 1 + controlLen(rest[1:])
	case '(', ')': // a character set
		hasName := len(rest) > 1 && bytes.IndexByte([]byte("AB0"), rest[1]) >= 0
		if hasName {
			return 2
		}
	case ']', '=', '>': // a title or a link up to its text, and the modes of the keypad
		return 1
	}
	return 0
}

// maxControl bounds the parameters of a sequence, in bytes.
const maxControl = 64

// controlLen returns the length of a sequence's parameters and final byte, 0 if it does not end. The ranges of
// bytes are as in ECMA-48.
func controlLen(text []byte) int {
	for i, c := range text[:min(len(text), maxControl)] {
		isFinal := c >= '@' && c <= '~'
		if isFinal {
			return i + 1
		}
		isParameter := c >= ' ' && c <= '?'
		if !isParameter {
			return 0
		}
	}
	return 0
}

// unescape returns the length of the JSON escape at the start of text, after run backslashes
// (several if JSON is nested), and the ASCII character that it stands for; 0 if there is none.
func unescape(text []byte, run int) (size int, c byte) {
	const codeEscape = len(`\u0041`)
	lastBackslash := run - 1
	char, length := rawjson.ReadEscape(text[lastBackslash:])
	if length == codeEscape && char < utf8.RuneSelf {
		return lastBackslash + codeEscape, byte(char)
	}
	if run == len(text) {
		return 0, 0
	}
	switch text[run] {
	case '"':
		return run + 1, '"'
	case 'n':
		return run + 1, '\n'
	}
	return 0, 0
}
