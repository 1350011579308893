package renames

import "strings"

// shellWord is a word of a command, without its quotes. It is plain if a shell takes it as it is here; a
// leading ~/ stands for the home directory.
type shellWord struct {
	text    string
	isPlain bool
}

// wordScanner cuts a text into the words of its commands.
type wordScanner struct {
	rest string
	// isOver is set where the rest needs a shell to be understood.
	isOver bool
}

// The ends of a command.
const (
	endOfText    = ""
	endOfLine    = ";" // also a newline
	endAnd       = "&&"
	endOr        = "||"
	endPipe      = "|"
	endForParent = "&" // the shell does not wait
)

const blanks = " \t\r"

// command returns the words of the next command, without redirections, and its end. Where the text needs a shell to
// be understood it returns no words, and sets isOver.
func (s *wordScanner) command() (words []shellWord, end string) {
	for !s.isOver {
		s.skipBlanks()
		if s.rest == "" {
			return words, endOfText
		}
		switch s.rest[0] {
		case '\n':
			s.rest = s.rest[1:]
			return words, endOfLine
		case ';', '&', '|':
			if s.skipPrefix("&>") {
				s.redirect()
				continue
			}
			return words, s.operator()
		case '<', '>':
			s.redirect()
		case '(', ')':
			s.isOver = true
		default:
			w, isDescriptor := s.word()
			if !isDescriptor {
				words = append(words, w)
			}
		}
	}
	return nil, endOfText
}

// skipBlanks skips blanks, continued lines and a comment.
func (s *wordScanner) skipBlanks() {
	for {
		before := len(s.rest)
		s.rest = strings.TrimLeft(s.rest, blanks)
		s.skipPrefix("\\\n")
		if len(s.rest) == before {
			break
		}
	}
	if strings.HasPrefix(s.rest, "#") {
		end := strings.IndexByte(s.rest, '\n')
		if end < 0 {
			end = len(s.rest)
		}
		s.rest = s.rest[end:]
	}
}

// skipPrefix skips a text that begins the rest, and reports whether it does.
func (s *wordScanner) skipPrefix(prefix string) bool {
	rest, found := strings.CutPrefix(s.rest, prefix)
	s.rest = rest
	return found
}

// operator reads the operator that ends a command. At the end of a case of a shell, ;;, it sets isOver.
func (s *wordScanner) operator() string {
	for _, end := range []string{endAnd, endOr, endPipe, endForParent} {
		if s.skipPrefix(end) {
			return end
		}
	}
	s.isOver = strings.HasPrefix(s.rest, ";;") // of a case
	s.skipPrefix(";")
	return endOfLine
}

// redirect skips a redirection and its file. A text for the command follows on other lines.
func (s *wordScanner) redirect() {
	if strings.HasPrefix(s.rest, "<<") {
		s.isOver = true
		return
	}
	s.rest = strings.TrimLeft(s.rest, "<>&|")
	s.skipBlanks()
	if s.rest != "" && !s.isAt("\n;&|()") {
		s.word()
	}
}

// word reads a word. isDescriptor reports that it is the number of a descriptor before a redirection, and no word
// of the command.
func (s *wordScanner) word() (w shellWord, isDescriptor bool) {
	isQuoted := s.isAt(`'"\`)
	w.isPlain = !isOfUser(s.rest)
	var text strings.Builder
	for s.rest != "" && !s.isOver && !s.isAt("\n;&|()<>"+blanks) {
		isPlain := s.part(&text)
		if !isPlain {
			w.isPlain = false
		}
	}
	w.text = text.String()
	if isQuoted && strings.HasPrefix(w.text, "~") { // the name of a file, which would be taken for the home directory
		w.isPlain = false
	}
	isNumber := w.text != "" && strings.Trim(w.text, "0123456789") == ""
	return w, isNumber && s.isAt("<>")
}

// isAt reports whether the rest begins with one of some characters.
func (s *wordScanner) isAt(chars string) bool {
	return s.rest != "" && strings.IndexByte(chars, s.rest[0]) >= 0
}

// isOfUser reports whether a text begins with the home directory of a user, such as ~user.
func isOfUser(text string) bool {
	name, hasTilde := strings.CutPrefix(text, "~")
	if !hasTilde || name == "" {
		return false
	}
	return strings.IndexByte("/\n;&|"+blanks, name[0]) < 0
}

// part reads a quoted text or a character of a word, adds it to the text of the word, and reports whether it is
// plain. It sets isOver at a text without its final quote.
func (s *wordScanner) part(to *strings.Builder) (isPlain bool) {
	c := s.rest[0]
	s.rest = s.rest[1:]
	switch c {
	case '\'':
		end := strings.IndexByte(s.rest, '\'')
		if end < 0 {
			s.isOver = true
			return false
		}
		to.WriteString(s.rest[:end])
		s.rest = s.rest[end+1:]
		return true
	case '"':
		return s.doubleQuoted(to)
	case '\\':
		if s.rest == "" {
			return true
		}
		if s.rest[0] != '\n' { // a line that goes on
			to.WriteByte(s.rest[0])
		}
		s.rest = s.rest[1:]
		return true
	case '$', '`':
		s.expansion(c)
		return false
	}
	to.WriteByte(c)
	return strings.IndexByte("*?[]{}", c) < 0
}

// doubleQuoted reads the rest of a text in double quotes; see part.
func (s *wordScanner) doubleQuoted(to *strings.Builder) (isPlain bool) {
	isPlain = true
	for s.rest != "" && !s.isOver {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch c {
		case '"':
			return isPlain
		case '$', '`':
			s.expansion(c)
			isPlain = false
		case '\\':
			if s.isAt("\"\\$`\n") { // otherwise the backslash is a character
				c = s.rest[0]
				s.rest = s.rest[1:]
			}
			if c != '\n' { // a line that goes on
				to.WriteByte(c)
			}
		default:
			to.WriteByte(c)
		}
	}
	s.isOver = true // there is no end
	return false
}

// expansion looks behind a sign that a shell expands, and sets isOver unless the name of a variable follows: only
// that needs no shell to find its end.
func (s *wordScanner) expansion(sign byte) {
	if sign == '`' || s.isAt("({'\"") {
		s.isOver = true
	}
}
