package blame

import (
	"fmt"
	"strings"

	"sessionfs/sessioncore/view"
)

// diff returns changes of the file name as a diff. A hunk has no line numbers, or a note of the lines that it
// replaces. Changes of unknown texts are left out.
func diff(name string, changes []Change) string {
	out := fmt.Appendf(nil, "--- a/%[1]s\n+++ b/%[1]s\n", name)
	for _, c := range changes {
		switch {
		case c.Old == c.New && c.From == 0:
			continue // nothing is known
		case c.From == 0:
			out = append(out, "@@\n"...)
		case c.From == atEnd:
			out = append(out, "@@ at the end @@\n"...)
		case c.To < c.From:
			out = fmt.Appendf(out, "@@ behind line %d @@\n", c.To)
		default:
			out = fmt.Appendf(out, "@@ instead of lines %d to %d @@\n", c.From, c.To)
		}
		before := c.Old
		after := c.New
		if endsLine(before) && endsLine(after) {
			before = strings.TrimSuffix(before, "\n")
			after = strings.TrimSuffix(after, "\n")
		}
		out = view.AppendDiff(out, before, after)
	}
	return string(out)
}

// endsLine reports whether a text is empty or ends a line.
func endsLine(text string) bool { return text == "" || strings.HasSuffix(text, "\n") }
