package agents

import (
	"strconv"
	"strings"
)

// YAMLText returns a text member of a YAML mapping, or "": plain, quoted, or a block.
func YAMLText(text, key string) string {
	_, value, found := strings.Cut("\n"+text, "\n"+key+":")
	if !found {
		return ""
	}
	first, rest, _ := strings.Cut(value, "\n")
	lines := []string{strings.TrimSpace(first)}
	between := " "
	if mark := lines[0]; strings.HasPrefix(mark, "|") || strings.HasPrefix(mark, ">") {
		lines[0] = ""
		if mark[0] == '|' {
			between = "\n"
		}
	}
	for line := range strings.Lines(rest) {
		if line[0] != ' ' && line[0] != '\t' {
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
