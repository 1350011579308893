package blame

import (
	"fmt"
	"strings"

	"sessionfs/sessioncore/view"
)

// diff returns changes of a file as a diff, whose hunks have no line numbers.
func diff(name string, changes []Change) string {
	var out strings.Builder
	out.WriteString("--- a/" + name + "\n+++ b/" + name + "\n")
	for _, c := range changes {
		before, after := linesOf(c.Old), linesOf(c.New)
		switch {
		case c.From == 0:
			out.WriteString("@@\n")
		case c.From == atEnd:
			out.WriteString("@@ at the end @@\n")
		case c.To < c.From:
			out.WriteString(fmt.Sprintf("@@ behind line %d @@\n", c.To))
		default:
			out.WriteString(fmt.Sprintf("@@ instead of lines %d to %d @@\n", c.From, c.To))
		}
		i, j := 0, 0
		until := func(a, b int) {
			write(&out, "-", before[i:a])
			write(&out, "+", after[j:b])
		}
		view.EachCommon(before, after, func(a, b int) {
			until(a, b)
			write(&out, " ", before[a:a+1])
			i, j = a+1, b+1
		})
		until(len(before), len(after))
	}
	return out.String()
}

// linesOf returns the lines of a text without their ends.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func write(out *strings.Builder, sign string, lines []string) {
	for _, line := range lines {
		out.WriteString(sign + line + "\n")
	}
}
