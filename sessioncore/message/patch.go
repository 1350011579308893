package message

import (
	"bytes"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// patchBegin begins a patch of the tool apply_patch, which is also run as a command of a shell, or
// as a string of a program.
var patchBegin = []byte("*** Begin Patch")

// patchMark begins the lines of a patch that are no content, patchLines those that name files.
var (
	patchMark  = []byte("*** ")
	patchLines = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}
)

// eachPatched calls f for each path in the patches in a text. isPatch says that the text is a
// patch, perhaps without a beginning or one of omp's edit: a section for each file, below a line
// with its name.
func eachPatched(text []byte, isPatch bool, f func(string)) {
	if isPatch {
		eachSection(text, f)
	}
	eachPatchLine(text, f)
}

// eachSection calls f for the path of each section of a patch of omp's edit.
func eachSection(text []byte, f func(string)) {
	isAnchored := IsAnchored(text)
	for line := range bytes.Lines(text) {
		if !beginsSection(bytes.TrimLeft(line, " \t")) || !fits(line) {
			continue
		}
		name := ""
		if isAnchored {
			name = AnchoredPath(string(line))
		} else {
			name = SectionPath(strings.TrimRight(string(line), " \t\r\n"))
		}
		if name != "" {
			f(name)
		}
	}
}

// eachPatchLine calls f for the path of each line such as "*** Update File: a.go" behind the first beginning
// of a patch.
func eachPatchLine(text []byte, f func(string)) {
	begin := bytes.Index(text, patchBegin)
	if begin < 0 {
		return
	}
	isQuoted := begin > 0 && text[begin-1] != '\n' // in a string of a program, which may be a template
	at := begin
	for {
		next := bytes.Index(text[at+1:], patchMark)
		if next < 0 {
			return
		}
		at += 1 + next
		name := patchPath(text, at)
		isTemplate := isQuoted && strings.Contains(name, "${")
		if name != "" && !isTemplate {
			f(name)
		}
	}
}

// anchoredBegin begins the line with the name of a file in a patch of omp's edit in 14.9.
const anchoredBegin = "@@ "

// IsAnchored reports whether a text is a patch of omp's edit in 14.9: sections, each below a line
// with the name of a file (AnchoredPath). Lines of other patches begin alike.
func IsAnchored(text []byte) bool {
	beginning := bytes.TrimLeft(text, " \t\r\n")
	return bytes.HasPrefix(beginning, []byte(anchoredBegin)) && !bytes.Contains(text, patchBegin)
}

// AnchoredPath returns the path in a line of such a patch, or "".
func AnchoredPath(line string) string {
	name, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), anchoredBegin)
	if !ok {
		return ""
	}
	return unquoted(strings.TrimRight(name, "\r\n"))
}

// SectionPath returns the path in a line of a patch of omp's edit: [PATH#TAG] or [PATH] in newer
// ones, ¶PATH#TAG or §PATH in older ones, and MV PATH, the new place of the file. It returns "" for
// other lines.
func SectionPath(line string) string {
	to, isMove := strings.CutPrefix(strings.TrimLeft(line, " \t"), "MV ")
	if isMove {
		return unquoted(to)
	}
	for _, sign := range []string{"¶", "§"} {
		name, isSection := strings.CutPrefix(line, sign)
		if isSection {
			return unquoted(withoutTag(name))
		}
	}
	if !strings.HasPrefix(line, "[") || !strings.HasSuffix(line, "]") {
		return ""
	}
	name := line[1 : len(line)-1]
	path, tag, hasTag := strings.Cut(name, "#")
	isSection := len(tag) == tagLength && isTag(tag)
	if hasTag && !isSection {
		return ""
	}
	return unquoted(path)
}

// withoutTag cuts a hash off the end of a name, if there is one.
func withoutTag(name string) string {
	at := strings.LastIndexByte(name, '#')
	if at < 0 || !isTag(name[at+1:]) {
		return name
	}
	return name[:at]
}

// tagLength is the number of digits of a hash after the name of a file.
const tagLength = 4

// isTag reports whether a text has hexadecimal digits alone.
func isTag(text string) bool {
	others := strings.Trim(text, "0123456789abcdefABCDEF")
	return text != "" && others == ""
}

// unquoted returns a name without the quotes around it.
func unquoted(name string) string {
	name = strings.TrimSpace(name)
	n := len(name)
	if n < 2 || name[0] != name[n-1] {
		return name
	}
	switch name[0] {
	case '"', '\'':
		return name[1 : n-1]
	}
	return name
}

// patchPath returns the path in the line of a patch at an offset of a text, "" if it has none. The
// patch may be part of the text, or of a string in it, with escaped line breaks.
func patchPath(text []byte, at int) string {
	var name []byte
	for _, begin := range patchLines {
		if bytes.HasPrefix(text[at:], []byte(begin)) {
			name = text[at+len(begin):]
		}
	}
	if name == nil {
		return ""
	}
	slashes := 0     // the backslashes of an escaped line break in the string that the patch is in, 0 outside of one
	quote := byte(0) // the quote that ends that string, 0 for an unknown one
	if at > 0 {
		switch c := text[at-1]; c {
		case '\n', '\r':
		case '"', '\'', '`':
			slashes = 1
			quote = c
		case 'n', 'r':
			slashes = slashesBefore(text[:at-1])
			if slashes == 0 { // a letter
				return ""
			}
			slashes &= -slashes // the line break's own; the others are backslashes before it
		default:
			return ""
		}
	}
	name = name[:min(len(name), MaxPath)]
	name = name[:nameEnd(name, slashes, quote)]
	if !fits(name) {
		return ""
	}
	for ; slashes > 0; slashes /= 2 { // a string in a string doubles them
		name = unescape(name)
	}
	return strings.TrimRight(string(name), " ")
}

// nameEnd returns the end of a name in a patch: the end of its line, or in a string the line break
// escaped with so many backslashes, or the end of the string. Twice as many are a backslash, as in
// paths of Windows. In a string of JSON, slashes is 1:
//
//	a.go\n@@ …     the end of a.go: a break
//	C:\\new.go"    the end of C:\\new.go: two backslashes are one, and no break
func nameEnd(name []byte, slashes int, quote byte) int {
	quotes := string(quote) // those that may end the string
	switch {
	case quote == 0 && slashes > 0:
		quotes = "\"`"
	case quote == 0:
		quotes = ""
	}
	run := 0 // of backslashes before c
	for i, c := range name {
		isBreak := c == '\n' || c == '\r'
		if isBreak || strings.IndexByte(quotes, c) >= 0 {
			return i - run
		}
		mayEscapeBreak := c == 'n' || c == 'r'
		ownSlashes := run & -run // the largest power of two in it: the others are backslashes of the name
		if mayEscapeBreak && slashes > 0 && ownSlashes == slashes {
			return i - slashes
		}
		if c == '\\' {
			run++
		} else {
			run = 0
		}
	}
	return len(name)
}

// longestPatchLine is the length of the longest of patchLines.
const longestPatchLine = len("*** Update File: ")

// fits reports whether a decoded name and the mark before it fit into MaxPath bytes of the file, if
// no more is escaped than must be.
func fits(name []byte) bool {
	backslashes := bytes.Count(name, []byte(`\`))
	quotes := bytes.Count(name, []byte(`"`))
	return len(name)+backslashes+quotes <= MaxPath-longestPatchLine
}

// slashesBefore returns the number of backslashes at the end of a text.
func slashesBefore(text []byte) int {
	return len(text) - len(bytes.TrimRight(text, `\`))
}

// unescape decodes a string of another language: \uXXXX and escaped signs, the only escapes in
// names.
func unescape(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, size := rawjson.ReadEscape(text)
		if size > 0 {
			out = rawjson.AppendCodePoint(out, r)
			text = text[size:]
			continue
		}
		isEscape := text[0] == '\\' && len(text) > 1 && strings.IndexByte(escapedSigns, text[1]) >= 0
		if isEscape {
			text = text[1:]
		}
		out = append(out, text[0])
		text = text[1:]
	}
	return out
}

// escapedSigns are the signs that languages escape in strings.
const escapedSigns = "\\\"'`$/"

// MayBePatched reports whether an offset of a file's bytes can be in a path of a patch. It reads at
// most MaxPath bytes before it, in the same line of the same string of JSON.
func MayBePatched(b []byte, at int) bool {
	start := at // of that line
	least := max(0, at-MaxPath)
	for start > least {
		c := b[start-1]
		slashes := 0
		if c == '"' || c == 'n' {
			slashes = slashesBefore(b[least : start-1])
		}
		isEscaped := slashes%2 == 1
		beginsString := c == '"' && !isEscaped
		beginsLine := c != '"' && isEscaped
		if beginsString || beginsLine {
			break
		}
		start -= 1 + slashes
	}
	line := b[start:at]
	for _, begin := range patchLines {
		if bytes.Contains(line, []byte(begin)) {
			return true
		}
	}
	return beginsSection(bytes.TrimLeft(line, " "))
}

// beginsSection reports whether a line in the body of a string can begin with a SectionPath.
func beginsSection(line []byte) bool {
	for _, begin := range sectionBegins {
		if bytes.HasPrefix(line, []byte(begin)) {
			return true
		}
	}
	return false
}

// sectionBegins are the beginnings of lines with a SectionPath, as strings of JSON have them.
var sectionBegins = []string{
	"[",
	"¶", `\u00b6`, `\u00B6`,
	"§", `\u00a7`, `\u00A7`,
	"MV ", `\tMV `,
	anchoredBegin, `\t` + anchoredBegin,
}
