package agents

import (
	"strconv"
	"strings"
)

// YAMLText returns a text member of a YAML mapping, or "": plain, quoted, or a block. It reads the top level only, and
// of the forms of YAML those that clients write.
func YAMLText(text, key string) string {
	_, value, found := strings.Cut("\n"+text, "\n"+key+":")
	if !found {
		return ""
	}
	first, rest, _ := strings.Cut(value, "\n")
	first = strings.TrimSpace(first)
	isLiteral := strings.HasPrefix(first, "|") // a block that keeps its line breaks
	isFolded := strings.HasPrefix(first, ">")
	between := " "
	if isLiteral {
		between = "\n"
	}
	if isLiteral || isFolded { // the mark is no part of the text
		first = ""
	}
	lines := []string{first}
	for line := range strings.Lines(rest) {
		isIndented := line[0] == ' ' || line[0] == '\t'
		if !isIndented { // the next member
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	joined := strings.TrimSpace(strings.Join(lines, between))
	switch {
	case joined == "null" || joined == "~":
		return ""
	case len(joined) > 1 && joined[0] == '\'' && strings.HasSuffix(joined, "'"):
		return strings.ReplaceAll(joined[1:len(joined)-1], "''", "'")
	}
	unquoted, err := strconv.Unquote(joined)
	if err == nil {
		return unquoted
	}
	return joined
}
