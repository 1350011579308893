package blame

import (
	"fmt"
	"strings"

	"sessionfs/sessioncore/view"
)

// diff returns changes of a file as a diff, whose hunks have no line numbers.
func diff(name string, changes []Change) string {
	out := fmt.Appendf(nil, "--- a/%[1]s\n+++ b/%[1]s\n", name)
	for _, c := range changes {
		switch {
		case c.From == 0:
			out = append(out, "@@\n"...)
		case c.From == atEnd:
			out = append(out, "@@ at the end @@\n"...)
		case c.To < c.From:
			out = fmt.Appendf(out, "@@ behind line %d @@\n", c.To)
		default:
			out = fmt.Appendf(out, "@@ instead of lines %d to %d @@\n", c.From, c.To)
		}
		out = view.AppendDiff(out, linesOf(c.Old), linesOf(c.New))
	}
	return string(out)
}

// linesOf returns the lines of a text without their ends.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}
