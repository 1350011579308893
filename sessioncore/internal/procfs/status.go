package procfs

import "strings"

// Field returns the value of a line "key:value" in the text of a file such as status or fdinfo, without white space
// around it, or "" if there is no such line.
func Field(text, key string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Fields of stat, counted from the one after the name (proc_pid_stat(5)).
const (
	Terminal = 4  // device number of the controlling terminal
	Start    = 19 // in hundredths of a second since the boot
)

// StatField returns a field of the text of a stat file, or "" if it has fewer.
func StatField(text string, field int) string {
	// The name, in parentheses, may contain anything.
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if field >= len(fields) {
		return ""
	}
	return fields[field]
}
